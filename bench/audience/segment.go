package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/segment"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// oneInHundred is who of all subscribers opened the campaign of the measurement.
const oneInHundred = 100

// mailed is a campaign of one run, as package newsletter would tell of it.
type mailed struct{ log *sendlog.Log }

var spring = sendlog.Run{Campaign: 1, Number: 1}

// Runs implements audience.Campaigns.
func (mailed) Runs(context.Context, string, string) (int, error) { return 1, nil }

// Engaged implements audience.Campaigns.
func (m mailed) Engaged(ctx context.Context, _, _ string, chunk int) (segment.Engaged, error) {
	e, err := m.log.Engaged(ctx, []sendlog.Run{spring}, chunk)
	return segment.Engaged{Got: e.Got, Opened: e.Opened, Clicked: e.Clicked}, err
}

// open notes that one in a hundred opened the campaign.
func (m mailed) open(ctx context.Context, people int) error {
	for chunk := range sendlog.Chunks(uint32(people)) {
		var notes []sendlog.Note
		for ordinal := chunk * sendlog.ChunkSize; ordinal < min(people, (chunk+1)*sendlog.ChunkSize); ordinal++ {
			if ordinal*7919%oneInHundred == 0 {
				notes = append(notes, sendlog.Note{Offset: ordinal % sendlog.ChunkSize, Bit: sendlog.Opened})
			}
		}
		if _, err := m.log.Note(ctx, spring, chunk, notes...); err != nil {
			return err
		}
	}
	return nil
}

// choose looks for the people of a campaign by what they did before, and by an attribute.
func (h *house) choose(ctx context.Context) error {
	if err := h.mailed.open(ctx, h.people); err != nil {
		return err
	}
	if err := h.walk(ctx, "opened", `{"campaign":"spring","did":"opened"}`); err != nil {
		return err
	}
	return h.walk(ctx, "seats", `{"attribute":"seats","is":7}`)
}

// walk makes a segment and looks for its people among all, as a campaign does.
func (h *house) walk(ctx context.Context, id, rule string) error {
	_, err := h.of.Segments.Create(ctx, "", api.Segment{Segment: id, Name: id, Rule: []byte(rule)})
	if err != nil {
		return err
	}
	finder := audience.Finder{Subscribers: h.of}
	c := h.begin()
	choice, err := finder.Choose(ctx, audience.Selection{Account: audience.DefaultAccount,
		Lists: []string{"weekly"}, Segments: []string{id}})
	if err != nil {
		return err
	}
	found, first := 0, time.Duration(0)
	for from, end := uint32(0), uint32(h.people); from < end; {
		people, next, err := finder.People(ctx, choice, from, end, 64)
		if err != nil {
			return err
		}
		if found, from = found+len(people), next; first == 0 && found > 0 {
			first = time.Since(c.began)
		}
	}
	h.tell(c, "people of the segment "+id+", looked for among all", "at least 170000", h.people, 170_000)
	rig.Row("until the first people are found", rig.Round(first).String(), "at most 2s", first <= 2*time.Second)
	rig.Tell("found", fmt.Sprint(found))
	return nil
}
