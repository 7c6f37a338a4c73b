package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// How many of an endpoint's newest deliveries a search reads, and how many at a time.
const (
	searched    = 2_000
	searchedPer = 250
)

// FindDeliveries returns a page of an endpoint's deliveries that a query selects, newest first. Without a
// status, or with pending, it looks only at the newest 2,000, and at the 2,000 finished deliveries that ended
// last. If there are more, the page is marked partial. It returns Invalid with the name of an invalid field,
// and Options.Match's errors.
func (w *Webhooks) FindDeliveries(ctx context.Context, endpoint string,
	q api.DeliveryQuery) (api.DeliveryPage,
	error) {
	if err := checkQuery(q); err != nil {
		return api.DeliveryPage{}, err
	}
	if q.Q = strings.TrimSpace(q.Q); q.Q != "" && w.options.Match == nil {
		return api.DeliveryPage{}, fault.New(fault.NotFound, "SearchOff", "There is no search index")
	}
	pages := api.PageQuery{Page: q.Page, PageSize: q.PageSize}
	if q.Q == "" && q.Status == "" && q.Event == "" {
		return w.Deliveries(ctx, endpoint, q.Page, pages.Size())
	}
	list := logKey(endpoint)
	if q.Status != "" && q.Status != statusPending { // a great many may be pending
		list = doneKey(endpoint)
	}
	var found []api.Delivery
	partial := false
	for from := 0; ; from += searchedPer {
		next, err := w.deliveries(ctx, endpoint, list, from, searchedPer)
		if err != nil {
			return api.DeliveryPage{}, err
		}
		some, err := w.selected(ctx, next.Deliveries, q)
		if err != nil {
			return api.DeliveryPage{}, err
		}
		found = append(found, some...)
		if partial = from+searchedPer < next.Total; !partial || from+searchedPer >= searched {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b api.Delivery) int { return b.Created.Compare(a.Created) })
	numbers, from, end := pages.Of(len(found))
	return api.DeliveryPage{PageNumbers: numbers, Partial: partial, Deliveries: found[from:end]}, nil
}

// Waiting counts the unfinished deliveries of endpoints, by endpoint.
func (w *Webhooks) Waiting(ctx context.Context, endpoints ...string) (map[string]int, error) {
	pipe := w.store.client.Pipeline()
	made, ended := make([]*redis.IntCmd, len(endpoints)), make([]*redis.IntCmd, len(endpoints))
	for i, id := range endpoints {
		made[i], ended[i] = pipe.ZCard(ctx, logKey(id)), pipe.ZCard(ctx, doneKey(id))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Away(fmt.Errorf("count the deliveries of webhook endpoints: %w", err))
	}
	found := make(map[string]int, len(endpoints))
	for i, id := range endpoints {
		found[id] = max(0, int(made[i].Val()-ended[i].Val()))
	}
	return found, nil
}

// Statuses are all states of deliveries.
func Statuses() []string {
	return []string{statusPending, statusDelivered, statusFailed, statusSkipped}
}

// checkQuery returns the invalid fields of a query.
func checkQuery(q api.DeliveryQuery) error {
	var wrong fault.Fields
	if q.Status != "" && !slices.Contains(Statuses(), q.Status) {
		wrong.Add("status", "must be %s or %s", strings.Join(Statuses()[:3], ", "), statusSkipped)
	}
	if q.Event != "" && !slices.Contains(event.Types(), event.Type(q.Event)) {
		wrong.Add("event", "isn't an event type")
	}
	return fault.InvalidFields(wrong)
}

// selected returns the deliveries that a query selects.
func (w *Webhooks) selected(ctx context.Context, all []api.Delivery, q api.DeliveryQuery) ([]api.Delivery,
	error) {
	all = slices.DeleteFunc(all, func(d api.Delivery) bool {
		return q.Status != "" && d.Status != q.Status || q.Event != "" && d.Event != q.Event
	})
	if q.Q == "" {
		return all, nil
	}
	meant, err := w.options.Match(ctx, q.Q, messagesOf(all))
	return slices.DeleteFunc(all, func(d api.Delivery) bool { return !meant[d.QueueID] }), err
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
