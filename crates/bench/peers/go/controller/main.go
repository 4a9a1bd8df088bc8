// A controller of controller-runtime as a contender: a part of the commands of `bench contender`.
//
// Options: --server URL
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kube-informer/bench/go/calls"
)

type response = calls.Response

// reconciler reads the pod from the cache and records it.
type reconciler struct {
	client client.Client
	calls  *calls.Calls
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.calls.Record(&pod)
	return ctrl.Result{}, nil
}

func main() {
	url := flag.String("server", "", "")
	flag.String("kind", "pods", "")
	flag.String("variant", "controller", "")
	flag.Parse()
	log.SetLogger(logr.Discard())
	counted := &calls.Calls{}
	manager, err := newManager(*url, counted)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line, _ := json.Marshal(execute(manager, counted, strings.Fields(lines.Text())))
		fmt.Println(string(line))
	}
}

// newManager has one controller, of pods. The replay has no discovery, so the mapper is given.
func newManager(url string, counted *calls.Calls) (ctrl.Manager, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	manager, err := ctrl.NewManager(&rest.Config{Host: url, QPS: -1}, ctrl.Options{
		Scheme:         scheme.Scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		Metrics:        server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	r := &reconciler{client: manager.GetClient(), calls: counted}
	return manager, ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Complete(r)
}

func execute(manager ctrl.Manager, counted *calls.Calls, words []string) response {
	switch words[0] {
	case "start":
		go func() {
			if err := manager.Start(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}()
		return response{}
	case "settle":
		runtime.GC()
		debug.FreeOSMemory()
		return response{}
	case "reset":
		counted.Reset()
		return response{}
	case "await-count":
		count, _ := strconv.ParseInt(words[1], 10, 64)
		counted.WaitForCount(count)
		return response{}
	case "await":
		version, _ := strconv.ParseInt(words[1], 10, 64)
		return counted.WaitForVersion(version)
	case "latency":
		return counted.Latency()
	}
	return response{"error": fmt.Sprintf("unknown command %q", words[0])}
}
