package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// The tags: every other message has one or the other.
const spring, autumn = "spring", "autumn"

// later is the distance of messages that wait for a time: one in a hundred.
const later = 24 * time.Hour

// filling is the duration of each submit, by its number, and its end.
type filling struct {
	took  []time.Duration
	done  []time.Duration // since the first submit
	count atomic.Int64
}

// fill submits the messages.
func (h *house) fill(ctx context.Context) error {
	var err error
	if h.empty, err = h.used(ctx); err != nil {
		return err
	}
	f := &filling{took: make([]time.Duration, h.o.messages), done: make([]time.Duration, h.o.messages)}
	before, err := h.load(ctx, h.server)
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go progress(watched, "submitted", h.o.messages, func() int { return int(f.count.Load()) })
	if err := h.submitAll(ctx, f); err != nil {
		return err
	}
	after, err := h.load(ctx, h.server)
	if err != nil {
		return err
	}
	f.tell(h.o.keyed)
	rig.Tell("submits refused, to be repeated later", fmt.Sprint(h.refused.Load()))
	after.since(before).tell("a submit", h.o.messages)
	return h.tellWorst(ctx, "while they were accepted")
}

func (h *house) submitAll(ctx context.Context, f *filling) error {
	began := time.Now()
	return rig.InParallel(ctx, len(f.took), h.o.clients, func(ctx context.Context, i int) error {
		sent := time.Now()
		if err := h.submit(ctx, h.request(i)); err != nil {
			return fmt.Errorf("submit %d: %w", i, err)
		}
		f.took[i], f.done[i] = time.Since(sent), time.Since(began)
		f.count.Add(1)
		return nil
	})
}

// submit submits a message, and repeats that while it is refused.
func (h *house) submit(ctx context.Context, req api.SubmitRequest) error {
	return rig.Persist(ctx, func() error {
		_, err := api.Submit.Do(ctx, h.client, req)
		return err
	}, func(string) { h.refused.Add(1) })
}

// request is one message of the backlog, like those an online shop sends.
func (h *house) request(i int) api.SubmitRequest {
	req := api.SubmitRequest{
		To: api.Addresses{{Name: fmt.Sprintf("Ann Miller %d", i),
			Address: fmt.Sprintf("ann.miller%d@example.net", i)}},
		Subject: fmt.Sprintf("Your order %d has been shipped", 1_000_000+i),
		Text:    text(i), Tags: []string{spring},
		Metadata: json.RawMessage(fmt.Sprintf(`{"order":%d}`, 1_000_000+i)),
	}
	if i%2 == 1 {
		req.Tags[0] = autumn
	}
	if h.o.keyed && i/2%2 == 1 {
		req.IdempotencyKey = fmt.Sprintf("order-shipped-%d", 1_000_000+i)
	}
	switch i % 100 {
	case 13:
		req.Account = shop
	case 57:
		at := time.Now().Add(later)
		req.SendAt = &at
	}
	return req
}

var words = strings.Fields(`your order parcel has been sent today and will arrive on Monday with our carrier please keep this letter for the warranty of two
	years invoice address number amount tax total paid card bank account thank you for shopping at questions answer reply write call us any time
	blue green small large shirt shoes lamp table chair book kettle mirror garden tools box of screws winter summer jacket gloves`)

// text is the text of a message: 2 KB of words in an order of its own.
func text(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // words of a text
	var b strings.Builder
	for b.Len() < 2048 {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
		if r.IntN(12) == 0 {
			fmt.Fprintf(&b, "%d\r\n", r.IntN(100_000))
		}
	}
	return b.String()
}

// tell compares the first tenth with the last.
func (f *filling) tell(keyed bool) {
	n := len(f.took)
	tenth := n / 10
	first := float64(tenth) / f.done[tenth-1].Seconds()
	last := float64(tenth) / (f.done[n-1] - f.done[n-tenth-1]).Seconds()
	rig.Tell("accepted, in all", rig.PerSecond(float64(n)/f.done[n-1].Seconds()))
	rig.Tell("accepted, the first tenth", rig.PerSecond(first))
	rig.Tell("accepted, the last tenth", rig.PerSecond(last))
	rig.Row("  last ÷ first", fmt.Sprintf("%.2f", last/first), "at least 0.8", last/first >= 0.8)
	for key, name := range []string{"without a key", "with a key"} {
		of := func(i int) bool { return !keyed || i/2%2 == key }
		if !keyed && key == 1 {
			break
		}
		early, late := f.quantiles(0, tenth, of), f.quantiles(n-tenth, n, of)
		rig.Tell("submit "+name+", first tenth, p50 / p99", early.String())
		rig.Tell("submit "+name+", last tenth, p50 / p99", late.String())
		ratio := late.P99.Seconds() / early.P99.Seconds()
		rig.Row("  p99, last ÷ first", fmt.Sprintf("%.2f", ratio), "at most 1.5", ratio <= 1.5)
	}
}

func (f *filling) quantiles(from, to int, of func(int) bool) rig.Quantiles {
	var took []time.Duration
	for i := from; i < to; i++ {
		if of(i) {
			took = append(took, f.took[i])
		}
	}
	return rig.QuantilesOf(took)
}

// progress writes a line every five seconds to standard error; the table goes to standard output.
func progress(ctx context.Context, what string, of int, count func() int) {
	began, tick := time.Now(), time.NewTicker(5*time.Second)
	defer tick.Stop()
	for before := count(); ; {
		select {
		case <-tick.C:
			n := count()
			fmt.Fprintf(os.Stderr, "%5.0fs  %d of %d %s, %d/s\n", time.Since(began).Seconds(), n, of, what,
				(n-before)/5)
			before = n
		case <-ctx.Done():
			return
		}
	}
}
