package digest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

// states are the states of runs that are indexed.
var states = []string{api.DigestPending, api.DigestProcessing, api.DigestSubmitted, api.DigestSent,
	api.DigestFailed, api.DigestSkipped}

// Get returns a run with its groups, or NotFound.
func (b *Runs) Get(ctx context.Context, bound, id string) (api.DigestRun, error) {
	r, err := b.find(ctx, bound, id)
	if err != nil {
		return api.DigestRun{}, err
	}
	shown := r.show()
	kept, err := readRecord(r.groups)
	if err != nil {
		return shown, err
	}
	shown.Groups, shown.EventIDs = kept.Groups, kept.Events
	if r.groups == "" { // it was not sent yet, or failed
		taken, err := b.taken(ctx, r)
		if err != nil {
			return shown, err
		}
		all, ids, err := taken.groups(r.taken)
		if err != nil {
			return shown, err
		}
		_, kept = digestOf(all, r)
		shown.Groups, shown.EventIDs = kept.Groups, ids
	}
	return shown, nil
}

// List returns a recipient's or an account's runs, newest first. The cursor is a time.
func (b *Runs) List(ctx context.Context, bound string, q api.DigestRunQuery) (api.DigestRunPage, error) {
	page := api.DigestRunPage{Runs: []api.DigestRun{}}
	account, err := b.requestAccount(ctx, bound, q.Account)
	if err != nil {
		return page, err
	}
	if q.State != "" && !slices.Contains(states, q.State) {
		return page, fault.InvalidField("state", "must be %s or %s",
			strings.Join(states[:len(states)-1], ", "), states[len(states)-1])
	}
	size := min(cmp.Or(max(0, q.PageSize), 20), 1000)
	found, err := b.listed(ctx, account, q, size)
	if err != nil {
		return page, err
	}
	for _, z := range found[:min(size, len(found))] {
		id, _ := z.Member.(string)
		r, err := b.find(ctx, account, id)
		if fault.Is(err, fault.NotFound) {
			continue // it ended its retention, or another state now
		}
		if err != nil {
			return page, err
		}
		if q.State == "" || r.state == q.State {
			page.Runs = append(page.Runs, r.show())
		}
	}
	if len(found) > size {
		page.Cursor = strconv.FormatFloat(found[size].Score, 'f', 0, 64)
	}
	return page, nil
}

// listed returns the newest ids that a query selects, at most one more than size.
func (b *Runs) listed(ctx context.Context, account string, q api.DigestRunQuery,
	size int) ([]redis.Z, error) {
	by := &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: int64(size) + 1}
	if !q.After.IsZero() {
		by.Min = strconv.FormatInt(q.After.UnixMilli(), 10)
	}
	if !q.Before.IsZero() {
		by.Max = "(" + strconv.FormatInt(q.Before.UnixMilli(), 10)
	}
	if q.Cursor != "" {
		if _, err := strconv.ParseInt(q.Cursor, 10, 64); err != nil {
			return nil, fault.InvalidField("cursor", "isn't a cursor from an earlier page")
		}
		by.Max = q.Cursor
	}
	var keys []string
	switch {
	case q.Recipient != "":
		keys = []string{readerKey{account, q.Recipient}.runs()}
		by.Count = 0 // a recipient has few, in several states
	default:
		for shard := range shards {
			for _, state := range states {
				if q.State == "" || q.State == state {
					keys = append(keys, runsKey(shard, account)+":"+state)
				}
			}
		}
	}
	pipe := b.DB.Client().Pipeline()
	parts := make([]*redis.ZSliceCmd, len(keys))
	for i, key := range keys {
		parts[i] = pipe.ZRevRangeByScoreWithScores(ctx, key, by)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "list runs of digests")
	}
	var all []redis.Z
	for _, part := range parts {
		all = append(all, part.Val()...)
	}
	if q.Recipient != "" && q.State != "" {
		var kept []redis.Z
		for _, z := range all {
			r, err := b.find(ctx, account, z.Member.(string))
			if err == nil && r.state == q.State {
				kept = append(kept, z)
			}
		}
		all = kept
	}
	slices.SortFunc(all, func(a, b redis.Z) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Member.(string), b.Member.(string)))
	})
	return all, nil
}

// Retry lets a failed run be tried again that still has its events. They neither returned nor were dropped,
// as with Options.Drop. Otherwise: Conflict, code RunState.
func (b *Runs) Retry(ctx context.Context, bound, id string) (api.DigestRun, error) {
	r, err := b.find(ctx, bound, id)
	if err != nil {
		return api.DigestRun{}, err
	}
	key, _ := runKey(id)
	shard := r.shard()
	answer, err := retryScript.RunReplicated(ctx, b.DB, []string{key, r.readerKey.key(), openKey(shard),
		fencesKey(shard), runsKey(shard, r.account)}, retryArgs{Run: id, Now: b.opts.Now()})
	if err != nil {
		return api.DigestRun{}, redisdb.Failed(err, "retry run %s", id)
	}
	if answer.Word != "QUEUED" {
		return api.DigestRun{}, fault.New(fault.Conflict, "RunState",
			"Run %s is %s; you can retry only a failed run that still has its events", id, answer.State)
	}
	return b.Get(ctx, bound, id)
}

// Send sends a recipient everything that waits now, in its own run. Without an address it returns a Conflict:
// a run would drop the events, which wait for one.
func (r *Recipients) Send(ctx context.Context, bound string, q api.DigestAccount, id string) (
	answer api.DigestSendAnswer, _ error) {
	for range mostTries {
		one, err := r.find(ctx, bound, q.Account, id)
		if err != nil {
			return answer, err
		}
		if one.email == "" {
			return answer, fault.New(fault.Conflict, "NoAddress",
				"Recipient %q has no address. Store its email, then send", id)
		}
		now := r.opts.Now()
		run, begun, err := r.begin(ctx, "", "", one, r.opts.everything(one, now), now, now)
		if err != nil {
			return answer, err
		}
		if begun.Word == "CHANGED" {
			continue
		}
		found, err := (&Runs{r.base}).find(ctx, one.account, run)
		if err != nil {
			return answer, err
		}
		return api.DigestSendAnswer{Run: run, State: found.state, Reason: found.reason}, nil
	}
	return answer, fault.New(fault.Unavailable, "Busy", "Recipient %q keeps changing. Try again", id)
}

// Preview returns what would be sent now, and when the next email is due. It changes nothing.
func (r *Recipients) Preview(ctx context.Context, bound string, q api.DigestAccount, id string) (
	preview api.DigestPreview, _ error) {
	one, err := r.find(ctx, bound, q.Account, id)
	if err != nil {
		return preview, err
	}
	if preview.Due, err = r.dueNext(ctx, one); err != nil {
		return preview, err
	}
	kinds, err := r.kinds.of(ctx, one.account)
	if err != nil {
		return preview, err
	}
	all, err := r.waiting(ctx, one)
	if err != nil || len(all) == 0 {
		return preview, err
	}
	how, err := r.mannerOf(ctx, one, planned{schedule: nowSchedule, categories: one.categories}, kinds)
	if err != nil {
		return preview, err
	}
	now := r.opts.Now()
	fields := map[string]string{
		"account": one.account, "recipient": one.id,
		"schedule": nowSchedule, "period": now.UTC().Format(instant), "manner": how,
		"email": one.email, "name": one.name, "locale": one.locale, "tz": one.zone.String(),
	}
	return r.previewOf(ctx, readRun("preview", fields), all, preview)
}

// dueNext returns when a recipient's next email is due, or nil if nothing waits.
func (b *base) dueNext(ctx context.Context, one *recipient) (*time.Time, error) {
	kinds, err := b.kinds.of(ctx, one.account)
	if err != nil {
		return nil, err
	}
	pipe := b.DB.Client().Pipeline()
	var scores []*redis.FloatCmd
	members := b.opts.members(one, kinds)
	for schedule := range one.old {
		members = append(members, entry{one.readerKey, schedule}.member())
	}
	for _, member := range members {
		scores = append(scores, pipe.ZScore(ctx, dueKey(one.shard()), member))
	}
	_, _ = pipe.Exec(ctx) // each has its error
	var first *time.Time
	for _, score := range scores {
		at, err := score.Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return nil, redisdb.Failed(err, "read when %s gets its digest", one.readerKey)
		}
		if due := time.UnixMilli(int64(at)).UTC(); first == nil || due.Before(*first) {
			first = &due
		}
	}
	return first, nil
}

// nobody is the address in a preview for a recipient without one (RFC 2606 section 2).
const nobody = "nobody@example.invalid"

// previewOf writes the mail of groups.
func (b *base) previewOf(ctx context.Context, r *run, all []*group, preview api.DigestPreview) (
	api.DigestPreview, error) {
	d, _ := digestOf(all, r)
	mail, err := b.write(r, d)
	if err != nil {
		return preview, err
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(mail.Render.Params, &params); err != nil {
		return preview, err
	}
	var filled map[string]any
	decoder := json.NewDecoder(bytes.NewReader(mail.Render.Params))
	decoder.UseNumber()
	if err := decoder.Decode(&filled); err != nil {
		return preview, err
	}
	l, err := b.Mailing(ctx, outbox.Shared{Source: outbox.SourceAPI, Account: mail.Account,
		Template: mail.Template, Subject: mail.Subject, PreviewText: mail.PreviewText, HTML: mail.HTML,
		Text:   mail.Text,
		Locale: mail.Locale, TZ: mail.TZ, ListID: mail.ListID, TrackOpens: mail.TrackOpens,
		TrackClicks: mail.TrackClicks, Lane: mail.Lane, Preview: true})
	if err != nil {
		return preview, err
	}
	now := b.opts.Now()
	_, words, err := l.Write(ctx, outbox.Addressee{ID: ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(),
		To: message.Address{Name: r.name, Address: cmp.Or(r.email, nobody)}, ListID: mail.ListID, Params: filled,
		Date: now})
	if err != nil {
		return preview, err
	}
	for _, m := range words.Missing {
		preview.Missing = append(preview.Missing, api.TemplateMissing{Name: m.Name, Part: m.Part,
			Partial: m.Template, Line: m.Line, Column: m.Column})
	}
	preview.Subject, preview.HTML, preview.Text, preview.Digest = words.Subject, words.HTML, words.Text,
		params["digest"]
	return preview, nil
}
