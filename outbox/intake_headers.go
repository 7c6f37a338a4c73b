package outbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

// takeHeaders moves the headers of a request that mean one of its fields, and control headers, to these
// fields. A header that differs from its field is wrong.
func takeHeaders(req *api.SubmitRequest) (wrong faults) {
	if len(req.Headers) == 0 {
		return nil
	}
	zone, err := schedule.Zone(req.TZ)
	if err != nil {
		zone = time.UTC
	}
	d := message.Draft{Subject: req.Subject, MessageID: req.MessageID, InReplyTo: req.InReplyTo,
		References: req.References, ReplyTo: addresses(req.ReplyTo), Headers: message.HeadersOf(req.Headers)}
	given := d.Headers
	control, wrong := message.TakeHeaders(&d, zone)
	req.Subject, req.MessageID, req.InReplyTo, req.References = d.Subject, d.MessageID, d.InReplyTo, d.References
	req.ReplyTo, req.Headers = nil, api.Headers{}
	for _, a := range d.ReplyTo {
		req.ReplyTo = append(req.ReplyTo, api.Address(a))
	}
	for _, h := range d.Headers {
		req.Headers[h.Name] = append(req.Headers[h.Name], api.HeaderValue(h.Value))
	}
	differs := func(key, purpose string) {
		i := slices.IndexFunc(given, func(h message.Header) bool {
			return strings.HasSuffix(strings.ToLower(h.Name), strings.ToLower("-"+purpose)) &&
				message.IsControl(h.Name)
		})
		wrong.add(key, "differs from headers.%s", given[i].Name)
	}
	if at := control.SendAt; !at.IsZero() {
		if req.SendAt != nil && !req.SendAt.Equal(at) {
			differs("sendAt", "Send-At")
		}
		req.SendAt = &at
	}
	if track := control.TrackingEnabled; track != nil {
		if req.TrackingEnabled != nil && *req.TrackingEnabled != *track {
			differs("trackingEnabled", "Tracking-Enabled")
		}
		req.TrackingEnabled = track
	}
	takeControl(&req.DeliveryAttempts, control.DeliveryAttempts, "deliveryAttempts", "Delivery-Attempts",
		differs)
	takeControl(&req.Gateway, control.Gateway, "gateway", "Gateway", differs)
	takeControl(&req.IdempotencyKey, control.IdempotencyKey, "idempotencyKey", "Idempotency-Key", differs)
	takeControl(&req.Lane, api.Lane(control.Lane), "lane", "Lane", differs)
	takeControl(&req.Priority, api.Priority(control.Priority), "priority", "Priority", differs)
	return wrong
}

// takeControl sets an empty field to the value of a control header. If both have one, they must be equal.
func takeControl[T comparable](field *T, value T, key, purpose string, differs func(key, purpose string)) {
	if *field != *new(T) && value != *new(T) && *field != value {
		differs(key, purpose)
	}
	*field = cmp.Or(*field, value)
}
