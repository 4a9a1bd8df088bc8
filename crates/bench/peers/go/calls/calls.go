// Package calls counts the calls of handlers and reconcilers.
package calls

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// Response is the result of a command.
type Response = map[string]any

// Calls are the calls since the last reset.
type Calls struct {
	calls, newest, first, last atomic.Int64
	mu                         sync.Mutex
	delays                     []int64
}

// Handler calls Record for every event.
func (c *Calls) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    c.Record,
		UpdateFunc: func(_, obj any) { c.Record(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			c.Record(obj)
		},
	}
}

// Record counts a call with this object.
func (c *Calls) Record(obj any) {
	now := time.Now().UnixNano()
	object, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	if c.calls.Add(1) == 1 {
		c.first.Store(now)
	}
	c.last.Store(now)
	if sent, ok := object.GetLabels()["bench/sent-at"]; ok {
		at, _ := strconv.ParseInt(sent, 10, 64)
		c.mu.Lock()
		c.delays = append(c.delays, now-at)
		c.mu.Unlock()
	}
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if version > c.newest.Load() {
		c.newest.Store(version)
	}
}

// Reset forgets all calls.
func (c *Calls) Reset() {
	c.calls.Store(0)
	c.mu.Lock()
	c.delays = nil
	c.mu.Unlock()
}

// WaitForCount waits for a number of calls.
func (c *Calls) WaitForCount(calls int64) {
	for c.calls.Load() < calls {
		time.Sleep(time.Millisecond)
	}
}

// WaitForVersion waits for a call with this version or a later one.
func (c *Calls) WaitForVersion(version int64) Response {
	for c.newest.Load() < version {
		time.Sleep(time.Millisecond)
	}
	return Response{"calls": c.calls.Load(), "first": c.first.Load(), "last": c.last.Load()}
}

// Latency is the time from a write to its call.
func (c *Calls) Latency() Response {
	c.mu.Lock()
	delays := c.delays
	c.delays = nil
	c.mu.Unlock()
	slices.Sort(delays)
	at := func(share float64) any {
		i := int(float64(len(delays)) * share)
		if i >= len(delays) {
			return nil
		}
		return float64(delays[i]) / 1e3
	}
	return Response{"samples": len(delays), "p50_us": at(0.5), "p99_us": at(0.99)}
}
