package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/queue"
)

// logScan is how many messages a filtered page of the log reads at most: about a second's work.
const logScan = 100_000

// statuses are how states of live messages, and results of ended ones, read in the log.
var statuses = map[api.MessageStatus]struct{ states, results []string }{
	api.StatusQueued:     {states: []string{stateWaiting, stateDelayed}},
	api.StatusSending:    {states: []string{stateActive}},
	api.StatusDead:       {states: []string{stateFailed}},
	api.StatusSent:       {results: []string{resultSent}},
	api.StatusFailed:     {results: []string{resultFailed}},
	api.StatusCancelled:  {results: []string{resultCancelled}},
	api.StatusSuppressed: {results: []string{resultSuppressed}},
}

// Messages answers a page of the log, newest message first: those in the outbox, and those that ended, for as
// long as they are remembered. With a tag or a search it reads the messages themselves, 100,000 at most.
func (rd *Reader) Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error) {
	if q.PageSize == 0 {
		q.PageSize = 20
	}
	found, err := rd.findLogged(ctx, q)
	if err != nil {
		return api.LogPage{}, away(err, "list the log")
	}
	rows, err := rd.readLog(ctx, found.page)
	if err != nil {
		return api.LogPage{}, away(err, "read a page of the log")
	}
	page := api.LogPage{
		Total: found.total, Page: q.Page, Pages: pages(found.total, q.PageSize), Cursor: found.next,
		Messages: make([]api.LoggedMessage, len(rows)),
	}
	for i, r := range rows {
		page.Messages[i] = r.logged()
	}
	return page, nil
}

// Message answers one message of the log, with every attempt.
func (rd *Reader) Message(ctx context.Context, id string) (api.LoggedMessage, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return api.LoggedMessage{}, err
	}
	m := r.logged()
	m.Log = r.status.Log
	return m, nil
}

// MessageEvents answers all that happened to a message, as its webhooks told it: first what the outbox did,
// then what became known later.
func (rd *Reader) MessageEvents(ctx context.Context, id string) (api.MessageEvents, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return api.MessageEvents{}, err
	}
	later, err := rd.laterStory(ctx, r)
	if err != nil {
		return api.MessageEvents{}, err
	}
	return api.MessageEvents{QueueID: id, Events: append(r.story(), later...)}, nil
}

// findLogged selects the entries of a page of the log.
func (rd *Reader) findLogged(ctx context.Context, q api.LogQuery) (findings, error) {
	w := window{
		indexes: rd.logIndexes(q), newest: true, page: q.Page, size: q.PageSize, cursor: q.Cursor,
		after:  q.CreatedAfter,
		before: q.CreatedBefore, most: logScan,
	}
	if q.Tag == "" && q.Search == "" {
		return rd.look(ctx, w)
	}
	text := strings.ToLower(q.Search)
	return rd.scan(ctx, w, func(chunk []entry) ([]entry, error) {
		rows, err := rd.readLog(ctx, chunk)
		if err != nil {
			return nil, err
		}
		kept := make(map[string]bool, len(rows))
		for _, r := range rows {
			named := q.Search != "" && (r.envelope.MessageID == q.Search || r.envelope.Key == q.Search)
			kept[r.id] = tagged(r.envelope, q.Tag) && (named || mentions(r.envelope, text))
		}
		return slices.DeleteFunc(chunk, func(e entry) bool { return !kept[e.id] }), nil
	})
}

// logIndexes are the indexes whose union is what the query's status, lane and account select.
func (rd *Reader) logIndexes(q api.LogQuery) []index {
	var all []index
	for p := range rd.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			if q.Lane != "" && q.Lane != lane {
				continue
			}
			for status, s := range statuses {
				if q.Status != "" && q.Status != status {
					continue
				}
				for _, state := range s.states {
					all = append(all, index{key: of(rd.keys.index(p, string(lane), state), q.Account)})
				}
				for _, result := range s.results {
					all = append(all, index{key: of(rd.keys.logged(p, string(lane), result), q.Account), ended: true})
				}
			}
		}
	}
	return all
}

// readLogged reads one message, live or ended.
func (rd *Reader) readLogged(ctx context.Context, id string) (row, error) {
	if _, err := rd.place(id); err != nil {
		return row{}, err
	}
	rows, err := rd.readLog(ctx, []entry{{id: id}})
	switch {
	case err != nil:
		return row{}, away(err, "read message "+id)
	case len(rows) == 0:
		return row{}, unknownMessage(id)
	}
	return rows[0], nil
}

// logged puts a message in the words of the log.
func (r row) logged() api.LoggedMessage {
	shown := r.show(false)
	m := api.LoggedMessage{
		QueueID: shown.QueueID, Account: shown.Account, Source: shown.Source, MessageID: shown.MessageID,
		Envelope: shown.Envelope,
		Subject:  shown.Subject, Status: r.logStatus(), Created: shown.Created, Scheduled: shown.Scheduled,
		NextAttempt:  shown.NextAttempt,
		AttemptsMade: shown.AttemptsMade, Attempts: shown.Attempts, Response: r.response(), Reason: shown.Reason,
		Recipients: shown.Recipients,
		Gateway:    shown.Gateway, IdempotencyKey: shown.IdempotencyKey, Lane: shown.Lane, Tags: shown.Tags,
		Metadata: shown.Metadata,
		InDoubt:  shown.InDoubt, DeliverBy: shown.DeliverBy, Size: r.envelope.Size, Template: r.envelope.Template,
		Error: r.fault(),
	}
	if r.ended != 0 {
		at := fromMillis(r.ended)
		m.Ended = &at
	}
	return m
}

// logStatus is what the log calls the state of a message.
func (r row) logStatus() api.MessageStatus {
	for status, s := range statuses {
		if r.ended == 0 && slices.Contains(s.states, r.state) || r.ended != 0 &&
			slices.Contains(s.results, r.state) {
			return status
		}
	}
	return api.MessageStatus(r.state)
}

// laterStory reads what became known about a message, in the words of the API, in the order in which it
// happened.
func (rd *Reader) laterStory(ctx context.Context, r row) ([]api.MessageEvent, error) {
	p, _ := partitionOf(r.id, rd.DB.Partitions())
	packed, err := rd.DB.Client().HVals(ctx, rd.keys.later(p, r.id)).Result()
	if err != nil {
		return nil, away(err, "read what became known about message "+r.id)
	}
	all := make([]api.MessageEvent, 0, len(packed))
	for _, one := range packed {
		var f storedFact
		if err := rd.jsons.unpack(r.id, []byte(one), &f); err != nil {
			return nil, err
		}
		e := api.MessageEvent{EventID: f.ID, Event: string(f.Type), Date: fromMillis(f.At), Recipients: f.To,
			Reason: f.Details.Reason}
		if e.Recipients == nil {
			e.Recipients = r.envelope.To
		}
		details := api.EventDetails(f.Details)
		e.Details = &details
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(x, y api.MessageEvent) int { return x.Date.Compare(y.Date) })
	return all, nil
}

// story is all that was told about a message, in the words of the API.
func (r row) story() []api.MessageEvent {
	all := []api.MessageEvent{{EventID: r.id, Event: string(event.MessageQueued), Date: fromMillis(r.created),
		Recipients: r.envelope.addresses(r.first())}}
	for _, one := range r.status.Events {
		which := one.To
		if which == nil {
			which = everybody(len(r.envelope.To))
		}
		e := api.MessageEvent{EventID: one.ID, Event: string(one.Type), Date: fromMillis(one.At),
			Recipients: r.envelope.addresses(which), Reason: one.Reason}
		if n := one.Attempt; n > 0 && n <= len(r.status.Log) {
			e.Attempt = &r.status.Log[n-1]
		}
		if one.Type == event.MessageSent && len(which) > 0 {
			e.Response = r.status.Recipients[which[0]].Response
		}
		all = append(all, e)
	}
	return all
}

// first are the recipients that the message was accepted for: all but those that a replay added.
func (r row) first() []int {
	return everybody(len(r.envelope.To) - r.envelope.Added)
}
