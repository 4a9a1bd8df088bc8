package main

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// handlerCalls counts the calls of the handler since the last reset.
type handlerCalls struct {
	calls, newest, first, last atomic.Int64
	mu                         sync.Mutex
	delays                     []int64
}

func (c *handlerCalls) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    c.record,
		UpdateFunc: func(_, obj any) { c.record(obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			c.record(obj)
		},
	}
}

func (c *handlerCalls) record(obj any) {
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

func (c *handlerCalls) reset() {
	c.calls.Store(0)
	c.mu.Lock()
	c.delays = nil
	c.mu.Unlock()
}

func (c *handlerCalls) waitForCount(calls int64) {
	for c.calls.Load() < calls {
		time.Sleep(time.Millisecond)
	}
}

func (c *handlerCalls) waitForVersion(version int64) response {
	for c.newest.Load() < version {
		time.Sleep(time.Millisecond)
	}
	return response{"calls": c.calls.Load(), "first": c.first.Load(), "last": c.last.Load()}
}

func (c *handlerCalls) latency() response {
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
	return response{"samples": len(delays), "p50_us": at(0.5), "p99_us": at(0.99)}
}
