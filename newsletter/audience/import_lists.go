package audience

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/suppression"
)

// listsOf reads the lists of a cell, such as weekly:subscribed|news:left.
func listsOf(cell string) ([]api.Subscription, error) {
	var lists []api.Subscription
	for part := range strings.SplitSeq(cell, "|") {
		id, state, _ := strings.Cut(strings.TrimSpace(part), ":")
		lists = append(lists, api.Subscription{ListID: id, State: state})
	}
	return lists, checkLists(lists)
}

// checkLists checks the lists of a line.
func checkLists(lists []api.Subscription) error {
	for _, l := range lists {
		if l.ListID == "" || stateNamed(l.State) == None {
			return fmt.Errorf("lists must be like weekly:subscribed|news:left, not %q; to ignore them, set the option columns without them",
				message.Clip(l.ListID+":"+l.State, 80))
		}
	}
	return nil
}

// stopText writes a suppression as [stopsOf] reads it: its reason, behind the list that it is about, and
// before the time when it expires.
func stopText(e *suppression.Entry) string {
	text := string(e.Reason)
	if e.List != "" {
		text = e.List + ":" + text
	}
	if !e.Expires.IsZero() {
		text += " " + e.Expires.UTC().Format(time.RFC3339)
	}
	return text
}

// stopsOf reads the suppressions of a line.
func stopsOf(texts []string) ([]suppression.Entry, error) {
	var stops []suppression.Entry
	for _, text := range texts {
		what, expires, _ := strings.Cut(strings.TrimSpace(text), " ")
		list, reason, ok := strings.Cut(what, ":")
		if !ok {
			list, reason = "", what
		}
		e := suppression.Entry{List: list, Reason: suppression.Reason(reason), Source: SourceImport}
		var err error
		if expires != "" {
			e.Expires, err = time.Parse(time.RFC3339, expires)
		}
		if err != nil || !e.Reason.Valid() {
			return nil, fmt.Errorf("suppressions must be like hard_bounce|weekly:unsubscribe, not %q",
				message.Clip(text, 80))
		}
		stops = append(stops, e)
	}
	return stops, nil
}

// needsConsent reports whether a line that is not from an export subscribes without its own consent.
func (in *entry) needsConsent() bool {
	return !in.exported && in.Consent == nil && slices.ContainsFunc(in.lists, func(l api.Subscription) bool {
		return stateNamed(l.State) == Subscribed
	})
}

// plan sets what a row does to the import's lists and its line's lists. If both are about one list, what
// stops more mail counts. An unknown list is reported as ignored.
func (i *importing) plan(ctx context.Context, r *row) error {
	r.wishes = slices.Clone(i.wishes)
	for n := range r.wishes {
		r.wishes[n].state = r.state
	}
	for _, in := range r.in.lists {
		list, err := i.s.Lists.Find(ctx, in.ListID)
		if fault.Is(err, fault.NotFound) || err == nil && list.Account != i.account {
			id := "lists:" + message.Clip(in.ListID, 80)
			if len(i.state.Ignored) < badShown && !slices.Contains(i.state.Ignored, id) {
				i.state.Ignored = append(i.state.Ignored, id)
			}
			continue
		}
		if err != nil {
			return err
		}
		w := wish{list: list, state: stateNamed(in.State)}
		if r.in.says == Left || r.in.says == Pending && w.state == Subscribed {
			w.state = r.in.says
		}
		if !in.Since.IsZero() && in.Since.Before(i.s.now()) && in.Since.Year() > 1970 && !i.o.DryRun {
			numbers, err := i.s.words.intern(ctx, i.account, message.Clip(in.Source, maxSource))
			if err != nil {
				return err
			}
			w.proof = &subscription{since: seconds(in.Since), source: numbers[0]}
		}
		at := slices.IndexFunc(r.wishes, func(o wish) bool { return o.list.Number == list.Number })
		switch {
		case at < 0:
			r.wishes = append(r.wishes, w)
		case w.state == Left, w.state == Pending && r.wishes[at].state == Subscribed:
			r.wishes[at] = w
		}
	}
	return nil
}

// suppressed finds out which rows are suppressed on which lists, once for a batch and list. People who
// unsubscribed are suppressed first: either of both, list state and suppression, stops mail.
func (i *importing) suppressed(ctx context.Context, rows []row) error {
	if err := i.suppress(ctx, rows); err != nil {
		return err
	}
	type place struct {
		row  *row
		wish int
	}
	asked := map[string][]place{}
	for n := range rows {
		r := &rows[n]
		r.stops = make([]*suppression.Entry, len(r.wishes))
		for k, w := range r.wishes {
			if w.state != Left {
				asked[w.list.ListID] = append(asked[w.list.ListID], place{r, k})
			}
		}
	}
	for list, places := range asked {
		addresses := make([]string, len(places))
		for n, p := range places {
			addresses[n] = p.row.in.Email
		}
		found, err := i.s.Suppressions.Check(ctx, suppression.Question{Account: i.account, List: list, Bulk: true,
			Addresses: addresses})
		if err != nil {
			return err
		}
		for n, p := range places {
			p.row.stops[p.wish] = found[n]
		}
	}
	return nil
}

// suppress suppresses mail of the lists that rows left, or of the whole account if they are about no list,
// and what the suppressions of an export say.
func (i *importing) suppress(ctx context.Context, rows []row) error {
	var entries []suppression.Entry
	for n := range rows {
		r := &rows[n]
		e := suppression.Entry{Address: r.in.Email, Account: i.account, Reason: suppression.Unsubscribe,
			Source: SourceImport}
		if len(r.wishes) == 0 && r.state == Left {
			entries = append(entries, e)
		}
		for _, w := range r.wishes {
			if e.List = w.list.ListID; w.state == Left {
				entries = append(entries, e)
			}
		}
		for _, e := range r.in.stops {
			e.Address, e.Account = r.in.Email, i.account
			entries = append(entries, e)
		}
	}
	if i.o.DryRun || len(entries) == 0 {
		return nil
	}
	_, err := i.s.Suppressions.Add(ctx, entries...)
	return err
}

// decide decides about the lists of a row.
func (i *importing) decide(r *row, next *record, t terms, proof subscription) decision {
	var wishes []wish
	var stops []*suppression.Entry
	var left []listChange
	for n, w := range r.wishes {
		if w.state != Left {
			wishes, stops = append(wishes, w), append(stops, r.stops[n])
			continue
		}
		if next.stateOn(w.list.Number) == Left {
			continue
		}
		sub := proof
		if w.proof != nil {
			sub = *w.proof
		}
		sub.list, sub.state, sub.text = w.list.Number, Left, 0
		next.set(sub)
		left = append(left, listChange{list: w.list.Number, state: Left, since: sub.since})
	}
	d := i.s.decide(next, i.account, wishes, stops, t, proof)
	d.changes = append(d.changes, left...)
	return d
}

// madeAt returns when a subscriber was made, as a cell tells; 0 if it does not.
func madeAt(cell string, now time.Time) uint32 {
	text, _ := isoDate(strings.TrimSpace(cell))
	for _, form := range [...]string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil && at.Before(now) && at.Year() > 1970 {
			return seconds(at)
		}
	}
	return 0
}
