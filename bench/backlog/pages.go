package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

const (
	rounds   = 5                      // repetitions of a request; the slowest counts
	fastPage = 100 * time.Millisecond // limit for a page that is read from an index
	fastHTML = 150 * time.Millisecond // limit for a page of html
	heavy    = 100_000                // limit for its size, in bytes
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
		{"state scheduled", api.OutboxQuery{State: api.Scheduled}},
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
	for _, r := range []struct{ path, what string }{
		{"/v1/stats", ""}, {"/v1/settings/queue/submit", ""}, {"/metrics", ""},
		{"/admin/queues/api/queues", " (asynqmon)"},
	} {
		if err := h.timed(ctx, "GET "+r.path+r.what, fastPage, h.get(ctx, r.path, math.MaxInt)); err != nil {
			return err
		}
	}
	if err := h.html(ctx, middle.Messages[0].QueueID, middle.Messages[0].Envelope.To[0]); err != nil {
		return err
	}
	if err := h.tellWorst(ctx, "meanwhile"); err != nil {
		return err
	}
	return h.searches(ctx)
}

// html measures the pages that people open. The message is one of those in the outbox or in the log.
func (h *house) html(ctx context.Context, queueID, address string) error {
	for _, path := range []string{"/", "/?days=30", "/outbox", "/outbox?state=waiting",
		"/outbox?state=scheduled", "/outbox?account=" + shop, "/log", "/log?status=queued",
		"/log?status=sent", "/log?account=" + shop, "/log?search=" + address, "/outbox?search=" + address,
		"/messages/" + queueID, "/to/" + address, "/replay", "/cancel?account=" + shop, "/queues", "/rates",
		"/status", "/accounts", "/accounts/" + shop, "/webhooks", "/gateways", "/suppressions", "/templates",
		"/lists", "/audience",
		"/segments", "/campaigns", "/digests", "/settings", "/audit"} {
		name := strings.NewReplacer(queueID, "<id>", address, "<address>").Replace("page " + path)
		if err := h.timed(ctx, name, fastHTML, h.get(ctx, path, heavy)); err != nil {
			return err
		}
	}
	return nil
}

// searches measures requests that read every message, so that their total is exact.
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
	now, most := h.server.Resident()
	rig.Tell("memory of the Postroom process, now and at most", megabytes(now)+", "+megabytes(most))
	return h.tellWorst(ctx, "while searching")
}

// timed makes a request a few times, or once if it takes long, and prints the slowest. A limit of zero
// requires nothing.
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
	rig.Row(name, rig.Round(slowest).String(), want, slowest <= limit)
	return ctx.Err()
}

// get requests a path that the client has no route for. A longer response is an error.
func (h *house) get(ctx context.Context, path string, longest int) func() error {
	return func() error {
		body, err := api.Fetch[[]byte]("GET "+path).Do(ctx, h.client)
		if err == nil && len(body) > longest {
			return fmt.Errorf("%s has %d bytes, more than %d", path, len(body), longest)
		}
		return err
	}
}
