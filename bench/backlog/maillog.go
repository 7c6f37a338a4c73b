package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// mailLog measures the log of what was sent and cancelled.
func (h *house) mailLog(ctx context.Context) error {
	first, err := api.ListMessages.Do(ctx, h.client, api.LogQuery{PageSize: 1})
	if err != nil {
		return err
	}
	kinds, err := h.kinds(ctx)
	if err != nil {
		return err
	}
	ended := kinds["ended"]
	remembered := ended.keys - 1 // one of them is the list of all others
	rig.Title(fmt.Sprintf("The log of %d messages, %d of them ended", first.Total, remembered))
	total := kinds["ended"].total() + kinds["log"].total()
	rig.Tell("bytes of Redis for each that ended, their tables of keys not counted",
		bytes(float64(total)/float64(remembered)))
	rig.Tell("  its record", bytes(float64(ended.total())/float64(remembered)))
	if err := h.forgetWorst(ctx); err != nil {
		return err
	}
	middle, err := api.ListMessages.Do(ctx, h.client, api.LogQuery{Page: h.o.messages / 40})
	if err != nil {
		return err
	}
	for _, l := range []struct {
		name string
		q    api.LogQuery
	}{
		{"first page", api.LogQuery{}},
		{"page in the middle", api.LogQuery{Page: h.o.messages / 40}},
		{"in the middle, by cursor", api.LogQuery{Cursor: middle.Cursor}},
		{"those sent", api.LogQuery{Status: "sent"}},
		{"of an account", api.LogQuery{Account: shop}},
	} {
		err := h.timed(ctx, "GET /v1/messages, "+l.name, fastPage,
			func() error { _, err := api.ListMessages.Do(ctx, h.client, l.q); return err })
		if err != nil {
			return err
		}
	}
	err = h.timed(ctx, "GET /v1/messages, search that finds nothing (in 100,000)", 0, func() error {
		_, err := api.ListMessages.Do(ctx, h.client, api.LogQuery{Search: "nobody@example.org"})
		return err
	})
	if err != nil {
		return err
	}
	if err := h.html(ctx, middle.Messages[0].QueueID, middle.Messages[0].Envelope.To[0]); err != nil {
		return err
	}
	return h.tellWorst(ctx, "meanwhile")
}
