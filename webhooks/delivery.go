package webhooks

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend/replies"
)

// The states of a delivery, in its record and in the API.
const (
	statusPending   = "pending"   // an attempt will be made: its task is in the queue
	statusDelivered = "delivered" // the endpoint accepted it
	statusFailed    = "failed"    // no attempt is left, or another cannot succeed
	statusSkipped   = "skipped"   // the endpoint was switched off or deleted, or an operator removed the task
)

// status returns the state of a delivery after an attempt with this outcome.
func (o outcome) status() string {
	switch o {
	case delivered:
		return statusDelivered
	case failed:
		return statusFailed
	}
	return statusPending
}

// Deliveries returns a page of an endpoint's deliveries, newest first, pending ones included. Pages count
// from 0.
func (w *Webhooks) Deliveries(ctx context.Context, endpoint string, page, pageSize int) (api.DeliveryPage,
	error) {
	page, pageSize = max(page, 0), max(pageSize, 1)
	return w.deliveries(ctx, endpoint, logKey(endpoint), page*pageSize, pageSize)
}

// deliveries reads deliveries that a list of an endpoint has.
func (w *Webhooks) deliveries(ctx context.Context, endpoint, list string, from,
	pageSize int) (api.DeliveryPage, error) {
	if _, err := w.exists(ctx, endpoint); err != nil {
		return api.DeliveryPage{}, err
	}
	if err := w.trim(ctx, endpoint); err != nil {
		return api.DeliveryPage{}, redisdb.Away(err)
	}
	ids, total, err := w.store.page(ctx, endpoint, list, from, pageSize)
	if err != nil {
		return api.DeliveryPage{}, redisdb.Away(err)
	}
	refs := make([]ref, len(ids))
	for i, id := range ids {
		refs[i] = ref{Endpoint: endpoint, Delivery: id}
	}
	records, err := w.store.read(ctx, refs...)
	if err != nil {
		return api.DeliveryPage{}, redisdb.Away(err)
	}
	numbers, _, _ := api.PageQuery{Page: from / pageSize, PageSize: pageSize}.Of(total)
	out := api.DeliveryPage{PageNumbers: numbers, Deliveries: make([]api.Delivery, 0, len(ids))}
	for i, record := range records {
		if len(record) > 0 { // otherwise it ended between the two reads
			out.Deliveries = append(out.Deliveries, showDelivery(refs[i], record))
		}
	}
	return out, w.addWaits(ctx, out.Deliveries)
}

// Delivery returns one delivery with the body that is sent.
func (w *Webhooks) Delivery(ctx context.Context, endpoint, id string) (api.Delivery, error) {
	if _, err := w.exists(ctx, endpoint); err != nil {
		return api.Delivery{}, err
	}
	r := ref{Endpoint: endpoint, Delivery: id}
	record, err := w.record(ctx, r)
	if err != nil {
		return api.Delivery{}, err
	}
	one := []api.Delivery{showDelivery(r, record)}
	if err := w.addWaits(ctx, one); err != nil {
		return api.Delivery{}, err
	}
	d := one[0]
	e, err := event.Parse([]byte(record["event"]))
	if err != nil {
		return api.Delivery{}, err
	}
	d.Log = triesOf(d, record)
	d.Body, err = writeBody(e, w.options.ServiceURL())
	return d, err
}

// Redeliver sends the event of a delivery again, as a new delivery with the webhook-id of the first. A
// receiver that has seen the event can recognize it by that id.
func (w *Webhooks) Redeliver(ctx context.Context, endpoint, id string) (api.Redelivered, error) {
	if err := w.active(ctx, endpoint); err != nil {
		return api.Redelivered{}, err
	}
	record, err := w.record(ctx, ref{Endpoint: endpoint, Delivery: id})
	if err != nil {
		return api.Redelivered{}, err
	}
	e, err := event.Parse([]byte(record["event"]))
	if err != nil {
		return api.Redelivered{}, err
	}
	o := order{ref: ref{Endpoint: endpoint, Delivery: e.ID + "-" + newID()[:10]}, raw: record["event"],
		again: e.ID}
	_, full, err := w.create(ctx, []order{o})
	switch {
	case err != nil:
		return api.Redelivered{}, redisdb.Away(err)
	case len(full) > 0:
		return api.Redelivered{}, tooMany()
	}
	return api.Redelivered{ID: o.Delivery}, nil
}

// exists returns NotFound for an endpoint that is neither stored nor named by settings or an account.
func (w *Webhooks) exists(ctx context.Context, endpoint string) (*target, error) {
	t, err := w.dir.findSurely(ctx, endpoint)
	if err != nil {
		return nil, redisdb.Away(err)
	}
	if t == nil {
		return nil, notFound(endpoint)
	}
	return t, nil
}

// active returns Conflict for an endpoint that is switched off or deleted.
func (w *Webhooks) active(ctx context.Context, endpoint string) error {
	t, err := w.exists(ctx, endpoint)
	if err != nil {
		return err
	}
	if t.off != "" {
		return fault.New(fault.Conflict, "WebhookEndpointDisabled",
			"The webhook endpoint is disabled. Enable it first")
	}
	return nil
}

// record reads the record of a delivery.
func (w *Webhooks) record(ctx context.Context, r ref) (map[string]string, error) {
	records, err := w.store.read(ctx, r)
	if err != nil {
		return nil, redisdb.Away(err)
	}
	if len(records[0]) == 0 {
		return nil, fault.New(fault.NotFound, "WebhookDeliveryNotFound", "This webhook endpoint has no "+
			"delivery %q",
			r.Delivery)
	}
	return records[0], nil
}

// trim deletes the entries beyond the limits of an endpoint's log.
func (w *Webhooks) trim(ctx context.Context, endpoint string) error {
	for {
		n, err := trimScript.Run(ctx, w.store.client, []string{logKey(endpoint)},
			trimArgs{endpoint, w.options.LogSize, w.now().Add(-w.options.LogAge)})
		if err != nil || n < 100 {
			return err
		}
	}
}

func showDelivery(r ref, record map[string]string) api.Delivery {
	d := api.Delivery{
		ID: r.Delivery, Endpoint: r.Endpoint, Status: record["status"], Attempts: number(record["attempts"]),
		StatusCode: number(record["code"]), Latency: number(record["latency"]), Response: record["response"],
		Error:   record["error"],
		Created: redisdb.ParseTime(record["created"]),
	}
	var e struct {
		ID      string `json:"eventId"`
		Type    string `json:"event"`
		Account string `json:"account"`
		Data    struct {
			QueueID string `json:"queueId"`
		} `json:"data"`
	}
	_ = json.Unmarshal([]byte(record["event"]), &e) // data of another shape has no queueId
	d.EventID, d.Event, d.Account, d.QueueID = e.ID, e.Type, e.Account, e.Data.QueueID
	if last := redisdb.ParseTime(record["last"]); !last.IsZero() {
		d.LastAttempt = &last
	}
	if d.Error != "" || d.StatusCode >= 300 {
		d.Explanation = new(replies.OfWebhook(d.StatusCode, d.Error))
	}
	if d.Status == statusPending {
		next := redisdb.ParseTime(record["next"])
		if next.IsZero() {
			next = d.Created
		}
		d.NextAttempt = api.TimeOrFalse{Time: &next}
	}
	return d
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
