package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// emailEngineBest is the highest rate, in messages a second, that EmailEngine 2.79.2 reached from submit to
// SMTP on two cores.
const emailEngineBest = 32

func main() {
	messages := flag.Int("messages", 20_000, "messages of a throughput run")
	senders := flag.Int("senders", 50, "concurrent senders")
	campaign := flag.String("campaign", "", "measure only a campaign of this mail: text or html")
	people := flag.Int("people", 100_000, "people of the campaign")
	profile := flag.String("profile", "", "file for a profile of the campaign, with the relay in the same process")
	rig.Main("bench", func(ctx context.Context) error {
		if *campaign != "" {
			return measureCampaign(ctx, *campaign, *people, *profile)
		}
		if err := againstSlowRelay(ctx, *messages/5, *senders); err != nil {
			return err
		}
		return againstSink(ctx, *messages, *senders)
	})
}

// againstSlowRelay compares throughput with a slow relay: relays write a message to disk before they answer.
func againstSlowRelay(ctx context.Context, messages, senders int) error {
	relay, err := testsmtp.New(testsmtp.Options{
		Discard: true, Respond: func(c testsmtp.Command) testsmtp.Action {
			if c.Verb == "DOT" {
				return testsmtp.Action{Delay: 10 * time.Millisecond}
			}
			return testsmtp.Action{}
		}})
	if err != nil {
		return err
	}
	defer relay.Close()
	raw, err := rawRate(ctx, relay.Addr(), 0, messages, senders)
	if err != nil {
		return err
	}
	return withPostroom(ctx, relay, func(p *postroom) error {
		through, err := p.throughput(ctx, relay, messages, senders)
		if err != nil {
			return err
		}
		rig.Title("A relay that takes 10 ms for each message, over 10 connections")
		rig.Tell("the SMTP client alone", rig.PerSecond(raw))
		rig.Tell("submit over HTTP to SMTP", rig.PerSecond(through))
		rig.Row("  ÷ the client alone", fmt.Sprintf("%.2f", through/raw), "at least 0.33", through/raw >= 1.0/3)
		return nil
	})
}

// againstSink measures with a relay that costs nothing, so that only Postroom is measured.
func againstSink(ctx context.Context, messages, senders int) error {
	sink, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	defer sink.Close()
	raw, err := rawRate(ctx, sink.Addr(), 0, messages, senders)
	if err != nil {
		return err
	}
	return withPostroom(ctx, sink, func(p *postroom) error {
		before := rig.Self().CPU()
		through, err := p.throughput(ctx, sink, messages, senders)
		used := rig.Self().CPU() - before
		if err != nil {
			return err
		}
		rig.Title("A sink on the same machine that takes everything at once")
		rig.Tell("the SMTP client alone", rig.PerSecond(raw))
		rig.Tell("submit over HTTP to SMTP", rig.PerSecond(through))
		rig.Row("  ÷ the client alone", fmt.Sprintf("%.2f", through/raw), "at least 0.33", through/raw >= 1.0/3)
		rig.Row("  ÷ EmailEngine's best", fmt.Sprintf("%.0f", through/emailEngineBest), "at least 60",
			through/emailEngineBest >= 60)
		rig.Tell("  CPU time a message, client and sink included, Redis not",
			(used / time.Duration(messages)).Round(time.Microsecond).String())
		return p.latencies(ctx, sink)
	})
}

// latencies measures the delays that a user sees.
func (p *postroom) latencies(ctx context.Context, sink *testsmtp.Server) error {
	accept, err := rig.Steadily(ctx, 5000, 500, p.submitNow)
	if err != nil {
		return err
	}
	rig.Row("accept at 500 submits/s, p50 / p99", accept.String(), "p99 under 10ms",
		accept.P99 < 10*time.Millisecond)
	pickup, err := p.pickup(ctx, sink, 100)
	if err != nil {
		return err
	}
	rig.Row("idle system, submit to relay, p50 / p99", pickup.String(), "p50 under 10ms",
		pickup.P50 < 10*time.Millisecond)
	list, err := p.list(ctx, 10_000)
	if err != nil {
		return err
	}
	rig.Row("GET /v1/outbox, 10,000 queued, slowest page", list.String(), "under 50ms",
		list < 50*time.Millisecond)
	return nil
}

// postroom is a Postroom with an embedded Redis.
type postroom struct{ client *api.Client }

// withPostroom runs a Postroom that sends to a relay while do runs.
func withPostroom(ctx context.Context, relay *testsmtp.Server, do func(*postroom) error) error {
	dir, err := os.MkdirTemp("", "postroom-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	a, stop, err := rig.Within(ctx, map[string]string{"data": dir, "smtp": relay.URL(),
		"from": "bench@example.com"})
	if err != nil {
		return err
	}
	err = do(&postroom{client: rig.ClientWith(a.URL(), a.Token(), 200, 30*time.Second)})
	return cmp.Or(err, stop())
}
