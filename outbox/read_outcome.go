package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend/replies"
)

// outcomeField is the field of the facts of a message that names the weightiest. See prelude.lua.
const outcomeField = "#outcome"

// outcomeIndexes are the indexes whose union is what the query's outcome, lane and account select.
func (rd *Reader) outcomeIndexes(q api.LogQuery) (all []index) {
	for p := range rd.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			if q.Lane == "" || q.Lane == lane {
				all = append(all, index{key: of(rd.keys.outcome(p, string(lane), string(q.Status)), q.Account)})
			}
		}
	}
	return all
}

// addOutcomes reads the outcomes of messages.
func (rd *Reader) addOutcomes(ctx context.Context, rows []row) error {
	some, err := rd.withFacts(ctx, rows)
	if err != nil || len(some) == 0 {
		return redisError(err, "look for reports about messages")
	}
	named := make([]*redis.StringCmd, len(rows))
	pipe := rd.DB.Client().Pipeline()
	for i, r := range rows {
		if some[r.partition] {
			named[i] = pipe.HGet(ctx, rd.keys.facts(r.partition, r.id), outcomeField)
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "read the outcomes of messages")
	}
	pipe, facts := rd.DB.Client().Pipeline(), map[int]*redis.StringCmd{}
	for i, r := range rows {
		if named[i] == nil {
			continue
		}
		if words := strings.Fields(named[i].Val()); len(words) == 3 {
			rows[i].outcome = &api.Outcome{Status: api.MessageStatus(words[1])}
			facts[i] = pipe.HGet(ctx, rd.keys.facts(r.partition, r.id), words[2])
		}
	}
	if len(facts) == 0 {
		return nil
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "read the reports of outcomes")
	}
	for i, one := range facts {
		if one.Val() == "" {
			rows[i].outcome.Recipients = []string{} // the person was erased
			continue
		}
		var f storedFact
		if err := rd.jsons.unpack(rows[i].id, []byte(one.Val()), &f); err != nil {
			return err
		}
		o := &api.Outcome{Status: rows[i].outcome.Status, Date: redisdb.Time(f.At),
			Recipients: f.recipients(rows[i]), Details: api.EventDetails(f.Details)}
		if o.Status == api.OutcomeBounced {
			o.Explanation = new(replies.Of(replies.Reply{Code: f.Details.Code, Enhanced: f.Details.Status,
				Text: f.Details.Diagnostic}))
		}
		rows[i].outcome = o
	}
	return nil
}

// withFacts returns the partitions in which there are facts about any of the messages. Most messages have
// none.
func (rd *Reader) withFacts(ctx context.Context, rows []row) (map[int]bool, error) {
	keys := map[int][]string{}
	for _, r := range rows {
		keys[r.partition] = append(keys[r.partition], rd.keys.facts(r.partition, r.id))
	}
	pipe, counts := rd.DB.Client().Pipeline(), map[int]*redis.IntCmd{}
	for p, some := range keys {
		counts[p] = pipe.Exists(ctx, some...)
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	found := map[int]bool{}
	for p, n := range counts {
		if n.Val() > 0 {
			found[p] = true
		}
	}
	return found, nil
}

// addRecipientOutcomes sets the reported outcome of each recipient, by the events of the message's facts. An
// event that doesn't say which of several recipients it is about counts for none of them.
func addRecipientOutcomes(facts []api.MessageEvent, to []api.RecipientStatus) {
	weightiest := map[string]api.MessageStatus{}
	for _, e := range facts {
		if len(e.Recipients) != 1 {
			continue
		}
		address := strings.ToLower(e.Recipients[0])
		outcome := Fact{Type: event.Type(e.Event), Details: event.Later(*e.Details)}.outcome()
		if slices.Index(outcomes, outcome) > slices.Index(outcomes, weightiest[address]) {
			weightiest[address] = outcome
		}
	}
	for i := range to {
		to[i].Outcome = weightiest[strings.ToLower(to[i].Address)]
	}
}

// recipients returns the recipients that a fact about a message names, or all.
func (f storedFact) recipients(r row) []string {
	if f.To == nil {
		return r.envelope.To
	}
	return f.To
}

// shownAccounts is how many accounts are named for a reason's dead letters.
const shownAccounts = 20

// DeadLetterReasons counts the dead letters that a query selects by the reason of their explanation. All of
// them are read. State, page and cursor of the query are ignored.
func (rd *Reader) DeadLetterReasons(ctx context.Context, q api.OutboxQuery) (api.DeadLetterReasons, error) {
	out := api.DeadLetterReasons{Reasons: []api.DeadLetterReason{}}
	q.State, q.Page, q.PageSize, q.Cursor = api.Failed, 0, scanChunk, ""
	for more := rd.opts.KeepDeadLetters >= 0; more; {
		found, err := rd.find(ctx, q, nil, scanChunk)
		if fault.Is(err, fault.Invalid) {
			return out, err
		}
		if err != nil {
			return out, redisError(err, "count the dead letters")
		}
		rows, err := rd.readRows(ctx, found.page)
		if err != nil {
			return out, redisError(err, "read the dead letters to count")
		}
		for _, r := range rows {
			if r.state == stateFailed {
				out.Total++
				out.Reasons = count(out.Reasons, r)
			}
		}
		q.Cursor, more = found.next, found.more
	}
	slices.SortStableFunc(out.Reasons, func(a, b api.DeadLetterReason) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

// count adds a dead letter to the reasons.
func count(reasons []api.DeadLetterReason, r row) []api.DeadLetterReason {
	last := r.status.fault(r.state)
	e := last.explained()
	i := slices.IndexFunc(reasons, func(one api.DeadLetterReason) bool { return one.Reason == e.Reason })
	if i < 0 {
		i = len(reasons)
		reasons = append(reasons, api.DeadLetterReason{Explanation: e, QueueID: r.id})
		if last != nil {
			reasons[i].Example = last.Message
		}
	}
	one := &reasons[i]
	one.Count++
	if len(one.Accounts) < shownAccounts && !slices.Contains(one.Accounts, r.envelope.Account) {
		one.Accounts = append(one.Accounts, r.envelope.Account)
	}
	return reasons
}
