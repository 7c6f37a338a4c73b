package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// Many small lists: most accounts have a few large ones, and some have one for each of their customers.
const (
	smallLists = 1000
	members    = 1000
)

// scatter puts subscribers of all parts of the account on many small lists, by imports as a user would.
func (h *house) scatter(ctx context.Context) error {
	before, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	each := min(members, h.people)
	c := h.begin()
	for list := range smallLists {
		id := fmt.Sprintf("customer-%d", list)
		if _, err := h.of.Lists.Create(ctx, "", api.List{ListID: id, Name: id}); err != nil {
			return err
		}
		var file strings.Builder
		file.WriteString("email\n")
		for member := range each {
			// steps of one length reach every part of the account, and no subscriber twice
			file.Write(address(nil, (list*7919+member*(h.people/each))%h.people))
			file.WriteByte('\n')
		}
		got, err := h.of.Imports.Run(ctx, "", strings.NewReader(file.String()),
			api.SubscriberImportOptions{ListID: []string{id}, State: "subscribed", Consent: "I want news"})
		if err != nil || got.Changed != each {
			return fmt.Errorf("import of %s: %+v: %w", id, got, err)
		}
	}
	n := smallLists * each
	h.tell(c, fmt.Sprintf("%d lists of %d scattered subscribers", smallLists, each), "", n, 0)
	after, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	cost := float64(after-before) / float64(n)
	rig.Row("bytes a membership in Redis, the lists included", fmt.Sprintf("%.0f", cost), "at most 64",
		cost <= 64)
	return nil
}

// look reads pages of subscribers, one after another, as the pages and the API do.
func (h *house) look(ctx context.Context) error {
	rig.Title("pages of 20 subscribers")
	for _, q := range []struct {
		what string
		api.SubscriberQuery
	}{
		{"all", api.SubscriberQuery{}},
		{"of a small list", api.SubscriberQuery{ListID: "customer-7"}},
		{"of a segment, one in a hundred", api.SubscriberQuery{Segment: "opened"}},
		{"of a segment by attribute, one in fifty", api.SubscriberQuery{Segment: "seats"}},
		{"by text, which nobody has", api.SubscriberQuery{Search: "nobody has this"}},
		{"by address", api.SubscriberQuery{Search: string(address(nil, h.people/2))}},
	} {
		q.PageSize = 20
		var took []time.Duration
		for range 200 {
			began := time.Now()
			page, err := h.of.Page(ctx, "", q.SubscriberQuery)
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		slowest := slices.Max(took)
		rig.Row(fmt.Sprintf("slowest of %d, %s", len(took), q.what), slowest.Round(100*time.Microsecond).String(),
			"at most 100ms", slowest <= 100*time.Millisecond)
	}
	return nil
}
