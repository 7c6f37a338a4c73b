// Command tracking measures how fast opens and clicks are answered, and their cost: it hits a Postroom on a
// real Redis, in one process or two, at a fixed rate, and beside it a bare server that answers with the same
// picture and does nothing else. Then it sends mail as fast as possible, alone and beside the hits.
// docs/performance.md has the results.
//
// It needs a redis-server on the machine, sends only to a sink of its own on the loopback interface, and
// stops by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// options are what the flags say.
type options struct {
	rate, messages, connections int
	apart                       bool
	length                      time.Duration
}

func main() {
	serveBare()
	var o options
	flag.IntVar(&o.rate, "rate", 5000, "hits a second")
	flag.DurationVar(&o.length, "for", 10*time.Second, "how long to hit")
	flag.IntVar(&o.messages, "messages", 6000, "messages to be opened, and of each run of sending")
	flag.IntVar(&o.connections, "connections", 64, "connections that hits come over")
	flag.BoolVar(&o.apart, "apart", false,
		"run one process that answers and one that works, instead of one for both")
	rig.Main("tracking", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	h := &house{o: o}
	defer h.Close()
	for _, step := range []func(context.Context) error{h.open, h.fill, h.answers, h.caughtUp, h.sendingBeside} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answers measures the response time of both servers in turn.
func (h *house) answers(ctx context.Context) error {
	rig.Title(fmt.Sprintf("%d hits/s over %d connections for %s, half of them opens, half clicks", h.o.rate,
		h.o.connections, h.o.length))
	if _, err := shoot(ctx, h.bareURL, h.o.connections, h.o.rate, time.Second, h.hit); err != nil { // warm
		return err
	}
	bare, err := shoot(ctx, h.bareURL, h.o.connections, h.o.rate, h.o.length, h.hit)
	if err != nil {
		return err
	}
	before := h.postroom.CPU()
	ours, err := shoot(ctx, h.url, h.o.connections, h.o.rate, h.o.length, h.hit)
	if err != nil {
		return err
	}
	used := h.postroom.CPU() - before
	h.hits += ours.hits
	rig.Tell("the bare server, p50 / p99 / slowest", bare.String())
	rig.Row("Postroom, p50 / p99 / slowest", ours.String(), "p99 under 10ms",
		ours.P99 < 10*time.Millisecond)
	rig.Tell("  p99 ÷ the bare server's", fmt.Sprintf("%.1f", float64(ours.P99)/float64(bare.P99)))
	rig.Row("  answered, of those asked for", fmt.Sprintf("%.0f/s", ours.rate()), "all",
		ours.rate() > 0.99*float64(h.o.rate))
	rig.Tell("  CPU time of the process that answers, for each hit", (used / time.Duration(ours.hits)).Round(
		time.Microsecond).String())
	return nil
}

// caughtUp waits until every hit is recorded on its message and counted.
func (h *house) caughtUp(ctx context.Context) error {
	began := time.Now()
	err := rig.Until(ctx, 2*time.Minute, often, func() (bool, error) { return h.counted(ctx) >= h.hits, nil })
	if err != nil {
		return fmt.Errorf("%d of %d hits were counted: %w", h.counted(ctx), h.hits, err)
	}
	rig.Tell("  all of them counted on their messages, after the last",
		time.Since(began).Round(100*time.Millisecond).String())
	return nil
}

// sendingBeside measures the highest rate of sending: alone, and beside hits to either server.
func (h *house) sendingBeside(ctx context.Context) error {
	rig.Title(fmt.Sprintf("Sending %d messages, as fast as possible, on the same machine", h.o.messages))
	alone, err := h.send(ctx)
	if err != nil {
		return err
	}
	rig.Tell("alone", rig.PerSecond(alone))
	for _, rate := range []int{h.o.rate / 10, h.o.rate} {
		besideBare, err := h.sendBeside(ctx, h.bareURL, rate)
		if err != nil {
			return err
		}
		beside, err := h.sendBeside(ctx, h.url, rate)
		if err != nil {
			return err
		}
		rig.Tell(fmt.Sprintf("beside %d hits/s to the bare server", rate), rig.PerSecond(besideBare))
		rig.Tell(fmt.Sprintf("beside %d hits/s to Postroom", rate), rig.PerSecond(beside))
		rig.Tell("  ÷ beside the bare server", fmt.Sprintf("%.2f", beside/besideBare))
		rig.Tell("  ÷ alone", fmt.Sprintf("%.2f", beside/alone))
	}
	return nil
}

// sendBeside sends while a server is hit.
func (h *house) sendBeside(ctx context.Context, url string, rate int) (float64, error) {
	hitting, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := shoot(hitting, url, h.o.connections, rate, time.Hour, h.hit)
		done <- err
	}()
	sent, err := h.send(ctx)
	stop()
	if failed := <-done; err == nil && hitting.Err() == nil {
		err = failed
	}
	return sent, err
}
