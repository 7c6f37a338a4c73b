package webhooks

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// How many of an endpoint's newest deliveries a search reads, and how many at a time.
const (
	searched    = 2_000
	searchedPer = 250
)

// FindDeliveries returns a page of an endpoint's deliveries about messages that a query finds, newest
// first. Its errors are those of Options.Match. Only the newest 2,000 deliveries are searched; if there are
// more, the page is marked partial.
func (w *Webhooks) FindDeliveries(ctx context.Context, endpoint, q string, page, pageSize int) (
	api.DeliveryPage, error) {
	if w.options.Match == nil {
		return api.DeliveryPage{}, fault.New(fault.NotFound, "SearchOff", "There is no search index")
	}
	var found []api.Delivery
	partial := false
	for from := 0; ; from += searchedPer {
		next, err := w.Deliveries(ctx, endpoint, from/searchedPer, searchedPer)
		if err != nil {
			return api.DeliveryPage{}, err
		}
		meant, err := w.options.Match(ctx, q, messagesOf(next.Deliveries))
		if err != nil {
			return api.DeliveryPage{}, err
		}
		for _, d := range next.Deliveries {
			if meant[d.QueueID] {
				found = append(found, d)
			}
		}
		if partial = from+searchedPer < next.Total; !partial || from+searchedPer >= searched {
			break
		}
	}
	page, pageSize = max(page, 0), max(pageSize, 1)
	from := min(page, len(found)/pageSize+1) * pageSize
	return api.DeliveryPage{
		Total: len(found), Page: page, Pages: pages(len(found), pageSize), Partial: partial,
		Deliveries: found[min(from, len(found)):min(from+pageSize, len(found))],
	}, nil
}

// messagesOf returns the ids of the messages of these deliveries, each once.
func messagesOf(deliveries []api.Delivery) (ids []string) {
	for _, d := range deliveries {
		if d.QueueID != "" {
			ids = append(ids, d.QueueID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
