package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
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

// Messages answers a page of the log, newest message first: those in the outbox, and those that ended, for as long as they are remembered.
// With a tag or a search it reads the messages themselves, 100,000 at most.
func (b *Outbox) Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error) {
	if q.PageSize == 0 {
		q.PageSize = 20
	}
	found, err := b.findLogged(ctx, q)
	if err != nil {
		return api.LogPage{}, away(err, "list the log")
	}
	rows, err := b.readLog(ctx, found.page)
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
func (b *Outbox) Message(ctx context.Context, id string) (api.LoggedMessage, error) {
	r, err := b.readLogged(ctx, id)
	if err != nil {
		return api.LoggedMessage{}, err
	}
	m := r.logged()
	m.Log = r.status.Log
	return m, nil
}

// MessageEvents answers all that happened to a message, as its webhooks told it: first what the outbox did, then what became known later.
func (b *Outbox) MessageEvents(ctx context.Context, id string) (api.MessageEvents, error) {
	r, err := b.readLogged(ctx, id)
	if err != nil {
		return api.MessageEvents{}, err
	}
	later, err := b.laterStory(ctx, r)
	if err != nil {
		return api.MessageEvents{}, err
	}
	return api.MessageEvents{QueueID: id, Events: append(r.story(), later...)}, nil
}

// findLogged selects the entries of a page of the log.
func (b *Outbox) findLogged(ctx context.Context, q api.LogQuery) (findings, error) {
	w := window{
		indexes: b.logIndexes(q), newest: true, page: q.Page, size: q.PageSize, cursor: q.Cursor, after: q.CreatedAfter,
		before: q.CreatedBefore, most: logScan,
	}
	if q.Tag == "" && q.Search == "" {
		return b.look(ctx, w)
	}
	text := strings.ToLower(q.Search)
	return b.scan(ctx, w, func(chunk []entry) ([]entry, error) {
		rows, err := b.readLog(ctx, chunk)
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
func (b *Outbox) logIndexes(q api.LogQuery) []index {
	var all []index
	for p := range b.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			if q.Lane != "" && q.Lane != lane {
				continue
			}
			for status, s := range statuses {
				if q.Status != "" && q.Status != status {
					continue
				}
				for _, state := range s.states {
					all = append(all, index{key: of(b.store.index(p, string(lane), state), q.Account)})
				}
				for _, result := range s.results {
					all = append(all, index{key: of(b.store.logged(p, string(lane), result), q.Account), ended: true})
				}
			}
		}
	}
	return all
}

// readLogged reads one message, live or ended.
func (b *Outbox) readLogged(ctx context.Context, id string) (row, error) {
	if _, err := b.store.place(id); err != nil {
		return row{}, err
	}
	rows, err := b.readLog(ctx, []entry{{id: id}})
	switch {
	case err != nil:
		return row{}, away(err, "read message "+id)
	case len(rows) == 0:
		return row{}, unknownMessage(id)
	}
	return rows[0], nil
}

// readLog reads messages, live or ended, in order; those that were forgotten meanwhile are left out. One that ended between the look at
// the index and this is read from where it went.
func (b *Outbox) readLog(ctx context.Context, entries []entry) ([]row, error) {
	var live []entry
	for _, e := range entries {
		if !e.ended {
			live = append(live, e)
		}
	}
	found, err := b.readRows(ctx, live)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]row, len(entries))
	for _, r := range found {
		rows[r.id] = r
	}
	if err := b.readEnded(ctx, entries, rows); err != nil {
		return nil, err
	}
	out := make([]row, 0, len(rows))
	for _, e := range entries {
		if r, ok := rows[e.id]; ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// readEnded adds those of some messages that are not among the rows yet, in one round trip.
func (b *Outbox) readEnded(ctx context.Context, entries []entry, rows map[string]row) error {
	pipe := b.DB.Client().Pipeline()
	got := make(map[string]*redis.StringCmd, len(entries)-len(rows))
	for _, e := range entries {
		if _, ok := rows[e.id]; !ok {
			p, _ := partitionOf(e.id, b.DB.Partitions())
			got[e.id] = pipe.Get(ctx, b.store.ended(p, e.id))
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return err
	}
	for id, cmd := range got {
		raw, err := cmd.Bytes()
		if err != nil || len(raw) == 0 {
			continue
		}
		var e ended
		if err := b.jsons.unpack(id, raw, &e); err != nil {
			return err
		}
		rows[id] = e.row(id)
	}
	return nil
}

// logged puts a message in the words of the log.
func (r row) logged() api.LoggedMessage {
	shown := r.show(false)
	m := api.LoggedMessage{
		QueueID: shown.QueueID, Account: shown.Account, Source: shown.Source, MessageID: shown.MessageID, Envelope: shown.Envelope,
		Subject: shown.Subject, Status: r.logStatus(), Created: shown.Created, Scheduled: shown.Scheduled, NextAttempt: shown.NextAttempt,
		AttemptsMade: shown.AttemptsMade, Attempts: shown.Attempts, Response: r.response(), Reason: shown.Reason, Recipients: shown.Recipients,
		Gateway: shown.Gateway, IdempotencyKey: shown.IdempotencyKey, Lane: shown.Lane, Tags: shown.Tags, Metadata: shown.Metadata,
		InDoubt: shown.InDoubt, DeliverBy: shown.DeliverBy, Size: r.envelope.Size, Template: r.envelope.Template, Error: r.fault(),
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
		if r.ended == 0 && slices.Contains(s.states, r.state) || r.ended != 0 && slices.Contains(s.results, r.state) {
			return status
		}
	}
	return api.MessageStatus(r.state)
}
