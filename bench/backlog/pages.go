package main

import (
	"context"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/postroom/postroom/api"
)

const (
	rounds   = 5                      // how often a request is made; the slowest counts
	fastPage = 100 * time.Millisecond // how long a page may take that is read off an index
)

// pages measures lists and counts of a large outbox.
func (h *house) pages(ctx context.Context) error {
	rig.Title("Looking at the backlog: the slowest of 5 requests")
	middle, err := api.ListOutbox.Do(ctx, h.client, api.OutboxQuery{Page: h.o.messages / 40})
	if err != nil {
		return err
	}
	lists := []struct {
		name string
		q    api.OutboxQuery
	}{
		{"first page", api.OutboxQuery{}},
		{"page 1,000", api.OutboxQuery{Page: min(1000, h.o.messages/20) - 1}},
		{"page in the middle", api.OutboxQuery{Page: h.o.messages / 40}},
		{"last page", api.OutboxQuery{Page: h.o.messages/20 - 1}},
		{"in the middle, by cursor", api.OutboxQuery{Cursor: middle.Cursor}},
		{"in the middle, by cursor, 1,000 rows", api.OutboxQuery{Cursor: middle.Cursor, PageSize: 1000}},
		{"of an account", api.OutboxQuery{Account: shop}},
		{"state waiting", api.OutboxQuery{State: api.Waiting}},
		{"state delayed", api.OutboxQuery{State: api.Delayed}},
		{"created in the last minute", api.OutboxQuery{CreatedAfter: time.Now().Add(-time.Minute)}},
	}
	for _, l := range lists {
		err := h.timed(ctx, "GET /v1/outbox, "+l.name, fastPage, func() error {
			page, err := api.ListOutbox.Do(ctx, h.client, l.q)
			if err == nil && len(page.Messages) == 0 && l.q.CreatedAfter.IsZero() {
				return fmt.Errorf("the page %q is empty", l.name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, r := range []struct {
		name string
		do   func() error
	}{
		{"GET /v1/stats", func() error {
			_, err := api.GetStats.Do(ctx, h.client, api.CounterQuery{})
			return err
		}},
		{"GET /v1/settings/queue/submit",
			func() error { _, err := api.GetQueue.Do(ctx, h.client, "submit"); return err }},
		{"GET /metrics", func() error { return h.get(ctx, "/metrics") }},
		{"GET / (the page of the outbox)", func() error { return h.get(ctx, "/") }},
		{"GET /admin/queues/api/queues (asynqmon)", func() error { return h.get(ctx, "/admin/queues/api/queues") }},
	} {
		if err := h.timed(ctx, r.name, fastPage, r.do); err != nil {
			return err
		}
	}
	if err := h.tellWorst(ctx, "meanwhile"); err != nil {
		return err
	}
	return h.searches(ctx)
}

// searches measures what reads every message there is, so that its total is exact.
func (h *house) searches(ctx context.Context) error {
	some := fmt.Sprintf("order %d ", 1_000_000+h.o.messages/2)
	for _, s := range []struct {
		name string
		q    api.OutboxQuery
	}{
		{"search that finds one", api.OutboxQuery{Search: some}},
		{"search that finds all", api.OutboxQuery{Search: "order"}},
		{"tag that half of them have", api.OutboxQuery{Tag: spring}},
		{"search in an account", api.OutboxQuery{Account: shop, Search: "order"}},
	} {
		err := h.timed(ctx, "GET /v1/outbox, "+s.name, 0,
			func() error { _, err := api.ListOutbox.Do(ctx, h.client, s.q); return err })
		if err != nil {
			return err
		}
	}
	now, most := h.door.Resident()
	rig.Tell("memory of the Postroom process, now and at most", megabytes(now)+", "+megabytes(most))
	return h.tellWorst(ctx, "while searching")
}

// timed makes a request a few times, or once when it takes long, and tells the slowest. A limit of zero asks
// for nothing.
func (h *house) timed(ctx context.Context, name string, limit time.Duration, do func() error) error {
	fmt.Fprintln(os.Stderr, name)
	var slowest time.Duration
	for i, began := 0, time.Now(); i < rounds && time.Since(began) < 5*time.Second; i++ {
		sent := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		slowest = max(slowest, time.Since(sent))
	}
	want := ""
	if limit > 0 {
		want = fmt.Sprintf("at most %s", limit)
	}
	rig.Row(name, round(slowest).String(), want, slowest <= limit)
	return ctx.Err()
}

// get asks for something that the client has no method for.
func (h *house) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+rig.Token)
	resp, err := h.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return nil
}
