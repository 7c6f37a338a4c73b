// Command size measures the cost of large messages: it submits fifty of them at once over HTTP, each with a
// file of 20 MB that cannot be compressed, then has all of them delivered at once, and compares what arrives
// with what was submitted. It prints the largest memory of each process. docs/performance.md has the results.
//
//	go run ./bench/size
//
// It starts its own redis-server, and Postroom as processes of its own: one with the role api, and then one
// with the role worker. Its relay reads at a limited rate, so that all messages are under way at once, and
// uses another SMTP library than Postroom. It needs 3 GB of memory, as much disk, and two minutes.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// options are the flags of a run.
type options struct {
	messages int
	size     int // of the file, in bytes
	rate     int // bytes a second that the relay reads off a connection
	dir      string
}

func main() {
	var o options
	var megabytes, rate int
	flag.IntVar(&o.messages, "messages", 50, "messages to submit, and to deliver, at once")
	flag.IntVar(&megabytes, "size", 20, "file of each, in MB")
	flag.IntVar(&rate, "rate", 5, "MB a second that the relay reads off each connection")
	flag.StringVar(&o.dir, "dir", "", "directory for the files of Redis; that of temporary files when not given")
	rig.Main("size", func(ctx context.Context) error {
		o.size, o.rate = megabytes*1_000_000, rate*1_000_000
		return run(ctx, o)
	})
}

func run(ctx context.Context, o options) error {
	h := &house{o: o, sums: make([][sha256.Size]byte, o.messages), http: &http.Client{Timeout: 10 * time.Minute}}
	defer h.Close()
	for _, step := range []func(context.Context) error{h.open, h.accept, h.deliver} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	rig.Title("What arrived")
	whole := h.sink.whole(h.sums)
	rig.Row("messages whose file is the submitted one, octet for octet", fmt.Sprint(whole),
		fmt.Sprintf("all %d", o.messages), whole == o.messages)
	return nil
}
