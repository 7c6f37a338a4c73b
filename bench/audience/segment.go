package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/audience"
	"github.com/postroom/postroom/audience/segment"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/sendlog"
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

// choose looks for the people of a campaign: those who opened another, one in a hundred.
func (h *house) choose(ctx context.Context) error {
	if err := h.mailed.open(ctx, h.people); err != nil {
		return err
	}
	_, err := h.of.Segments.Create(ctx, "", api.Segment{Segment: "opened", Name: "Opened",
		Rule: []byte(`{"campaign":"spring","did":"opened"}`)})
	if err != nil {
		return err
	}
	finder := audience.Finder{Subscribers: h.of}
	c := h.begin()
	choice, err := finder.Choose(ctx, audience.Selection{Account: audience.DefaultAccount,
		Lists: []string{"weekly"}, Segments: []string{"opened"}})
	if err != nil {
		return err
	}
	found := 0
	for from, end := uint32(0), uint32(h.people); from < end; {
		people, next, err := finder.People(ctx, choice, from, end, 64)
		if err != nil {
			return err
		}
		found, from = found+len(people), next
	}
	h.tell(c, "people who opened a campaign, looked for among all", "at least 170000", h.people, 170_000)
	rig.Tell("found", fmt.Sprint(found))
	return nil
}
