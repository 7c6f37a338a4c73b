package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

func main() {
	o := options{drain: 5 * time.Minute}
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "what happens to whom, and when; random when not given") //nolint:gosec // chaos
	flag.DurationVar(&o.length, "for", 10*time.Minute, "length of the chaos")
	flag.IntVar(&o.messages, "messages", 20_000, "messages to submit, evenly over that time")
	flag.IntVar(&o.people, "people", 1000, "people whom campaigns go to")
	flag.IntVar(&o.campaigns, "campaigns", 20, "campaigns to send, two at a time, over most of that time")
	flag.IntVar(&o.digests, "digests", 6000, "events of digests to hand in, evenly over that time")
	flag.IntVar(&o.readers, "readers", 300, "readers of digests")
	flag.IntVar(&o.apis, "apis", 2, "processes with the role api")
	flag.IntVar(&o.workers, "workers", 3, "processes with the role worker")
	flag.IntVar(&o.receivers, "receivers", 2, "webhook endpoints")
	flag.IntVar(&o.partitions, "partitions", 0,
		"partitions of the outbox (redis.partitions); 0: 1, and 6 with -cluster")
	flag.BoolVar(&o.cluster, "cluster", false,
		"Redis is a Cluster of three masters with a replica each; masters die, and processes are cut off from it")
	flag.DurationVar(&o.lease, "lease", 4*time.Second,
		"how long a silent worker holds a message (delivery.lease)")
	flag.Float64Var(&o.calm, "calm", 1, "multiplies the times without trouble: 0.5 is twice the storm")
	flag.DurationVar(&o.progress, "progress", 5*time.Second, "how often to write a line of progress")
	flag.BoolVar(&o.keep, "keep", false, "keep the directory with the logs of all processes")
	rig.Main("chaos", func(ctx context.Context) error {
		if o.partitions == 0 {
			o.partitions = 1
			if o.cluster {
				o.partitions = 2 * masters // with fewer than four, all may fall on two of the masters
			}
		}
		return run(ctx, os.Stdout, o)
	})
}
