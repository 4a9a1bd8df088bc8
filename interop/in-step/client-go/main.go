// Watches the ConfigMaps of a server with client-go's shared informer, in JSON and in protobuf, and its dynamic
// informer. It reads the expected content from standard input (a JSON object of keys and resource versions), waits
// until each informer has it, and prints a line for each: name, tab, and the difference, if any. Last, it writes a pod
// in protobuf and compares it in both encodings.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const timeout = 60 * time.Second

// checkedInformer is an informer and the objects that its handler received.
type checkedInformer struct {
	name     string
	informer cache.SharedIndexInformer
	mu       sync.Mutex
	received map[string]string
}

func newCheckedInformer(name string, informer cache.SharedIndexInformer) *checkedInformer {
	f := &checkedInformer{name: name, informer: informer, received: map[string]string{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.set(obj) },
		UpdateFunc: func(_, obj any) { f.set(obj) },
		DeleteFunc: func(obj any) { f.unset(obj) },
	})
	must(err)
	return f
}

func (f *checkedInformer) set(obj any) {
	key, version := entry(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received[key] = version
}

func (f *checkedInformer) unset(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	must(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.received, key)
}

func (f *checkedInformer) store() map[string]string {
	contents := map[string]string{}
	for _, obj := range f.informer.GetStore().List() {
		key, version := entry(obj)
		contents[key] = version
	}
	return contents
}

func (f *checkedInformer) handler() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents := map[string]string{}
	for key, version := range f.received {
		contents[key] = version
	}
	return contents
}

func entry(obj any) (key, version string) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	must(err)
	object, err := meta.Accessor(obj)
	must(err)
	return key, object.GetResourceVersion()
}

// difference waits until both are equal. After the timeout it returns how they differ.
func difference(expected map[string]string, actual func() map[string]string) string {
	deadline := time.Now().Add(timeout)
	for {
		missing, extra := 0, 0
		contents := actual()
		for key, version := range expected {
			if contents[key] != version {
				missing++
			}
		}
		for key := range contents {
			if _, ok := expected[key]; !ok {
				extra++
			}
		}
		if missing == 0 && extra == 0 {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("%d missing or stale, %d extra", missing, extra)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	config := &rest.Config{Host: os.Args[1], QPS: 1000, Burst: 1000}
	typed := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	protobufConfig := rest.CopyConfig(config)
	protobufConfig.ContentType = runtime.ContentTypeProtobuf
	protobufConfig.AcceptContentTypes = runtime.ContentTypeProtobuf
	protobuf := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(protobufConfig), 0)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	checked := []*checkedInformer{
		newCheckedInformer("client-go shared informer", typed.Core().V1().ConfigMaps().Informer()),
		newCheckedInformer("client-go shared informer, protobuf", protobuf.Core().V1().ConfigMaps().Informer()),
		newCheckedInformer("client-go dynamic informer", untyped.ForResource(maps).Informer()),
	}
	stop := make(chan struct{})
	defer close(stop)
	typed.Start(stop)
	protobuf.Start(stop)
	untyped.Start(stop)

	line := bufio.NewScanner(os.Stdin)
	line.Buffer(nil, 64<<20)
	if !line.Scan() {
		return
	}
	expected := map[string]string{}
	must(json.Unmarshal(line.Bytes(), &expected))
	for _, f := range checked {
		fmt.Printf("%s, store\t%s\n", f.name, difference(expected, f.store))
		fmt.Printf("%s, handler\t%s\n", f.name, difference(expected, f.handler))
	}
	fmt.Printf("client-go, a pod in protobuf\t%s\n", podInProtobuf(config, protobufConfig))
}
