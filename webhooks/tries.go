package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
)

const (
	keptTries = 10  // attempts in the history of a delivery
	tryHead   = 512 // bytes kept of the response to each
	tryPrefix = "try:"
)

// try returns an attempt as the history of its delivery has it.
func (f finishing) try(ended time.Time, reason string) ([]byte, error) {
	raw, err := json.Marshal(api.DeliveryAttempt{
		Number: f.attempt, Date: ended.Add(-f.reply.latency).UTC().Truncate(time.Millisecond),
		StatusCode: f.reply.status, Latency: int(f.reply.latency.Milliseconds()),
		Response: message.Clip(f.reply.head, tryHead), Error: message.Clip(reason, tryHead),
	})
	if err != nil {
		return nil, fmt.Errorf("write attempt %d of a webhook delivery: %w", f.attempt, err)
	}
	return raw, nil
}

// triesOf returns the history of a delivery. The last answer is complete. A delivery whose first attempt
// succeeded has no stored history, because most are of this kind.
func triesOf(d api.Delivery, record map[string]string) []api.DeliveryAttempt {
	var all []api.DeliveryAttempt
	for field, text := range record {
		var one api.DeliveryAttempt
		if strings.HasPrefix(field, tryPrefix) && json.Unmarshal([]byte(text), &one) == nil {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b api.DeliveryAttempt) int { return a.Number - b.Number })
	switch last := len(all) - 1; {
	case last >= 0 && all[last].Number == d.Attempts:
		all[last].Response, all[last].Error = d.Response, d.Error
	case last < 0 && d.Status == statusDelivered && d.LastAttempt != nil:
		all = append(all, api.DeliveryAttempt{Number: d.Attempts, Date: *d.LastAttempt, StatusCode: d.StatusCode,
			Latency: d.Latency, Response: d.Response})
	}
	return all
}

// inTries reports whether the history of a delivery names a person.
func inTries(t *message.Traces, record map[string]string) bool {
	for field, text := range record {
		if strings.HasPrefix(field, tryPrefix) && t.In(text) {
			return true
		}
	}
	return false
}
