package main

import (
	"encoding/json"
	"io"
	"sync"
)

// record is one line of standard output: exactly one of its fields is set.
type record struct {
	Done   string               `json:"done,omitempty"`
	Call   *call                `json:"call,omitempty"`
	Synced string               `json:"synced,omitempty"`
	Store  *[]object            `json:"store,omitempty"`
	Index  *map[string][]string `json:"index,omitempty"`
}

// call is one call of a handler.
type call struct {
	Handler string  `json:"handler"`
	Event   string  `json:"event"`
	Initial bool    `json:"initial,omitempty"`
	Unknown bool    `json:"unknown,omitempty"`
	Old     *object `json:"old,omitempty"`
	Object  object  `json:"object"`
}

// object is the state of an object in a trace.
type object struct {
	Key     string `json:"key"`
	Version string `json:"version"`
	UID     string `json:"uid"`
}

// output writes records, one at a time.
type output struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newOutput(w io.Writer) *output {
	return &output{encoder: json.NewEncoder(w)}
}

func (o *output) write(r record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.encoder.Encode(r); err != nil {
		fail(err)
	}
}
