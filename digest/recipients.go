package digest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"golang.org/x/text/language"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// Get returns a recipient with its next times and waiting events, or NotFound.
func (r *Recipients) Get(ctx context.Context, bound string, q api.DigestAccount, id string) (
	api.DigestRecipient, error) {
	found, err := r.find(ctx, bound, q.Account, id)
	if err != nil {
		return api.DigestRecipient{}, err
	}
	return r.show(ctx, found)
}

// find returns a recipient, or NotFound.
func (r *Recipients) find(ctx context.Context, bound, account, id string) (*recipient, error) {
	account, err := r.requestAccount(ctx, bound, account)
	if err != nil {
		return nil, err
	}
	found, err := r.read(ctx, readerKey{account, id})
	if err == nil && found.version == "" {
		err = fault.New(fault.NotFound, "DigestRecipientNotFound",
			"Account %[2]q has no digest recipient %[1]q", id, account)
	}
	return found, err
}

// read returns a recipient; without a version if there is none.
func (b *base) read(ctx context.Context, k readerKey) (*recipient, error) {
	fields, err := b.DB.Client().HGetAll(ctx, k.key()).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "read %s", k)
	}
	return readRecipient(k, fields), nil
}

// Put stores a recipient: its preferences are replaced, other fields if they are named. It reports whether
// there was one. Invalid names every wrong field.
func (r *Recipients) Put(ctx context.Context, bound, id string, req api.DigestRecipientRequest) (
	_ api.DigestRecipient, existed bool, _ error) {
	return r.write(ctx, bound, id, req, true)
}

// Patch changes a recipient: the preferences of the categories that it names, null removes one. It returns
// NotFound for an unknown recipient.
func (r *Recipients) Patch(ctx context.Context, bound, id string, req api.DigestRecipientRequest) (
	api.DigestRecipient, error) {
	shown, _, err := r.write(ctx, bound, id, req, false)
	return shown, err
}

func (r *Recipients) write(ctx context.Context, bound, id string, req api.DigestRecipientRequest,
	whole bool) (none api.DigestRecipient, existed bool, _ error) {
	account, err := r.requestAccount(ctx, bound, req.Account)
	if err != nil {
		return none, false, err
	}
	kinds, err := r.kinds.of(ctx, account)
	if err != nil {
		return none, false, err
	}
	if err := r.checkRequest(id, &req, kinds); err != nil {
		return none, false, err
	}
	next, err := r.change(ctx, readerKey{account, id}, func(old *recipient) error {
		existed = old.version != ""
		switch {
		case !existed && !whole:
			return fault.New(fault.NotFound, "DigestRecipientNotFound",
				"Account %[2]q has no digest recipient %[1]q", id, account)
		case req.Version != nil && strconv.Itoa(*req.Version) != cmp.Or(old.version, "0"):
			return fault.New(fault.Conflict, "DigestRecipientChanged", "Recipient %q is now at version "+
				"%s, not %d. Read it again and repeat your change", id,
				cmp.Or(old.version, "0"), *req.Version)
		}
		return old.apply(req, whole)
	})
	if err != nil {
		return none, existed, err
	}
	if err := r.welcome(ctx, next, req.Preferences); err != nil {
		return none, existed, err
	}
	shown, err := r.show(ctx, next)
	return shown, existed, err
}

// checkRequest returns an error that names every wrong field. Values get their normal form.
func (r *Recipients) checkRequest(id string, req *api.DigestRecipientRequest,
	kinds map[string]*api.DigestKind) error {
	var f fault.Fields
	checkRecipientID(&f, id)
	if req.Email != nil && *req.Email != "" {
		email, err := message.NormalizeAddress(*req.Email)
		if err != nil {
			f.Add("email", "%s", err)
		}
		req.Email = &email
	}
	if req.Name != nil && (utf8.RuneCountInString(*req.Name) > 256 ||
		strings.ContainsFunc(*req.Name, unicode.IsControl)) {
		f.Add("name", "must have at most 256 characters, without control characters")
	}
	if req.Locale != nil {
		checkLocale(&f, "locale", *req.Locale)
	}
	if req.TZ != nil {
		checkZone(&f, "tz", *req.TZ)
	}
	if len(req.Preferences) > mostCategories+1 {
		f.Add("preferences", "must have at most %d categories and *", mostCategories)
	}
	for category, p := range req.Preferences {
		key := "preferences." + category
		if n := utf8.RuneCountInString(category); n == 0 || n > 64 ||
			strings.ContainsFunc(category, unicode.IsControl) {
			f.Add(key, "must be a category of 1 to 64 characters, without control characters")
		}
		if p != nil {
			_, wrong := r.opts.cadenceOf(*p, key)
			f = append(f, wrong...)
			if k := kinds[category]; p.Mode == off && k != nil && k.Required {
				f.Add(key+".mode", "can't be off, because the category is required")
			}
		}
	}
	if req.Quiet != nil {
		_, wrong := quietOf(*req.Quiet)
		f = append(f, wrong...)
	}
	slices.SortFunc(f, func(a, b fault.Field) int { return cmp.Compare(a.Key, b.Key) })
	return fault.InvalidFields(f)
}

func checkRecipientID(f *fault.Fields, id string) {
	if n := utf8.RuneCountInString(id); n == 0 || n > 256 || !utf8.ValidString(id) ||
		strings.ContainsFunc(id, unicode.IsControl) {
		f.Add("recipient", "must have 1 to 256 characters, without control characters")
	}
}

func checkLocale(f *fault.Fields, key, tag string) {
	if tag == "" {
		return
	}
	if _, err := language.Parse(tag); err != nil {
		f.Add(key, "must be a language such as de or pt-BR")
	}
}

// apply changes a recipient by a request that was checked.
func (r *recipient) apply(req api.DigestRecipientRequest, whole bool) error {
	api.Set(&r.email, req.Email)
	api.Set(&r.name, req.Name)
	api.Set(&r.locale, req.Locale)
	api.Set(&r.tz, req.TZ)
	if whole && req.Preferences != nil {
		r.preferences = map[string]api.DigestPreference{}
	}
	for category, p := range req.Preferences {
		if p == nil {
			delete(r.preferences, category)
		} else {
			r.preferences[category] = *p
		}
	}
	if len(r.preferences) > mostCategories+1 {
		return fault.InvalidField("preferences", "would have %d categories; at most %d and * are possible",
			len(r.preferences), mostCategories)
	}
	api.Set(&r.quietHours, req.Quiet)
	if req.PausedUntil != nil {
		r.paused = *req.PausedUntil
	}
	return nil
}

// change replaces a recipient by edit's result, and plans its waiting events again. edit is called again if
// another change comes first; nil changes nothing but the plan.
func (r *base) change(ctx context.Context, k readerKey, edit func(*recipient) error) (*recipient, error) {
	kinds, err := r.kinds.of(ctx, k.account)
	if err != nil {
		return nil, err
	}
	for range mostTries {
		old, err := r.read(ctx, k)
		if err != nil {
			return nil, err
		}
		if edit == nil && old.version == "" {
			return old, nil
		}
		next := old.copy()
		if edit != nil {
			if err := edit(next); err != nil {
				return nil, err
			}
		}
		next.settle()
		now := r.opts.Now()
		if err := r.finishing(ctx, old, next, kinds, now); err != nil {
			return nil, err
		}
		stored, err := r.put(ctx, old, next, kinds, now)
		if err != nil || stored {
			return next, err
		}
	}
	return nil, fault.New(fault.Unavailable, "Busy", "%s wasn't changed, because other requests keep "+
		"changing it. Try again", k)
}

// copy returns a copy that may be changed.
func (r *recipient) copy() *recipient {
	next := *r
	next.preferences = map[string]api.DigestPreference{}
	for category, p := range r.preferences {
		next.preferences[category] = p
	}
	next.old = map[string]finishing{}
	for schedule, f := range r.old {
		next.old[schedule] = f
	}
	return &next
}

// finishing lets schedules finish that are due within the grace and that the change would move. A change
// that turns a category off, or moves its address away, lets nothing finish. Schedules that a change
// before let finish, and that are not in due any more, have finished.
func (r *base) finishing(ctx context.Context, old, next *recipient, kinds map[string]*api.DigestKind,
	now time.Time) error {
	before := r.opts.wishes(old, old.categories, kinds)
	names := slices.Collect(maps.Keys(next.old))
	for _, w := range before {
		if !slices.Contains(names, w.schedule) {
			names = append(names, w.schedule)
		}
	}
	due, err := r.dueOf(ctx, old.readerKey, names)
	if err != nil {
		return err
	}
	for schedule := range next.old {
		if due[schedule].IsZero() {
			delete(next.old, schedule)
		}
	}
	if old.email == "" || r.opts.Grace <= 0 {
		return nil
	}
	for _, w := range before {
		at := due[w.schedule]
		if at.IsZero() || w.schedule == urgentSchedule || at.After(now.Add(r.opts.Grace)) || next.paused.After(at) {
			continue
		}
		kept := finishing{Preference: r.opts.preference(old, w.categories[0], kinds[w.categories[0]])}
		for _, category := range w.categories {
			if c := r.opts.wanted(next, category, kinds[category]); c.mode != off && c.key() != w.schedule {
				kept.Categories = append(kept.Categories, category)
			}
		}
		if kept.Categories != nil {
			next.old[w.schedule] = kept
		}
	}
	return nil
}

// dueOf returns when a recipient's schedules are due, except for unplanned schedules.
func (r *base) dueOf(ctx context.Context, k readerKey, schedules []string) (map[string]time.Time, error) {
	due := map[string]time.Time{}
	if len(schedules) == 0 {
		return due, nil
	}
	pipe := r.DB.Client().Pipeline()
	scores := make([]*redis.FloatCmd, len(schedules))
	for i, schedule := range schedules {
		scores[i] = pipe.ZScore(ctx, dueKey(k.shard()), entry{k, schedule}.member())
	}
	_, _ = pipe.Exec(ctx) // each has its error
	for i, schedule := range schedules {
		score, err := scores[i].Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.Failed(err, "read when %s gets its digest", k)
		}
		if err == nil {
			due[schedule] = time.UnixMilli(int64(score))
		}
	}
	return due, nil
}

// put stores a recipient if it is still as old. It reports whether it was.
func (r *base) put(ctx context.Context, old, next *recipient, kinds map[string]*api.DigestKind,
	now time.Time) (bool, error) {
	set := map[string]string{"email": next.email, "name": next.name, "locale": next.locale, "tz": next.tz}
	var err error
	text := func(v any, empty bool) string {
		raw, wrong := json.Marshal(v)
		if err == nil {
			err = wrong
		}
		if empty {
			return ""
		}
		return string(raw)
	}
	set["preferences"] = text(next.preferences, len(next.preferences) == 0)
	set["quiet"] = text(next.quietHours, len(next.quietHours) == 0)
	set["paused"] = ""
	if next.paused.After(now) {
		set["paused"] = strconv.FormatInt(next.paused.UnixMilli(), 10)
	}
	for schedule, f := range next.old {
		set[oldField+schedule] = text(f, false)
	}
	for schedule := range old.old {
		if _, finishes := next.old[schedule]; !finishes {
			set[oldField+schedule] = ""
		}
	}
	gone, kept := r.opts.members(old, kinds), []string{}
	plans := r.opts.plan(next, kinds, now)
	for schedule := range next.old {
		member := entry{old.readerKey, schedule}.member()
		gone = slices.DeleteFunc(gone, func(m string) bool { return m == member })
		kept = append(kept, member)
	}
	fields, members, finishing := text(set, false), text(gone, false), text(kept, false)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", old.readerKey, err)
	}
	if next.email != old.email {
		if err := r.noteAddress(ctx, old.readerKey, next.email); err != nil {
			return false, err
		}
	}
	answer, err := preferScript.RunReplicated(ctx, r.DB, []string{old.key(),
		recipientsKey(old.shard(), old.account), dueKey(old.shard())}, preferArgs{Version: old.version, Now: now,
		ID: old.id, Fields: fields, Gone: members, Kept: finishing, Plans: plans})
	if err != nil {
		return false, redisdb.Failed(err, "store %s", old.readerKey)
	}
	n, _ := strconv.Atoi(old.version)
	next.version = strconv.Itoa(n + 1)
	next.updated = now
	if next.created.IsZero() {
		next.created = now
	}
	return answer.Word == "STORED", nil
}
