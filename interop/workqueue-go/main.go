// What client-go's work queue costs: the same measurements as crates/workqueue/benches/queue.rs, in the same
// format: name, time on the clock, time of all processors, in nanoseconds for each key; or name and bytes.
package main

import (
	"fmt"
	"math/rand"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
)

const (
	million = 1_000_000
	// Each measurement is repeated, and the best is printed.
	rounds = 5
)

func main() {
	keys := make([]string, million)
	for n := range keys {
		keys[n] = fmt.Sprintf("namespace-%d/name-%d", n%100, n)
	}
	best("add+get+done of one key", func() cost { return uncontended(keys[0]) })
	best("1M distinct keys", func() cost { return distinct(keys) })
	best("64 workers contending", func() cost { return contending(keys) })
	best("1M delayed keys", func() cost { return delayed(keys) })
	fmt.Printf("memory of a queued key\t%.1f\n", memoryQueued(keys))
	fmt.Printf("memory of a delayed key\t%.1f\n", memoryDelayed(keys))
}

func best(name string, measure func() cost) {
	result := measure()
	for range rounds - 1 {
		runtime.GC()
		next := measure()
		result = cost{min(result.clock, next.clock), min(result.processors, next.processors)}
	}
	fmt.Printf("%s\t%.1f\t%.1f\n", name, result.clock, result.processors)
}

// Nanoseconds for each key.
type cost struct{ clock, processors float64 }

type stopwatch struct {
	clock      time.Time
	processors time.Duration
}

func start() stopwatch {
	return stopwatch{time.Now(), processorTime()}
}

func (s stopwatch) stop(keys int) cost {
	perKey := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(keys) }
	return cost{perKey(time.Since(s.clock)), perKey(processorTime() - s.processors)}
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func take(queue workqueue.TypedInterface[string]) bool {
	key, shutdown := queue.Get()
	if !shutdown {
		queue.Done(key)
	}
	return !shutdown
}

func uncontended(key string) cost {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	watch := start()
	for range million {
		queue.Add(key)
		take(queue)
	}
	return watch.stop(million)
}

func distinct(keys []string) cost {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	watch := start()
	for _, key := range keys {
		queue.Add(key)
	}
	for range keys {
		take(queue)
	}
	return watch.stop(len(keys))
}

func contending(keys []string) cost {
	queue := workqueue.NewTyped[string]()
	var workers, producers sync.WaitGroup
	watch := start()
	for range 64 {
		workers.Go(func() {
			for take(queue) {
			}
		})
	}
	share := len(keys) / 4
	for n := range 4 {
		producers.Go(func() {
			for _, key := range keys[n*share : (n+1)*share] {
				queue.Add(key)
			}
		})
	}
	producers.Wait()
	queue.ShutDown()
	workers.Wait()
	return watch.stop(len(keys))
}

func delayingQueue() (workqueue.TypedDelayingInterface[string], *testingclock.FakeClock) {
	clock := testingclock.NewFakeClock(time.Now())
	config := workqueue.TypedDelayingQueueConfig[string]{Clock: clock}
	return workqueue.NewTypedDelayingQueueWithConfig(config), clock
}

func delayed(keys []string) cost {
	random := rand.New(rand.NewSource(1))
	queue, clock := delayingQueue()
	defer queue.ShutDown()
	watch := start()
	for _, key := range keys {
		queue.AddAfter(key, time.Duration(1+random.Int63n(600_000_000_000)))
	}
	clock.Step(601 * time.Second)
	for range keys {
		take(queue)
	}
	return watch.stop(len(keys))
}

func live() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// Live bytes of the queue for each key, apart from the key's own text.
func memoryQueued(keys []string) float64 {
	before := live()
	queue := workqueue.NewTyped[string]()
	for _, key := range keys {
		queue.Add(key)
	}
	bytes := live() - before
	queue.ShutDown()
	runtime.KeepAlive(keys)
	return bytes / float64(len(keys))
}

func memoryDelayed(keys []string) float64 {
	before := live()
	queue, _ := delayingQueue()
	for n, key := range keys {
		queue.AddAfter(key, time.Duration(n+1)*time.Second)
	}
	// The queue takes what is in its channel at its own pace; at most 1000 of a million keys are missing here.
	bytes := live() - before
	queue.ShutDown()
	runtime.KeepAlive(keys)
	return bytes / float64(len(keys))
}
