package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// driver has the informers of one run. An informer of client-go watches one namespace or all of them, so several
// namespaces are several informers with the same handlers.
type driver struct {
	informers     []cache.SharedIndexInformer
	registrations map[string][]cache.ResourceEventHandlerRegistration
	indexes       []string
	stop          context.CancelFunc
	running       sync.WaitGroup
}

func (d *driver) execute(c command, out *output) error {
	switch c.Do {
	case "open":
		return d.open(c)
	case "add":
		return d.add(c, out)
	case "remove":
		return d.remove(c.Handler)
	case "start":
		d.start()
		return nil
	case "dump":
		return d.dump(out)
	case "stop":
		d.stop()
		d.running.Wait()
		return nil
	}
	return fmt.Errorf("unknown command %q", c.Do)
}

func (d *driver) open(c command) error {
	client, err := podClient(c.Server)
	if err != nil {
		return err
	}
	indexers := cache.Indexers{}
	for name, key := range c.Indexes {
		indexers[name] = indexBy(key)
		d.indexes = append(d.indexes, name)
	}
	slices.Sort(d.indexes)
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	selector := func(options *metav1.ListOptions) { options.LabelSelector = c.Selector }
	for _, namespace := range namespaces {
		lw := cache.NewFilteredListWatchFromClient(client, "pods", namespace, selector)
		d.informers = append(d.informers, cache.NewSharedIndexInformer(
			cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{}, millis(c.ResyncMS), indexers))
	}
	d.registrations = map[string][]cache.ResourceEventHandlerRegistration{}
	return nil
}

func podClient(server string) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return rest.RESTClientFor(&rest.Config{
		Host:    server,
		APIPath: "/api",
		// No client-side rate limit.
		QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &corev1.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
}

// indexBy returns the index function for "label:<key>" or "node".
func indexBy(key string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		pod := obj.(*corev1.Pod)
		if label, ok := strings.CutPrefix(key, "label:"); ok {
			if value, ok := pod.Labels[label]; ok {
				return []string{value}, nil
			}
			return nil, nil
		}
		if pod.Spec.NodeName == "" {
			return nil, nil
		}
		return []string{pod.Spec.NodeName}, nil
	}
}

func (d *driver) add(c command, out *output) error {
	var handler cache.ResourceEventHandler = &printer{name: c.Handler, out: out}
	if c.Filter != "" {
		handler = cache.FilteringResourceEventHandler{FilterFunc: accept(c.Filter), Handler: handler}
	}
	var options cache.HandlerOptions
	if c.ResyncMS != nil {
		period := millis(c.ResyncMS)
		options.ResyncPeriod = &period
	}
	var registrations []cache.ResourceEventHandlerRegistration
	for _, informer := range d.informers {
		registration, err := informer.AddEventHandlerWithOptions(handler, options)
		if err != nil {
			return err
		}
		registrations = append(registrations, registration)
	}
	d.registrations[c.Handler] = registrations
	go func() {
		for _, registration := range registrations {
			<-registration.HasSyncedChecker().Done()
		}
		out.write(record{Synced: c.Handler})
	}()
	return nil
}

// accept returns a filter for objects with a label, given as "key=value".
func accept(label string) func(any) bool {
	key, value, _ := strings.Cut(label, "=")
	return func(obj any) bool {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		pod, ok := obj.(*corev1.Pod)
		return ok && pod.Labels[key] == value
	}
}

// remove removes a handler, and waits until none of its calls are running.
func (d *driver) remove(handler string) error {
	for i, registration := range d.registrations[handler] {
		if err := cache.ShutDownEventHandler(d.informers[i], registration); err != nil {
			return err
		}
	}
	delete(d.registrations, handler)
	return nil
}

func (d *driver) start() {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	for _, informer := range d.informers {
		d.running.Go(func() { informer.RunWithContext(ctx) })
	}
}

func (d *driver) dump(out *output) error {
	store := []object{}
	for _, informer := range d.informers {
		for _, obj := range informer.GetStore().List() {
			store = append(store, describe(obj))
		}
	}
	slices.SortFunc(store, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
	out.write(record{Store: &store})
	index := map[string][]string{}
	for _, name := range d.indexes {
		for _, informer := range d.informers {
			for _, value := range informer.GetIndexer().ListIndexFuncValues(name) {
				keys, err := informer.GetIndexer().IndexKeys(name, value)
				if err != nil {
					return err
				}
				entry := name + "=" + value
				index[entry] = append(index[entry], keys...)
				slices.Sort(index[entry])
			}
		}
	}
	out.write(record{Index: &index})
	return nil
}

func millis(ms *int64) time.Duration {
	if ms == nil {
		return 0
	}
	return time.Duration(*ms) * time.Millisecond
}
