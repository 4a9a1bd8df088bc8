// Executes commands from standard input with client-go's shared informer, and writes the events of its handlers to
// standard output, one JSON object per line. The protocol is described in ../src/protocol.rs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// command is one line of standard input. Do determines which fields are used.
type command struct {
	Do string `json:"do"`

	// open
	Server     string            `json:"server"`
	Namespaces []string          `json:"namespaces"`
	Selector   string            `json:"selector"`
	ResyncMS   *int64            `json:"resync_ms"`
	Indexes    map[string]string `json:"indexes"`

	// add, remove
	Handler string `json:"handler"`
	Filter  string `json:"filter"`
}

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	out := newOutput(os.Stdout)
	var d driver
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fail(err)
		}
		if err := d.execute(c, out); err != nil {
			fail(fmt.Errorf("%s: %w", c.Do, err))
		}
		out.write(record{Done: c.Do})
		if c.Do == "stop" {
			return
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
