package digest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
)

// nextTimes is how many coming times are shown, in addition to the first one of each schedule.
const nextTimes = 3

// show returns a recipient as the API shows it.
func (r *Recipients) show(ctx context.Context, one *recipient) (api.DigestRecipient, error) {
	kinds, err := r.kinds.of(ctx, one.account)
	if err != nil {
		return api.DigestRecipient{}, err
	}
	counts, err := r.counts(ctx, one)
	if err != nil {
		return api.DigestRecipient{}, err
	}
	version, _ := strconv.Atoi(one.version)
	shown := api.DigestRecipient{Recipient: one.id, Account: one.account, Email: one.email, Name: one.name,
		Locale: one.locale, TZ: one.tz, Preferences: one.preferences, Quiet: one.quietHours, Waiting: counts,
		Version: version, Created: one.created, Updated: one.updated,
		Next: r.opts.nextOf(one, kinds, r.opts.Now())}
	if shown.Quiet == nil {
		shown.Quiet = []api.DigestQuiet{}
	}
	if one.paused.After(r.opts.Now()) {
		paused := one.paused.UTC()
		shown.PausedUntil = &paused
	}
	if one.lost {
		shown.Warnings = append(shown.Warnings, fmt.Sprintf("The time zone %q is gone; UTC is used instead", one.tz))
	}
	if one.email == "" {
		shown.Warnings = append(shown.Warnings, "There is no address: events wait for one for 24 hours")
	}
	for _, category := range slices.Sorted(maps.Keys(kinds)) {
		if one.isOff(category) && kinds[category].Required {
			shown.Warnings = append(shown.Warnings, fmt.Sprintf("The category %q is required, so its emails continue: %s",
				category, r.opts.wanted(one, category, kinds[category]).words()))
		}
	}
	return shown, nil
}

// nextOf returns the next times at which events that come now would be sent.
func (o Options) nextOf(r *recipient, kinds map[string]*api.DigestKind, now time.Time) []api.DigestNext {
	names := map[string]bool{rest: true}
	for category := range r.preferences {
		names[category] = true
	}
	for category := range kinds {
		names[category] = true
	}
	for _, category := range r.categories {
		names[strings.TrimPrefix(category, urgentCategory)] = true
	}
	all := []api.DigestNext{}
	for _, w := range o.wishes(r, slices.Sorted(maps.Keys(names)), kinds) {
		words := fmt.Sprintf("%s (%s)", w.words(), r.zone)
		if w.mode == immediate {
			all = append(all, api.DigestNext{Schedule: w.schedule, Categories: w.categories,
				At: o.soon(r, 0, time.Time{}, now).UTC(), Words: words})
			continue
		}
		at := now
		for range nextTimes {
			p, ok := o.next(r, w.cadence, r.last(w.mode, w.categories[0]), at)
			if !ok {
				break
			}
			all = append(all, api.DigestNext{Schedule: w.schedule, Categories: w.categories, At: p.due.UTC(),
				Words: words})
			at = p.due
		}
	}
	slices.SortStableFunc(all, func(a, b api.DigestNext) int { return a.At.Compare(b.At) })
	seen := map[string]bool{}
	next := all[:0]
	for i, one := range all {
		if i < nextTimes || !seen[one.Schedule] {
			next = append(next, one)
		}
		seen[one.Schedule] = true
	}
	return next
}

// counts returns how many events of each category wait.
func (b *base) counts(ctx context.Context, one *recipient) (map[string]int, error) {
	counts := map[string]int{}
	if len(one.categories) == 0 {
		return counts, nil
	}
	pipe := b.DB.Client().Pipeline()
	lens, older := make([]*redis.IntCmd, len(one.categories)), make([]*redis.StringCmd, len(one.categories))
	for i, category := range one.categories {
		lens[i] = pipe.LLen(ctx, one.events(category))
		older[i] = pipe.HGet(ctx, one.events(category)+olderPart, "n")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "count the events of %s", one.readerKey)
	}
	for i, category := range one.categories {
		n, _ := older[i].Int() // 0 if there are none
		if n += int(lens[i].Val()); n > 0 {
			counts[strings.TrimPrefix(category, urgentCategory)] += n
		}
	}
	return counts, nil
}

// olderPart ends the key of older events' groups.
const olderPart = ":older"

// Waiting returns a recipient's events that are not sent yet, oldest first.
func (r *Recipients) Waiting(ctx context.Context, bound string, q api.DigestAccount, id string) (
	api.DigestWaiting, error) {
	answer := api.DigestWaiting{Events: []api.DigestWaitingEvent{}}
	one, err := r.find(ctx, bound, q.Account, id)
	if err != nil {
		return answer, err
	}
	if answer.Counts, err = r.counts(ctx, one); err != nil {
		return answer, err
	}
	for _, category := range one.categories {
		texts, err := r.DB.Client().LRange(ctx, one.events(category), 0, -1).Result()
		if err != nil {
			return answer, redisdb.Failed(err, "read the events of %s", one.readerKey)
		}
		for _, text := range texts {
			l, err := readLine(text)
			if err != nil {
				return answer, err
			}
			answer.Events = append(answer.Events, l.event(one.readerKey, strings.TrimPrefix(category, urgentCategory)))
		}
	}
	slices.SortStableFunc(answer.Events, func(a, b api.DigestWaitingEvent) int {
		return a.OccurredAt.Compare(*b.OccurredAt)
	})
	return answer, nil
}

// mostRemovals is how many recipients one removal may name.
const mostRemovals = 100

// Remove deletes events that are not sent yet: a key's event, or all events about an entity. By key it finds
// the newest digest.keep events of a category.
func (r *Recipients) Remove(ctx context.Context, bound string, q api.DigestEventRemoval) (
	answer api.DigestEventsDeleted, _ error) {
	var f fault.Fields
	if n := len(q.Recipients); n == 0 || n > mostRemovals {
		f.Add("recipient", "is required, at most %d times", mostRemovals)
	}
	entity := q.Category != "" || q.EntityType != "" || q.EntityID != ""
	switch {
	case q.Key == "" && !entity:
		f.Add("key", "or category, entityType and entityId is required")
	case q.Key != "" && entity:
		f.Add("key", "can't be combined with category, entityType and entityId")
	case entity && (q.Category == "" || q.EntityType == "" || q.EntityID == ""):
		f.Add("entityId", "requires category and entityType, which require it")
	}
	if f != nil {
		return answer, fault.InvalidFields(f)
	}
	account, err := r.requestAccount(ctx, bound, q.Account)
	if err != nil {
		return answer, err
	}
	for _, id := range q.Recipients {
		n, older, err := r.purge(ctx, readerKey{account, id}, q)
		if answer.Deleted += n; err != nil {
			return answer, err
		}
		if q.Key != "" && n == 0 && older > 0 {
			answer.Warnings = append(answer.Warnings, fmt.Sprintf(
				"%d older events of %q wait, which a key can't reach: take them back by category, entityType and entityId",
				older, id))
		}
	}
	return answer, nil
}

func (r *Recipients) purge(ctx context.Context, k readerKey, q api.DigestEventRemoval) (n, old int, _ error) {
	one, err := r.read(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	args := removeEventsArgs{Group: groupField(q.EntityType, q.EntityID),
		Entity: entityOf(q.EntityType, q.EntityID)}
	if q.Key != "" {
		args.ID = keyID(k.account, k.id, q.Key)
	}
	day := today(r.opts.Now())
	keys := []string{k.known(day - 2), k.known(day - 1), k.known(day), k.known(day + 1),
		redisdb.Key(k.shard(), "digest-removal", rand.Text())}
	for _, category := range one.categories {
		if q.Key != "" || strings.TrimPrefix(category, urgentCategory) == q.Category {
			keys = append(keys, k.events(category))
		}
	}
	rows, err := removeEventsScript.RunReplicated(ctx, r.DB, keys, args)
	if err != nil {
		return 0, 0, redisdb.Failed(err, "remove events of %s", k)
	}
	for _, row := range rows {
		n, old = n+row.Deleted, old+row.Older
	}
	return n, old, nil
}

// Times returns when a preference comes, without the stagger of a recipient.
func (r *Recipients) Times(req api.DigestTimesRequest) (api.DigestTimes, error) {
	var f fault.Fields
	c, wrong := r.opts.cadenceOf(req.Preference, "preference")
	f = append(f, wrong...)
	quiet, wrong := quietOf(req.Quiet)
	f = append(f, wrong...)
	checkZone(&f, "tz", req.TZ)
	after := r.opts.Now()
	if req.After != nil {
		after = *req.After
		if y := after.UTC().Year(); y < 2000 || y > 2100 {
			f.Add("after", "must be from 2000 to 2100")
		}
	}
	if wrong == nil && f == nil && (c.mode == immediate || c.mode == off) {
		f.Add("preference.mode", "must be hourly, daily, weekly, monthly or custom, because %s has no "+
			"times", c.mode)
	}
	if req.Count < 0 || req.Count > 100 {
		f.Add("count", "must be 1 to 100")
	}
	if f != nil {
		return api.DigestTimes{}, fault.InvalidFields(f)
	}
	zone, _ := schedule.Zone(cmp.Or(req.TZ, "UTC")) // was checked
	o := r.opts
	o.Stagger = 0
	one := &recipient{zone: zone, quiet: quiet}
	answer := api.DigestTimes{Times: []api.DigestTime{}}
	last := ""
	for range max(1, req.Count) {
		p, ok := o.next(one, c, last, after)
		if !ok {
			break
		}
		if newest, ok := o.newest(one, c, last, p.due, p.due); ok { // if quiet hours move several to their end
			p.id = newest.id
		}
		answer.Times = append(answer.Times, api.DigestTime{At: p.due.UTC(),
			Local: p.due.In(zone).Format("2006-01-02T15:04:05"), Period: p.id, Words: c.words()})
		after, last = p.due, p.id
	}
	return answer, nil
}
