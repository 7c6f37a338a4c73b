package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// logScan is how many messages a filtered page of the log reads at most: about a second's work.
const logScan = 100_000

// statuses maps each status of the log to the states of live messages and the results of ended ones.
var statuses = map[api.MessageStatus]struct{ states, results []string }{
	api.StatusQueued:     {states: []string{stateWaiting, stateScheduled, stateDelayed}},
	api.StatusSending:    {states: []string{stateActive}},
	api.StatusDead:       {states: []string{stateFailed}},
	api.StatusSent:       {results: []string{resultSent}},
	api.StatusFailed:     {results: []string{resultFailed}},
	api.StatusCancelled:  {results: []string{resultCancelled}},
	api.StatusSuppressed: {results: []string{resultSuppressed}},
}

// Messages returns a page of the log, newest first: messages in the outbox, and messages that ended within
// Options.KeepEnded. With a tag or a search it reads the messages themselves, at most 100,000.
func (rd *Reader) Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error) {
	q.PageSize = cmp.Or(q.PageSize, 20)
	found, err := rd.findLogged(ctx, q)
	if err != nil {
		return api.LogPage{}, redisError(err, "list the log")
	}
	rows, err := rd.readLog(ctx, found.page)
	if err != nil {
		return api.LogPage{}, redisError(err, "read a page of the log")
	}
	if err := rd.addOutcomes(ctx, rows); err != nil {
		return api.LogPage{}, err
	}
	page := api.LogPage{Total: found.total, Page: q.Page, Pages: pages(found.total, q.PageSize),
		Cursor: found.next, Messages: make([]api.LoggedMessage, len(rows))}
	for i, r := range rows {
		page.Messages[i] = r.logged()
	}
	return page, nil
}

// Message returns one message of the log, with every attempt, and until when its content is kept.
func (rd *Reader) Message(ctx context.Context, id string) (api.LoggedMessage, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return api.LoggedMessage{}, err
	}
	rows := []row{r}
	if err := rd.addOutcomes(ctx, rows); err != nil {
		return api.LoggedMessage{}, err
	}
	m := rows[0].logged()
	if m.Outcome != nil {
		facts, err := rd.factEvents(ctx, r)
		if err != nil {
			return api.LoggedMessage{}, err
		}
		addRecipientOutcomes(facts, m.Recipients)
	}
	if m.Log, err = loggedAttempts(ctx, rd.store, r); err != nil {
		return api.LoggedMessage{}, err
	}
	m.ContentUntil, err = contentUntil(ctx, rd.store, r)
	return m, err
}

// MessageEvents returns all events of a message: first the outbox's, then the facts.
func (rd *Reader) MessageEvents(ctx context.Context, id string) (api.MessageEvents, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return api.MessageEvents{}, err
	}
	facts, err := rd.factEvents(ctx, r)
	if err != nil {
		return api.MessageEvents{}, err
	}
	pauses, err := rd.pausesOf(ctx, r)
	if err != nil {
		return api.MessageEvents{}, err
	}
	if err := rd.clock.ready(ctx, rd.DB.Client()); err != nil {
		return api.MessageEvents{}, redisError(err, "read message "+id)
	}
	r, ready := r.readyUntil(rd.clock.Now())
	events := append(r.events(), r.pausedWaits(ready, pauses)...)
	slices.SortStableFunc(events, func(x, y api.MessageEvent) int { return x.Date.Compare(y.Date) })
	return api.MessageEvents{QueueID: id, Events: append(events, facts...)}, nil
}

// findLogged returns the entries of a page of the log.
func (rd *Reader) findLogged(ctx context.Context, q api.LogQuery) (findings, error) {
	w := window{
		indexes: rd.logIndexes(q), newest: true, page: q.Page, size: q.PageSize, cursor: q.Cursor,
		after: q.CreatedAfter, before: q.CreatedBefore, most: logScan, within: rd.within,
	}
	if q.Tag == "" && q.Search == "" {
		return rd.look(ctx, w)
	}
	return rd.scan(ctx, w, func(chunk []entry) ([]entry, error) {
		rows, err := rd.readLog(ctx, chunk)
		if err != nil {
			return nil, err
		}
		kept := make(map[string]bool, len(rows))
		for _, r := range rows {
			named := q.Search != "" && (r.envelope.MessageID == q.Search || r.envelope.Key == q.Search)
			kept[r.id] = tagged(r.envelope, q.Tag) && (named || mentions(r.envelope, q.Search))
		}
		return slices.DeleteFunc(chunk, func(e entry) bool { return !kept[e.id] }), nil
	})
}

// logIndexes are the indexes whose union is what the query's status, lane and account select.
func (rd *Reader) logIndexes(q api.LogQuery) []index {
	if q.Status.IsOutcome() {
		return rd.outcomeIndexes(q)
	}
	return rd.indexesOf(q.Lane, q.Account, func(_ string, add func(string, bool)) {
		for status, s := range statuses {
			failed := q.Status == api.StatusFailed && status == api.StatusDead // a dead letter failed, too
			if q.Status != "" && q.Status != status && !failed {
				continue
			}
			for _, state := range s.states {
				add(state, false)
			}
			for _, result := range s.results {
				add(result, true)
			}
		}
	})
}

// readLogged reads one message, live or ended.
func (rd *Reader) readLogged(ctx context.Context, id string) (row, error) {
	if _, err := rd.place(id); err != nil {
		return row{}, err
	}
	rows, err := rd.readLog(ctx, []entry{{id: id}})
	switch {
	case err != nil:
		return row{}, redisError(err, "read message "+id)
	case len(rows) == 0:
		return row{}, unknownMessage(id)
	}
	return rows[0], nil
}

// logged returns a message in the types of the API, as the log shows it.
func (r row) logged() api.LoggedMessage {
	s := r.show(false)
	m := api.LoggedMessage{
		QueueID: s.QueueID, Account: s.Account, Source: s.Source, MessageID: s.MessageID, Envelope: s.Envelope,
		Subject: s.Subject, Status: r.logStatus(), Created: s.Created, Scheduled: s.Scheduled,
		NextAttempt: s.NextAttempt, AttemptsMade: s.AttemptsMade, Attempts: s.Attempts, Response: r.response(),
		Reason: s.Reason, Recipients: s.Recipients, Gateway: s.Gateway, IdempotencyKey: s.IdempotencyKey,
		Lane: s.Lane, Priority: s.Priority, TraceID: s.TraceID,
		Tags: s.Tags, Metadata: s.Metadata, InDoubt: s.InDoubt, DeliverBy: s.DeliverBy,
		Size: r.envelope.Size, Template: s.Template, Error: r.fault(), Outcome: r.outcome,
	}
	if at := cmp.Or(r.ended, r.failed()); at != 0 {
		m.Ended = new(redisdb.Time(at))
	}
	return m
}

// failed returns when a dead letter failed, or 0 if the message is not a dead letter.
func (r row) failed() int64 {
	for _, e := range slices.Backward(r.status.Events) {
		if r.state == stateFailed && e.Type == event.MessageFailed {
			return e.At
		}
	}
	return 0
}

// logStatus is the status of a message in the log.
func (r row) logStatus() api.MessageStatus {
	for status, s := range statuses {
		known := s.states
		if r.ended != 0 {
			known = s.results
		}
		if slices.Contains(known, r.state) {
			return status
		}
	}
	return api.MessageStatus(r.state)
}

// factEvents returns the events of the facts about a message, in the order in which they happened.
func (s *store) factEvents(ctx context.Context, r row) ([]api.MessageEvent, error) {
	packed, err := s.DB.Client().HGetAll(ctx, s.keys.facts(r.partition, r.id)).Result()
	if err != nil {
		return nil, redisError(err, "read the reports about message "+r.id)
	}
	all := make([]api.MessageEvent, 0, len(packed))
	for field, one := range packed {
		if strings.HasPrefix(field, "#") {
			continue // see once and outcome in fact.lua
		}
		var f storedFact
		if err := s.jsons.unpack(r.id, []byte(one), &f); err != nil {
			return nil, err
		}
		e := api.MessageEvent{EventID: f.ID, Event: string(f.Type), Date: redisdb.Time(f.At),
			Recipients: f.recipients(r), Reason: f.Details.Reason}
		details := api.EventDetails(f.Details)
		e.Details = &details
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(x, y api.MessageEvent) int { return x.Date.Compare(y.Date) })
	return all, nil
}

// events returns the outbox's events about a message. The first is about the recipients that the message was
// accepted for: all but the ones that a replay added.
func (r row) events() []api.MessageEvent {
	first := everybody(len(r.envelope.To) - r.envelope.Added)
	all := []api.MessageEvent{{EventID: r.id, Event: string(event.MessageQueued), Date: redisdb.Time(r.created),
		Recipients: r.envelope.addresses(first)}}
	for _, one := range r.status.Events {
		which := one.To
		if which == nil {
			which = everybody(len(r.envelope.To))
		}
		e := api.MessageEvent{EventID: one.ID, Event: string(one.Type), Date: redisdb.Time(one.At),
			Recipients: r.envelope.addresses(which), Reason: one.Reason}
		if n := one.Attempt; n > 0 && n <= len(r.status.Log) {
			e.Attempt = &r.status.Log[n-1]
		}
		switch {
		case one.Type == event.MessageSent && len(which) > 0:
			e.Response = r.status.Recipients[which[0]].Response
		case one.Until != 0:
			e.Until = new(redisdb.Time(one.Until))
		}
		all = append(all, e)
	}
	return all
}
