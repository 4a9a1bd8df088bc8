// Benchmarks of client-go's work queue: the same measurements as crates/workqueue/benches/queue.rs, in the same
// format: name, wall-clock time and CPU time in nanoseconds per key; or name and bytes per key.
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
		result = cost{min(result.wall, next.wall), min(result.cpu, next.cpu)}
	}
	fmt.Printf("%s\t%.1f\t%.1f\n", name, result.wall, result.cpu)
}

// cost is in nanoseconds per key.
type cost struct{ wall, cpu float64 }

type stopwatch struct {
	wall time.Time
	cpu  time.Duration
}

func start() stopwatch {
	return stopwatch{time.Now(), cpuTime()}
}

func (s stopwatch) stop(keys int) cost {
	perKey := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(keys) }
	return cost{perKey(time.Since(s.wall)), perKey(cpuTime() - s.cpu)}
}

func cpuTime() time.Duration {
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

// memoryQueued returns the live bytes of the queue per key, without the text of the key.
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
	// The queue reads its channel asynchronously: at most 1000 of the million keys are not in it yet.
	bytes := live() - before
	queue.ShutDown()
	runtime.KeepAlive(keys)
	return bytes / float64(len(keys))
}
