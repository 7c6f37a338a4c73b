// Command size measures what large messages cost: it hands in fifty of them at once over HTTP, each with a
// file of 20 MB that can't be compressed, then has all of them delivered at once, and compares what arrives
// with what was handed in. It prints how much memory each process took at most. docs/performance.md has what
// it said.
//
//	go run ./bench/size
//
// It starts its own redis-server, and Postroom as processes of its own: one with the role api, and then one
// with the role worker. Its relay reads at a limited rate, so that all messages are on their way at the same
// time, and belongs to another library than Postroom's. It needs 3 GB of memory, as much disk, and a minute
// or two.
package main

import (
	"context"
	"flag"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
)

// options are what a run is like.
type options struct {
	messages int
	size     int // of the file, in bytes
	rate     int // bytes a second that the relay reads off a connection
	dir      string
}

func main() {
	var o options
	var megabytes, rate int
	flag.IntVar(&o.messages, "messages", 50, "messages to hand in, and to deliver, at once")
	flag.IntVar(&megabytes, "size", 20, "file of each, in MB")
	flag.IntVar(&rate, "rate", 5, "MB a second that the relay reads off each connection")
	flag.StringVar(&o.dir, "dir", "", "directory for the files of Redis; that of temporary files when not given")
	rig.Main("size", func(ctx context.Context) error {
		o.size, o.rate = megabytes*1_000_000, rate*1_000_000
		return run(ctx, o)
	})
}

func run(ctx context.Context, o options) error {
	h, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.accept(ctx); err != nil {
		return err
	}
	if err := h.deliver(ctx); err != nil {
		return err
	}
	rig.Title("What arrived")
	whole := h.sink.whole(h.sums)
	rig.Row("messages whose file is the one handed in, octet for octet", fmt.Sprint(whole),
		fmt.Sprintf("all %d", o.messages), whole == o.messages)
	return nil
}
