// Digest measures digests: how many events are taken in, in batches and one by one beside them, what an event
// costs in Redis, and how fast mail goes out that is due for many readers at once, with single messages
// submitted beside it. Last, it mails one reader who has very many events.
//
// It starts its own redis-server, with a file, and Postroom in a process of its own. A relay in this process
// keeps no content. It counts the mails and the events that they tell.
package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

type plan struct{ readers, each, heavy, groups int }

func main() {
	var p plan
	flag.IntVar(&p.readers, "readers", 100_000, "readers whose digests are due at once")
	flag.IntVar(&p.each, "each", 20, "events of each of them, about five things")
	flag.IntVar(&p.heavy, "heavy", 1_000_000, "events of one more reader")
	flag.IntVar(&p.groups, "groups", 10_000, "things that these are about")
	rig.Main("digest", func(ctx context.Context) error { return run(ctx, p) })
}

// house is a Postroom on a Redis, and a relay that counts.
type house struct {
	plan
	rig.Rig
	relay    *testsmtp.Server
	postroom *rig.Process
	client   *api.Client
	digests  atomic.Int64 // mails of digests that the relay took
	first    atomic.Int64 // when it took the first one, Unix ms
	due      time.Time    // when the digests are
}

const batch = 1000

func run(ctx context.Context, p plan) error {
	h := &house{plan: p}
	defer h.Close()
	var err error
	if h.relay, err = testsmtp.New(testsmtp.Options{Discard: true, Respond: h.respond}); err != nil {
		return err
	}
	h.OnClose(h.relay.Close)
	if err := h.StartRedis(ctx, "", "digest-"); err != nil {
		return err
	}
	process, url, err := h.StartPostroom("all", h.relay.URL(), map[string]string{"digest.stagger": "0s",
		"serviceUrl": "https://app.example.com"})
	if err != nil {
		return err
	}
	h.postroom, h.client = process, rig.Client(url, 40, time.Minute)
	fmt.Printf("machine: %d processors, %s; %d readers with %d events\n", runtime.NumCPU(), runtime.Version(),
		p.readers, p.each)
	for _, step := range []func(context.Context) error{h.take, h.send, h.submit, h.sendHeavy} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// respond counts the mails of readers.
func (h *house) respond(c testsmtp.Command) testsmtp.Action {
	if c.Verb == "RCPT" && strings.HasPrefix(c.Arg, "r") {
		h.digests.Add(1)
		h.first.CompareAndSwap(0, time.Now().UnixMilli())
	}
	return testsmtp.Action{}
}

// event is the event number n of a reader, about one of some things.
func event(category string, reader, n, things int) api.DigestEvent {
	return api.DigestEvent{Recipient: "r" + strconv.Itoa(reader), Email: fmt.Sprintf("r%d@example.net", reader),
		Category: category, EntityType: "post", EntityID: strconv.Itoa(n % things),
		Title: "A walk by the lake in autumn", URL: "https://app.example.com/p/" + strconv.Itoa(n%things),
		Actor:          &api.DigestActor{ID: "u" + strconv.Itoa(n%977), Name: "Ann Smith"},
		IdempotencyKey: fmt.Sprintf("%s%d.%d", category[:1], reader, n)}
}

// slowest is a rate at which events come in at least, of a second.
const slowest = 8000

// take hands in the events of all readers: most as fast as they are taken, the last at a steady rate with
// single ones beside them. All are due at one minute, when this is over.
func (h *house) take(ctx context.Context) error {
	rig.Title("events")
	all := h.readers * h.each
	h.due = time.Now().UTC().Add(time.Duration(all/slowest)*time.Second + 90*time.Second).Truncate(time.Minute)
	hour, minute := h.due.Hour(), h.due.Minute()
	_, err := api.CreateDigestKind.Do(ctx, h.client, api.DigestKind{Category: "comment",
		Preference: &api.DigestPreference{Mode: "daily", Hour: &hour, Minute: &minute}})
	if err != nil {
		return err
	}
	before, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	cpu, redis, began := h.postroom.CPU(), h.Redis.CPU(), time.Now()
	steady := min(all/batch/2, 5*steadyBatches)
	fast := all/batch - steady
	if err := rig.InParallel(ctx, fast, 4, h.batch); err != nil {
		return err
	}
	rate := float64(fast*batch) / time.Since(began).Seconds()
	single, err := h.singles(ctx, fast, steady)
	if err != nil {
		return err
	}
	after, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	rig.Row("events in batches of 1,000", fmt.Sprintf("%.0f/s", rate), "at least 20,000/s", rate >= 20_000)
	rig.Row("single events beside 20,000/s, p50 / p99", single.String(), "p99 under 20 ms",
		single.P99 < 20*time.Millisecond)
	bytes := float64(after-before) / float64(all)
	rig.Row("Redis, of an event, all in", fmt.Sprintf("%.0f B", bytes), "at most 300 B", bytes <= 300)
	each := func(used time.Duration) float64 { return float64(used.Microseconds()) / float64(all) }
	rig.Tell("processor time of an event, Postroom + Redis",
		fmt.Sprintf("%.1f + %.1f us", each(h.postroom.CPU()-cpu), each(h.Redis.CPU()-redis)))
	return nil
}

// steadyBatches is how many batches a second are handed in beside single events.
const steadyBatches = 20

// singles hands in batches from number first on, at a steady rate, and returns how long single events take
// beside them.
func (h *house) singles(ctx context.Context, first, batches int) (rig.Quantiles, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := rig.Steadily(ctx, batches, steadyBatches, func(ctx context.Context, n int) error {
			return h.batch(ctx, first+n)
		})
		return err
	})
	var single rig.Quantiles
	group.Go(func() (err error) {
		const rate = 100
		single, err = rig.Steadily(ctx, batches*rate/steadyBatches, rate, func(ctx context.Context, n int) error {
			_, err := api.TakeDigestEvents.Do(ctx, h.client, api.DigestEventsRequest{
				DigestEvent: event("comment", h.readers+n, 0, 5)})
			return err
		})
		return err
	})
	err := group.Wait()
	return single, err
}

// batch hands in the events of batch number b.
func (h *house) batch(ctx context.Context, b int) error {
	return h.batchOf(ctx, "comment", b, h.readers)
}

// batchOf hands in batch number b of the events of so many readers.
func (h *house) batchOf(ctx context.Context, category string, b, readers int) error {
	list := make([]api.DigestEvent, batch)
	for i := range list {
		n := b*batch + i
		list[i] = event(category, n%readers, n/readers, 5)
	}
	answer, err := api.TakeDigestEvents.Do(ctx, h.client, api.DigestEventsRequest{Events: list})
	for _, r := range answer.Events {
		if err == nil && !r.Success {
			err = fmt.Errorf("an event was refused: %s", r.Error)
		}
	}
	return err
}

// send waits until all digests are due, and for their mails. Single messages are submitted before and beside.
func (h *house) send(ctx context.Context) error {
	rig.Title("digests")
	alone, err := h.submits(ctx, 500)
	if err != nil {
		return err
	}
	if time.Now().After(h.due) {
		return fmt.Errorf("the events came in after they were due at %s; use fewer -readers", h.due)
	}
	if err := rig.Wait(ctx, time.Until(h.due)); err != nil {
		return err
	}
	cpu, redis, had, began := h.postroom.CPU(), h.Redis.CPU(), h.digests.Load(), time.Now()
	beside, err := h.submits(ctx, 500)
	if err != nil {
		return err
	}
	if err := rig.Until(ctx, 20*time.Minute, 100*time.Millisecond, func() (bool, error) {
		return h.digests.Load() >= int64(h.readers), nil
	}); err != nil {
		return fmt.Errorf("%d of %d digests were mailed: %w", h.digests.Load(), h.readers, err)
	}
	took := time.Since(began)
	wait := time.UnixMilli(h.first.Load()).Sub(h.due)
	rig.Row("the first mail, after its time", rig.Round(wait).String(), "at most 2 s", wait <= 2*time.Second)
	n := float64(int64(h.readers) - had)
	rig.Tell("digests mailed", fmt.Sprintf("%.0f/s", n/took.Seconds()))
	rig.Tell("processor time of a digest, Postroom + Redis", fmt.Sprintf("%.0f + %.0f us",
		float64((h.postroom.CPU()-cpu).Microseconds())/n, float64((h.Redis.CPU()-redis).Microseconds())/n))
	_, most := h.postroom.Resident()
	rig.Row("memory of Postroom", fmt.Sprintf("%d MB", most>>20), "under 200 MB", most < 200<<20)
	limit := alone.P99*3/2 + 10*time.Millisecond
	rig.Row("single submits, p50 / p99, beside (alone "+alone.String()+")", beside.String(),
		"p99 at most "+rig.Round(limit).String(), beside.P99 <= limit)
	return nil
}

// submits submits single messages, 100 a second, and returns the times until their answers.
func (h *house) submits(ctx context.Context, n int) (rig.Quantiles, error) {
	return rig.Steadily(ctx, n, 100, func(ctx context.Context, i int) error {
		_, err := api.Submit.Do(ctx, h.client, api.SubmitRequest{To: api.Addresses{{Address: fmt.Sprintf(
			"single%d@example.net", i)}}, Subject: "A receipt", Text: "Thank you."})
		return err
	})
}

// submit measures the way of digests into the outbox alone: their mail waits there meanwhile.
func (h *house) submit(ctx context.Context) error {
	readers := min(h.readers, 10_000)
	rig.Title(fmt.Sprintf("digests of %d readers, handed to the outbox while it rests", readers))
	_, err := api.CreateDigestKind.Do(ctx, h.client, api.DigestKind{Category: "reply",
		Preference: &api.DigestPreference{Mode: "immediate"}})
	if err != nil {
		return err
	}
	if err := h.rest(ctx, true, "digests", "bulk"); err != nil {
		return err
	}
	if err := rig.InParallel(ctx, readers*h.each/batch, 4, func(ctx context.Context, b int) error {
		return h.batchOf(ctx, "reply", b, readers)
	}); err != nil {
		return err
	}
	cpu, redis, began := h.postroom.CPU(), h.Redis.CPU(), time.Now()
	if err := h.rest(ctx, false, "digests"); err != nil {
		return err
	}
	if err := rig.Until(ctx, 5*time.Minute, 100*time.Millisecond, func() (bool, error) {
		q, err := api.GetQueue.Do(ctx, h.client, "bulk")
		return q.Jobs.Paused >= readers, err
	}); err != nil {
		return err
	}
	took, n := time.Since(began), float64(readers)
	rate := n / took.Seconds()
	rig.Row("claimed, rendered and submitted", fmt.Sprintf("%.0f/s", rate), "at least 1,000/s", rate >= 1000)
	rig.Tell("processor time of a digest, Postroom + Redis", fmt.Sprintf("%.0f + %.0f us",
		float64((h.postroom.CPU()-cpu).Microseconds())/n, float64((h.Redis.CPU()-redis).Microseconds())/n))
	had := h.digests.Load()
	if err := h.rest(ctx, false, "bulk"); err != nil {
		return err
	}
	return rig.Until(ctx, 5*time.Minute, 100*time.Millisecond, func() (bool, error) {
		return h.digests.Load() >= had+int64(readers), nil
	})
}

// rest pauses or resumes queues.
func (h *house) rest(ctx context.Context, paused bool, queues ...string) error {
	for _, queue := range queues {
		if _, err := api.PutQueue.Do(ctx, h.client, api.QueuePatch{Paused: &paused}, queue); err != nil {
			return err
		}
	}
	return nil
}

// sendHeavy mails the reader who has very many events.
func (h *house) sendHeavy(ctx context.Context) error {
	rig.Title("one reader with very many events")
	began := time.Now()
	reader := h.readers + 100_000
	err := rig.InParallel(ctx, h.heavy/batch, 2, func(ctx context.Context, b int) error {
		list := make([]api.DigestEvent, batch)
		for i := range list {
			list[i] = event("comment", reader, b*batch+i, h.groups)
		}
		_, err := api.TakeDigestEvents.Do(ctx, h.client, api.DigestEventsRequest{Events: list})
		return err
	})
	if err != nil {
		return err
	}
	rig.Tell("taken in", fmt.Sprintf("%.0f/s", float64(h.heavy)/time.Since(began).Seconds()))
	_, before := h.postroom.Resident()
	had := h.digests.Load()
	began = time.Now()
	if _, err := api.SendDigest.Do(ctx, h.client, api.DigestAccount{}, "r"+strconv.Itoa(reader)); err != nil {
		return err
	}
	if err := rig.Until(ctx, time.Minute, 10*time.Millisecond, func() (bool, error) {
		return h.digests.Load() > had, nil
	}); err != nil {
		return err
	}
	took := time.Since(began)
	_, after := h.postroom.Resident()
	rig.Row("from the wish to the relay", rig.Round(took).String(), "at most 1 s", took <= time.Second)
	rig.Row("memory that Postroom needed for it", fmt.Sprintf("%d MB", (after-before)>>20), "at most 64 MB",
		after-before <= 64<<20)
	return nil
}
