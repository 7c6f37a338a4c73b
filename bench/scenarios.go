package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// restFor is how long an idle process is watched.
const restFor = 20 * time.Second

// atRest measures an idle process, once it has done what it does after its start.
func atRest(ctx context.Context, b *bed, _ int) (values, error) {
	if err := rig.Wait(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	got, err := b.costs(ctx, restFor.Seconds(), func() error { return rig.Wait(ctx, restFor) })
	return append(got, value{"memory, MB", float64(b.postroom.Memory()) / 1e6}), err
}

// accept measures submits while the queue is paused, and the memory that waiting messages take.
func accept(ctx context.Context, b *bed, n int) (values, error) {
	if err := b.pause(ctx, true); err != nil {
		return nil, err
	}
	empty, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	got, err := b.each(ctx, n, func() error { return rig.InParallel(ctx, n, clients, b.submitNow) })
	if err != nil {
		return nil, err
	}
	full, err := b.memory(ctx)
	return append(got, value{"bytes of Redis a message", float64(full-empty) / float64(n)}), err
}

// drain measures the delivery of what was accepted before.
func drain(ctx context.Context, b *bed, n int) (values, error) {
	if err := b.pause(ctx, true); err != nil {
		return nil, err
	}
	if err := rig.InParallel(ctx, n, clients, b.submitNow); err != nil {
		return nil, err
	}
	if err := b.settled(ctx); err != nil {
		return nil, err
	}
	return b.each(ctx, n, func() error {
		if err := b.pause(ctx, false); err != nil {
			return err
		}
		return b.arrived(ctx, n)
	})
}

// submit measures submits that are delivered immediately.
func submit(ctx context.Context, b *bed, n int) (values, error) {
	return b.each(ctx, n, func() error {
		if err := rig.InParallel(ctx, n, clients, b.submitNow); err != nil {
			return err
		}
		return b.arrived(ctx, n)
	})
}

// steadyFor is how long submits at a steady rate last. Submits in the first part are not counted, so that
// deferred work has come to its usual pace.
const steadyFor, steadyAfter = 20 * time.Second, 12 * time.Second

// steadily measures submits at a steady rate.
func steadily(perSecond int) func(context.Context, *bed, int) (values, error) {
	return func(ctx context.Context, b *bed, _ int) (values, error) {
		first := perSecond * int(steadyAfter.Seconds())
		if _, err := rig.Steadily(ctx, first, perSecond, b.submitNow); err != nil {
			return nil, err
		}
		n := perSecond * int(steadyFor.Seconds())
		var took rig.Quantiles
		got, err := b.costs(ctx, float64(n), func() (err error) {
			took, err = rig.Steadily(ctx, n, perSecond, b.submitNow)
			return err
		})
		if err != nil {
			return nil, err
		}
		return append(got, millis("submit p50, ms", took.P50), millis("submit p99, ms", took.P99)),
			b.arrived(ctx, first+n)
	}
}

func millis(name string, d time.Duration) value { return value{name, d.Seconds() * 1000} }

// pickup measures how long a message takes from its submit to the relay while nothing else happens.
func pickup(ctx context.Context, b *bed, _ int) (values, error) {
	took := make([]time.Duration, 100)
	for i := range took {
		began := time.Now()
		if err := b.submitNow(ctx, i); err != nil {
			return nil, err
		}
		err := rig.Until(ctx, 10*time.Second, 50*time.Microsecond, func() (bool, error) {
			return b.relay.Count() > i, nil
		})
		if err != nil {
			return nil, fmt.Errorf("message %d did not arrive: %w", i, err)
		}
		took[i] = time.Since(began)
		if err := rig.Wait(ctx, time.Duration(7+i%13)*time.Millisecond); err != nil {
			return nil, err
		}
	}
	q := rig.QuantilesOf(took)
	return values{millis("p50, ms", q.P50), millis("p99, ms", q.P99)}, nil
}

// list measures the slowest page of an outbox with 10,000 scheduled messages.
func list(ctx context.Context, b *bed, _ int) (values, error) {
	const n = 10_000
	later := time.Now().Add(time.Hour)
	if err := rig.InParallel(ctx, n, clients, func(ctx context.Context, i int) error {
		return b.submit(ctx, i, &later)
	}); err != nil {
		return nil, err
	}
	var slowest time.Duration
	for _, page := range []int{0, 1, n / 40, n/20 - 1} {
		began := time.Now()
		got, err := api.ListOutbox.Do(ctx, b.client, api.OutboxQuery{Page: page, PageSize: 20})
		if err != nil {
			return nil, err
		}
		if got.Total != n || len(got.Messages) != 20 {
			return nil, fmt.Errorf("page %d has %d of %d messages, want 20 of %d", page, len(got.Messages),
				got.Total, n)
		}
		slowest = max(slowest, time.Since(began))
	}
	return values{millis("slowest page, ms", slowest)}, nil
}

// bulk measures mail merges.
func bulk(ctx context.Context, b *bed, n int) (values, error) {
	merge := min(n, 1000)
	n = n / merge * merge
	return b.each(ctx, n, func() error {
		err := rig.InParallel(ctx, n/merge, 2, func(ctx context.Context, k int) error {
			r := api.SubmitRequest{Subject: "bench {{params.number}}", Text: body, Lane: api.Bulk}
			for i := range merge {
				r.MailMerge = append(r.MailMerge, api.MailMergeEntry{To: api.Address{Address: person(k*merge + i)},
					Params: fmt.Appendf(nil, `{"number": %d}`, i)})
			}
			answer, err := api.Submit.Do(ctx, b.client, r)
			if err == nil && len(answer.MailMerge) != merge {
				err = fmt.Errorf("%d answers to %d entries", len(answer.MailMerge), merge)
			}
			for _, entry := range answer.MailMerge {
				if !entry.Success {
					return fmt.Errorf("entry to %s: %s", entry.To.Address, entry.Error)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		return b.arrived(ctx, n)
	})
}

// events is how many events each digest has.
const events = 5

// digests measures digests of events that wait: from the wish to mail each reader to the relay.
func digests(ctx context.Context, b *bed, n int) (values, error) {
	n = max(n/10, 1)
	weekly := &api.DigestPreference{Mode: "weekly"}
	err := rig.InParallel(ctx, n, clients, func(ctx context.Context, i int) error {
		mine := person(i)
		_, err := api.PutDigestRecipient.Do(ctx, b.client, api.DigestRecipientRequest{Email: &mine,
			Preferences: map[string]*api.DigestPreference{"*": weekly}}, strconv.Itoa(i))
		if err != nil {
			return err
		}
		var r api.DigestEventsRequest
		for k := range events {
			r.Events = append(r.Events, api.DigestEvent{Recipient: strconv.Itoa(i), Category: "comment",
				EntityType: "post", EntityID: strconv.Itoa(k), Title: "Spring in Bern",
				URL: "https://www.example.com/posts/" + strconv.Itoa(k)})
		}
		_, err = api.TakeDigestEvents.Do(ctx, b.client, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := b.settled(ctx); err != nil {
		return nil, err
	}
	return b.each(ctx, n, func() error {
		err := rig.InParallel(ctx, n, clients, func(ctx context.Context, i int) error {
			_, err := api.SendDigest.Do(ctx, b.client, api.DigestAccount{}, strconv.Itoa(i))
			return err
		})
		if err != nil {
			return err
		}
		return b.arrived(ctx, n)
	})
}

// person is the address of a recipient.
func person(i int) string { return fmt.Sprintf("ann.%d@mail%d.example", i, i%300) }

func (b *bed) submit(ctx context.Context, i int, at *time.Time) error {
	_, err := api.Submit.Do(ctx, b.client, api.SubmitRequest{To: api.Addresses{{Address: person(i)}},
		Subject: "bench", Text: body, SendAt: at})
	return err
}

func (b *bed) submitNow(ctx context.Context, i int) error { return b.submit(ctx, i, nil) }

// arrived waits until the relay has n messages. More of them are an error.
func (b *bed) arrived(ctx context.Context, n int) error {
	err := rig.Until(ctx, 10*time.Minute, often, func() (bool, error) { return b.relay.Count() >= n, nil })
	if got := b.relay.Count(); got != n {
		return fmt.Errorf("the relay has %d of %d messages: %w", got, n, err)
	}
	return nil
}

// pause pauses or resumes the queue of submits.
func (b *bed) pause(ctx context.Context, paused bool) error {
	_, err := api.PutQueue.Do(ctx, b.client, api.QueuePatch{Paused: &paused}, "submit")
	return err
}

// memory is what the keys of Redis take, in bytes: its memory in use changes with the buffers of its clients,
// too.
func (b *bed) memory(ctx context.Context) (sum int, err error) {
	for cursor, more := uint64(0), true; more; more = cursor > 0 {
		var keys []string
		if keys, cursor, err = b.DB.Scan(ctx, cursor, "*", 1000).Result(); err != nil {
			return 0, err
		}
		sizes, err := b.DB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range keys {
				pipe.MemoryUsage(ctx, key, 0) // with all its elements
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // a key may be gone
			return 0, err
		}
		for _, size := range sizes {
			sum += int(size.(*redis.IntCmd).Val())
		}
	}
	return sum, nil
}
