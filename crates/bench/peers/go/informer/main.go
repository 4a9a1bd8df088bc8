// client-go's shared informer as a contender: the same commands as `bench contender`.
//
// Options: --server URL [--kubeconfig FILE] --kind RESOURCE [--namespace NAME] --variant json|proto|tuned
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kube-informer/bench/go/calls"
)

type options struct {
	server, kubeconfig, kind, namespace, variant string
}

type response = calls.Response

type contender struct {
	options  options
	informer cache.SharedIndexInformer
	calls    *calls.Calls
	other    cache.SharedIndexInformer
	stop     chan struct{}
	readers  *atomic.Bool
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "", "")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "")
	flag.StringVar(&o.kind, "kind", "pods", "")
	flag.StringVar(&o.namespace, "namespace", "", "")
	flag.StringVar(&o.variant, "variant", "json", "")
	flag.Parse()

	informer, err := newInformer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := &contender{options: o, informer: informer, calls: &calls.Calls{}, stop: make(chan struct{})}
	if _, err := informer.AddEventHandler(c.calls.Handler()); err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		result, err := c.execute(strings.Fields(lines.Text()))
		if err != nil {
			result = response{"error": err.Error()}
		}
		line, _ := json.Marshal(result)
		fmt.Println(string(line))
	}
}

// newInformer creates a shared informer with an index by namespace and, for pods, one by node.
//
// Tuned is what operators of large clusters do: protobuf, and a transform that drops managedFields.
func newInformer(o options) (cache.SharedIndexInformer, error) {
	informer, err := newDefaultInformer(o)
	if err == nil && o.variant == "tuned" {
		err = informer.SetTransform(dropManagedFields)
	}
	return informer, err
}

func newDefaultInformer(o options) (cache.SharedIndexInformer, error) {
	// Without a kubeconfig it is the server alone.
	config, err := clientcmd.BuildConfigFromFlags(o.server, o.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	if o.variant == "proto" || o.variant == "tuned" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	}
	if o.kind == "widgets" {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, o.namespace, nil)
		return factory.ForResource(widgets).Informer(), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(o.namespace)).Core().V1()
	switch o.kind {
	case "pods":
		informer := core.Pods().Informer()
		return informer, informer.AddIndexers(cache.Indexers{"node": byNode})
	case "configmaps":
		return core.ConfigMaps().Informer(), nil
	case "secrets":
		return core.Secrets().Informer(), nil
	case "events":
		return core.Events().Informer(), nil
	}
	return nil, fmt.Errorf("unknown kind %q", o.kind)
}

func dropManagedFields(obj any) (any, error) {
	if object, err := meta.Accessor(obj); err == nil {
		object.SetManagedFields(nil)
	}
	return obj, nil
}

func byNode(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
}

func (c *contender) execute(words []string) (response, error) {
	if len(words) == 0 {
		return nil, errors.New("no command")
	}
	switch words[0] {
	case "start":
		start := time.Now()
		go c.informer.RunWithContext(context.Background())
		if !cache.WaitForCacheSync(c.stop, c.informer.HasSynced) {
			return nil, errors.New("not synced")
		}
		objects := len(c.informer.GetStore().ListKeys())
		c.calls.WaitForCount(int64(objects))
		return response{"objects": objects, "wall_s": time.Since(start).Seconds()}, nil
	case "settle":
		// Its best figure: only reachable memory.
		runtime.GC()
		debug.FreeOSMemory()
		return response{}, nil
	case "reset":
		c.calls.Reset()
		return response{}, nil
	case "await":
		version, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return nil, err
		}
		return c.calls.WaitForVersion(version), nil
	case "latency":
		return c.calls.Latency(), nil
	case "reads":
		return c.reads(), nil
	case "decode-all":
		return nil, errors.New("all objects are stored decoded")
	case "other":
		other, err := newInformer(c.options)
		if err != nil {
			return nil, err
		}
		c.other = other
		go other.RunWithContext(context.Background())
		cache.WaitForCacheSync(c.stop, other.HasSynced)
		return response{}, nil
	case "readers":
		rate, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, err
		}
		informer := c.informer
		if words[1] == "other" {
			informer = c.other
		}
		c.read(informer.GetIndexer(), rate)
		return response{}, nil
	case "stop-readers":
		if c.readers != nil {
			c.readers.Store(true)
		}
		return response{}, nil
	case "stall":
		_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { select {} },
		})
		return response{}, err
	}
	return nil, fmt.Errorf("unknown command %q", words[0])
}

// perCall returns nanoseconds per call, in the best of ten rounds.
func perCall(call func(i int)) float64 {
	best, calls := math.Inf(1), 0
	for range 10 {
		start, before := time.Now(), calls
		for time.Since(start) < 70*time.Millisecond {
			for range 16 {
				call(calls)
				calls++
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/float64(calls-before))
	}
	return best
}

func (c *contender) reads() response {
	indexer := c.informer.GetIndexer()
	lister := corelisters.NewPodLister(indexer)
	keys := indexer.ListKeys()
	rand.New(rand.NewSource(1)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	nodes := indexer.ListIndexFuncValues("node")
	type key struct{ namespace, name string }
	names := make([]key, len(keys))
	for i, k := range keys {
		names[i].namespace, names[i].name, _ = cache.SplitMetaNamespaceKey(k)
	}
	first, _ := lister.Pods(names[0].namespace).Get(names[0].name)
	selector := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": first.Labels["app.kubernetes.io/name"]})
	sum := 0
	get := func(i int) *corev1.Pod {
		k := names[i%len(names)]
		pod, _ := lister.Pods(k.namespace).Get(k.name)
		return pod
	}
	return response{
		"get_ns":              perCall(func(i int) { sum += len(get(i).Name) }),
		"get_labels_ns":       perCall(func(i int) { sum += len(get(i).Labels["team"]) }),
		"get_decoded_cold_us": perCall(func(i int) { sum += len(get(i).Name) }) / 1e3,
		"view_cold_us":        perCall(func(i int) { sum += readFields(get(i)) }) / 1e3,
		"list_us":             perCall(func(int) { sum += listAndRead(lister) }) / 1e3,
		"list_label_us":       perCall(func(int) { sum += listAndReadLabel(lister) }) / 1e3,
		"list_field_us":       perCall(func(int) { sum += listAndReadFields(lister) }) / 1e3,
		"by_index_us":         perCall(func(i int) { pods, _ := indexer.ByIndex("node", nodes[i%len(nodes)]); sum += len(pods) }) / 1e3,
		"by_selector_us":      perCall(func(int) { pods, _ := lister.List(selector); sum += len(pods) }) / 1e3,
		"objects":             len(keys),
		"sum":                 sum,
	}
}

// listAndRead lists all objects and reads each.
func listAndRead(lister corelisters.PodLister) (sum int) {
	pods, _ := lister.List(labels.Everything())
	for _, pod := range pods {
		sum += len(pod.ResourceVersion)
	}
	return sum
}

// listAndReadLabel lists all objects and reads a label of each.
func listAndReadLabel(lister corelisters.PodLister) (sum int) {
	pods, _ := lister.List(labels.Everything())
	for _, pod := range pods {
		sum += len(pod.Labels["team"])
	}
	return sum
}

// listAndReadFields lists all objects and reads three fields of each.
func listAndReadFields(lister corelisters.PodLister) (sum int) {
	pods, _ := lister.List(labels.Everything())
	for _, pod := range pods {
		sum += readFields(pod)
	}
	return sum
}

func readFields(pod *corev1.Pod) int {
	return len(pod.Spec.NodeName) + len(pod.Status.Phase) + len(pod.Status.PodIP)
}

// read starts two goroutines that list all objects at a fixed total rate, until stopped.
func (c *contender) read(indexer cache.Indexer, perSecond int) {
	stop := &atomic.Bool{}
	c.readers = stop
	lister := corelisters.NewPodLister(indexer)
	period := 2 * time.Second / time.Duration(perSecond)
	for range 2 {
		go func() {
			next := time.Now()
			for !stop.Load() {
				runtime.KeepAlive(listAndRead(lister))
				next = next.Add(period)
				time.Sleep(time.Until(next))
			}
		}()
	}
}
