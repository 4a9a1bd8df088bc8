// Follows the ConfigMaps of a server with client-go's shared informer, in JSON and in protobuf, and its dynamic one.
// When told on standard input what to expect (a JSON object of keys and versions), it waits until it has that and
// says for each follower how it differs: name, tab, nothing or the difference. Last, it writes a pod in protobuf and
// reads it in both.
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

const patience = 60 * time.Second

// follower is one informer and what its handler was told.
type follower struct {
	name     string
	informer cache.SharedIndexInformer
	mu       sync.Mutex
	told     map[string]string
}

func newFollower(name string, informer cache.SharedIndexInformer) *follower {
	f := &follower{name: name, informer: informer, told: map[string]string{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.set(obj) },
		UpdateFunc: func(_, obj any) { f.set(obj) },
		DeleteFunc: func(obj any) { f.unset(obj) },
	})
	must(err)
	return f
}

func (f *follower) set(obj any) {
	key, version := entry(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[key] = version
}

func (f *follower) unset(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	must(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.told, key)
}

func (f *follower) store() map[string]string {
	contents := map[string]string{}
	for _, obj := range f.informer.GetStore().List() {
		key, version := entry(obj)
		contents[key] = version
	}
	return contents
}

func (f *follower) handler() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents := map[string]string{}
	for key, version := range f.told {
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

// difference waits until both are equal, for as long as patience lasts.
func difference(expected map[string]string, actual func() map[string]string) string {
	deadline := time.Now().Add(patience)
	for {
		missing, surplus := 0, 0
		contents := actual()
		for key, version := range expected {
			if contents[key] != version {
				missing++
			}
		}
		for key := range contents {
			if _, ok := expected[key]; !ok {
				surplus++
			}
		}
		if missing == 0 && surplus == 0 {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("%d missing or old, %d too many", missing, surplus)
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
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf
	packed := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(binary), 0)
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	followers := []*follower{
		newFollower("client-go shared informer", typed.Core().V1().ConfigMaps().Informer()),
		newFollower("client-go shared informer, protobuf", packed.Core().V1().ConfigMaps().Informer()),
		newFollower("client-go dynamic informer", untyped.ForResource(maps).Informer()),
	}
	stop := make(chan struct{})
	defer close(stop)
	typed.Start(stop)
	packed.Start(stop)
	untyped.Start(stop)

	line := bufio.NewScanner(os.Stdin)
	line.Buffer(nil, 64<<20)
	if !line.Scan() {
		return
	}
	expected := map[string]string{}
	must(json.Unmarshal(line.Bytes(), &expected))
	for _, f := range followers {
		fmt.Printf("%s, store\t%s\n", f.name, difference(expected, f.store))
		fmt.Printf("%s, handler\t%s\n", f.name, difference(expected, f.handler))
	}
	fmt.Printf("client-go, a pod in protobuf\t%s\n", podInProtobuf(config, binary))
}
