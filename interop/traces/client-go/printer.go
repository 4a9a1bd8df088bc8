package main

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// printer is a handler that writes its events to the output.
type printer struct {
	name string
	out  *output
}

func (p *printer) OnAdd(obj any, isInInitialList bool) {
	p.print(call{Event: "add", Initial: isInInitialList, Object: describe(obj)})
}

func (p *printer) OnUpdate(oldObj, newObj any) {
	old := describe(oldObj)
	p.print(call{Event: "update", Old: &old, Object: describe(newObj)})
}

func (p *printer) OnDelete(obj any) {
	tombstone, unknown := obj.(cache.DeletedFinalStateUnknown)
	if unknown {
		obj = tombstone.Obj
	}
	p.print(call{Event: "delete", Unknown: unknown, Object: describe(obj)})
}

func (p *printer) print(c call) {
	c.Handler = p.name
	p.out.write(record{Call: &c})
}

func describe(obj any) object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		fail(err)
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		fail(err)
	}
	return object{Key: key, Version: accessor.GetResourceVersion(), UID: string(accessor.GetUID())}
}
