package ui

import (
	"context"
	"fmt"
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
)

// queueWords are a queue in words, and where what is in it is listed.
type queueWords struct {
	Name, What string
	List       string // URL; empty: there is no list
	messages   bool   // the list has a filter for each state
}

var shownQueues = []queueWords{
	{"submit", "Transactional and bulk email. If you pause it, Postroom sends nothing.", "/outbox", true},
	{"bulk", "Bulk email, which is a part of submit", "/outbox?lane=bulk", true},
	{"notify", "Webhooks: events for endpoints", "/webhooks", false},
	{"documents", "Changes for the search index", "", false},
	{"digests", "Readers with waiting events, and digest runs", "/digests", false},
}

type queueRow struct {
	queueWords
	api.QueueStatus
}

// Of returns the URL of the messages in a state; empty: they are not listed by state.
func (q queueRow) Of(state api.State) string {
	if !q.messages {
		return ""
	}
	f := filter{State: state}
	if q.Name == queue.Bulk {
		f.Lane = api.Bulk
	}
	return f.URL()
}

// PerMinuteText returns the pace; empty: it is not known yet.
func (q queueRow) PerMinuteText() string {
	if q.PerMinute == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *q.PerMinute)
}

func (u *UI) queues(w http.ResponseWriter, r *http.Request) error {
	all, err := u.countQueues(r.Context())
	if err != nil {
		return err
	}
	rows := make([]queueRow, len(all))
	for i, q := range all {
		rows[i] = queueRow{shownQueues[i], q}
	}
	return u.show(w, r, http.StatusOK, "queues", "Queues", rows)
}

// countQueues counts the shown queues, in their order.
func (u *UI) countQueues(ctx context.Context) ([]api.QueueStatus, error) {
	all := make([]api.QueueStatus, len(shownQueues))
	for i, q := range shownQueues {
		var err error
		if all[i], err = u.Outbox.Queues.QueueStatus(ctx, q.Name); err == nil && q.Name == queue.Digests {
			err = u.Digests.Count(ctx, &all[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
