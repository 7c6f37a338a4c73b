package outbox

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/outbox/suppression"
)

// rcptSuppressed is a recipient that must not be sent to.
const rcptSuppressed = "suppressed"

// stops returns the suppressed recipients among which, by their index in the envelope.
func (s *store) stops(ctx context.Context, e envelope, lane api.Lane, which []int) (
	map[int]*suppression.Entry, error) {
	if s.Suppressions == nil || len(which) == 0 {
		return nil, nil
	}
	found, err := s.Suppressions.Check(ctx, suppression.Question{
		Account: e.Account, List: e.ListID, Bulk: lane == api.Bulk, Addresses: e.addresses(which),
	})
	if err != nil {
		return nil, err
	}
	stopped := map[int]*suppression.Entry{}
	for n, entry := range found {
		if entry != nil {
			stopped[which[n]] = entry
		}
	}
	return stopped, nil
}

// skipped describes suppressed recipients for a client; nil if there are none.
func skipped(e envelope, stopped map[int]*suppression.Entry) *api.Skipped {
	if len(stopped) == 0 {
		return nil
	}
	which := slices.Sorted(maps.Keys(stopped))
	first := stopped[which[0]]
	return &api.Skipped{Reason: string(first.Reason), ListID: first.List, Recipients: e.addresses(which)}
}

// suppressed adds events about suppressed recipients: one event for each reason.
func (c *changeEvents) suppressed(r row, stopped map[int]*suppression.Entry) error {
	byReason := map[string][]int{}
	for _, i := range slices.Sorted(maps.Keys(stopped)) {
		reason := string(stopped[i].Reason)
		byReason[reason] = append(byReason[reason], i)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		which := byReason[reason]
		err := c.add(event.MessageSuppressed,
			event.Cancelled{Message: r.about(which), Reason: reason, InDoubt: r.mayBeThere()}, which, 0, reason)
		if err != nil {
			return err
		}
	}
	return nil
}

// Explain describes an entry of the suppressions for the log.
func Explain(e *suppression.Entry) string {
	words := []string{"suppressed: " + string(e.Reason)}
	switch {
	case e.List != "":
		words = append(words, "from list "+e.List)
	case e.Account != "":
		words = append(words, "for account "+e.Account)
	}
	if e.Domain != "" {
		words = append(words, "all of "+e.Domain)
	}
	if e.Source != "" {
		words = append(words, "reported by "+e.Source)
	}
	return strings.Join(words, ", ")
}
