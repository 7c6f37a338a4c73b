package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/postroom/postroom/bench/rig"
)

// options are the flags of a run.
type options struct {
	messages int
	clients  int
	keyed    bool // every other message has an idempotency key
	workers  int
	fsync    string
	dir      string // for the files of Redis; empty: that of temporary files
}

func main() {
	var o options
	flag.IntVar(&o.messages, "messages", 100_000, "messages to pile up, 1,000 at least")
	flag.IntVar(&o.clients, "clients", 50, "concurrent clients, each with a connection it keeps")
	flag.BoolVar(&o.keyed, "keys", true, "give every other message an idempotency key")
	flag.IntVar(&o.workers, "workers", 50, "messages that are delivered at once in the end (workers.submit)")
	flag.StringVar(&o.fsync, "fsync", "everysec", "of Redis: everysec or always")
	flag.StringVar(&o.dir, "dir", "",
		"directory for the files of Redis, such as /dev/shm where the disk is not to be measured; that of temporary files when not given")
	rig.Main("backlog", func(ctx context.Context) error { return run(ctx, o) })
}

// run fills the outbox with messages and measures everything that is done with them.
func run(ctx context.Context, o options) error {
	if o.messages < 1000 {
		return fmt.Errorf("-messages: %d are no backlog, use 1000 or more", o.messages)
	}
	h := &house{o: o}
	defer h.Close()
	if err := h.open(ctx); err != nil {
		return err
	}
	rig.Title(fmt.Sprintf("%d messages that wait, submitted by %d clients", o.messages, o.clients))
	for _, step := range []func(context.Context) error{h.fill, h.memory, h.pages, h.cancel, h.drain, h.mailLog} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
