package outbox

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// prints returns the fingerprint of a request without defaults that are written out, so that a client may
// begin or cease to write them, and the one of the request as it is, which older keys have.
func (b *Batch) prints(asked api.SubmitRequest, of func(api.SubmitRequest) string) string {
	without, whole := of(b.withoutDefaults(asked)), of(asked)
	if without == whole {
		return whole
	}
	return without + " " + whole
}

// withoutDefaults removes the fields of a request that change nothing.
func (b *Batch) withoutDefaults(req api.SubmitRequest) api.SubmitRequest {
	if req.Lane == api.Transactional {
		req.Lane = ""
	}
	if req.Priority == api.Normal {
		req.Priority = ""
	}
	if isEmptyObject(req.Metadata) {
		req.Metadata = nil
	}
	if req.DeliveryAttempts == b.in.opts.Attempts() {
		req.DeliveryAttempts = 0
	}
	own := api.Address{Name: b.account.Name, Address: b.account.Email}
	if req.From != nil && *req.From == own {
		req.From = nil
	}
	if req.Render != nil && req.Render.Off && req.Template == "" && len(req.MailMerge) == 0 {
		req.Render = nil
	}
	req.Copy, req.SentMailPath = nil, ""
	req.Attachments = slices.Clone(req.Attachments)
	for i := range req.Attachments {
		req.Attachments[i].Encoding = ""
	}
	plain := b.shared
	plain.TrackOpens, plain.TrackClicks, plain.Track = nil, nil, nil
	usual, _ := b.in.additionsOf(plain, b.account)
	req.TrackOpens, req.TrackClicks, req.TrackingEnabled = nil, nil, nil
	if b.added.Opens != usual.Opens || b.added.Clicks != usual.Clicks {
		req.TrackOpens, req.TrackClicks = &b.added.Opens, &b.added.Clicks
	}
	return req
}

// isEmptyObject reports whether JSON is {}.
func isEmptyObject(raw json.RawMessage) bool {
	return strings.Join(strings.Fields(string(raw)), "") == "{}"
}
