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

// heard is what the handler was told since the last reset.
type heard struct {
	calls, newest, first, last atomic.Int64
	mu                         sync.Mutex
	delays                     []int64
}

func (h *heard) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    h.note,
		UpdateFunc: func(_, obj any) { h.note(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			h.note(obj)
		},
	}
}

func (h *heard) note(obj any) {
	now := time.Now().UnixNano()
	object, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	if h.calls.Add(1) == 1 {
		h.first.Store(now)
	}
	h.last.Store(now)
	if sent, ok := object.GetLabels()["bench/sent-at"]; ok {
		at, _ := strconv.ParseInt(sent, 10, 64)
		h.mu.Lock()
		h.delays = append(h.delays, now-at)
		h.mu.Unlock()
	}
	version, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if version > h.newest.Load() {
		h.newest.Store(version)
	}
}

func (h *heard) reset() {
	h.calls.Store(0)
	h.mu.Lock()
	h.delays = nil
	h.mu.Unlock()
}

func (h *heard) untilCount(calls int64) {
	for h.calls.Load() < calls {
		time.Sleep(time.Millisecond)
	}
}

func (h *heard) until(version int64) answer {
	for h.newest.Load() < version {
		time.Sleep(time.Millisecond)
	}
	return answer{"calls": h.calls.Load(), "first": h.first.Load(), "last": h.last.Load()}
}

func (h *heard) latency() answer {
	h.mu.Lock()
	delays := h.delays
	h.delays = nil
	h.mu.Unlock()
	slices.Sort(delays)
	at := func(share float64) any {
		i := int(float64(len(delays)) * share)
		if i >= len(delays) {
			return nil
		}
		return float64(delays[i]) / 1e3
	}
	return answer{"samples": len(delays), "p50_us": at(0.5), "p99_us": at(0.99)}
}
