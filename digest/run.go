package digest

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest/letter"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// Runs are the mails of all schedules.
type Runs struct{ *base }

// run is a run as it is stored.
type run struct {
	place
	id               string
	schedule, period string
	state, reason    string
	scheduled        time.Time
	started, ended   time.Time
	attempts, events int
	queueID          string
	taken            []string // categories of its events
	manner           manner
	ids              string // of events that were folded, as scripts write them
	email, name      string
	locale, tz       string
	groups           string // what it said, as writeGroups does
	returned         int    // events that went back, after it failed
	dropped          int    // and those that did not
}

func readRun(id string, from map[string]string) *run {
	n := func(field string) int {
		i, _ := strconv.Atoi(from[field]) // written by us, or empty
		return i
	}
	r := &run{place: place{from["account"], from["recipient"]}, id: id, schedule: from["schedule"],
		period: from["period"], state: from["state"], reason: from["reason"],
		scheduled: redisdb.ParseTime(from["scheduled"]), started: redisdb.ParseTime(from["started"]),
		ended: redisdb.ParseTime(from["ended"]), attempts: n("attempts"), events: n("events"),
		queueID: from["queueId"], email: from["email"], name: from["name"], locale: from["locale"], tz: from["tz"],
		groups: from["groups"], returned: n("returned"), dropped: n("dropped")}
	r.ids = from["ids"]
	_ = json.Unmarshal([]byte(from["taken"]), &r.taken) // written by us
	_ = json.Unmarshal([]byte(from["manner"]), &r.manner)
	return r
}

// find returns a run. Unknown, or of another account: NotFound.
func (b *Runs) find(ctx context.Context, bound, id string) (*run, error) {
	unknown := fault.New(fault.NotFound, "DigestRunNotFound", "There is no run %q of digests", id)
	key, ok := runKey(id)
	if !ok {
		return nil, unknown
	}
	fields, err := b.DB.Client().HGetAll(ctx, key).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "read run %s", id)
	}
	r := readRun(id, fields)
	if r.state == "" || bound != "" && r.account != bound {
		return nil, unknown
	}
	return r, nil
}

// open makes the run of a plan and works on it. again is true if the recipient was changed meanwhile.
func (w *worker) open(ctx context.Context, h held, r *recipient, p planned, now time.Time) (
	again bool, _ error) {
	id, answer, err := w.begin(ctx, h.member, h.fence, r, p, h.since(now), now)
	if err != nil {
		return false, err
	}
	switch answer.Word {
	case "STALE":
		return false, nil
	case "CHANGED":
		return true, nil
	case "AGAIN": // what came since that run began is looked at again
		return w.replan(ctx, h, r, p.schedule, now.Add(time.Second))
	}
	next := held{h.shard, "run " + id, answer.Fence}
	w.hold(next, true)
	defer w.hold(next, false)
	return false, w.finish(ctx, next, id)
}

// since returns when what is held was due.
func (h held) since(now time.Time) time.Time {
	if _, due, ok := h.entry(); ok && !due.IsZero() {
		return due
	}
	return now
}

// begin makes the run of a plan.
func (b *base) begin(ctx context.Context, member, fence string, r *recipient, p planned, scheduled,
	now time.Time) (id string, _ opened, _ error) {
	reason := p.reason
	if reason == "" && p.schedule != addressSchedule {
		stopped, err := b.whyNot(ctx, r, p.categories)
		if err != nil {
			return "", opened{}, err
		}
		reason = stopped
	}
	kinds, err := b.kinds.of(ctx, r.account)
	if err != nil {
		return "", opened{}, err
	}
	how, err := b.mannerOf(ctx, r, p, kinds)
	if err != nil {
		return "", opened{}, err
	}
	id = runID(r.place, p.schedule, p.period)
	fields := map[string]string{
		"account": r.account, "recipient": r.id, "schedule": p.schedule, "period": p.period,
		"email": r.email, "name": r.name, "locale": r.locale, "tz": r.zone.String(),
		"scheduled": strconv.FormatInt(scheduled.UnixMilli(), 10), "manner": how,
	}
	texts, err := writeFields(fields)
	if err != nil {
		return "", opened{}, err
	}
	lasts, err := writeFields(p.lasts)
	if err != nil {
		return "", opened{}, err
	}
	shard := r.shard()
	key, _ := runKey(id)
	keys := []string{r.key(), dueKey(shard), openKey(shard), fencesKey(shard), key, r.runs(),
		runsKey(shard, r.account)}
	for _, category := range p.categories {
		keys = append(keys, r.place.events(category))
	}
	others := ""
	if !p.later.IsZero() {
		others = entry{r.place, p.schedule}.member()
	}
	answer, err := openScript.RunReplicated(ctx, b.DB, keys, openArgs{Member: member, Fence: fence,
		Version: r.version, Now: now, Lease: now.Add(b.opts.Lease), Run: id, Reason: reason,
		Seconds: seconds(b.opts.Retention), Lasts: lasts, Fields: texts, Schedule: others,
		Later: p.later, Categories: p.categories})
	return id, answer, redisdb.Failed(err, "begin the digest of %s", r.place)
}

// whyNot returns why a recipient is not mailed about categories; empty: it is.
func (b *base) whyNot(ctx context.Context, r *recipient, categories []string) (string, error) {
	if r.email == "" {
		return noAddress, nil
	}
	kinds, err := b.kinds.of(ctx, r.account)
	if err != nil {
		return "", err
	}
	_, _, listed := b.opts.lane(categories, kinds)
	reasons, err := b.stopping(ctx, r.account, []string{r.email}, listed)
	if err != nil {
		return "", err
	}
	return reasons[0], nil
}

// resume works on a run that was begun before.
func (w *worker) resume(ctx context.Context, h held, id string) error {
	key, _ := runKey(id)
	fields, err := w.DB.Client().HMGet(ctx, key, "account").Result()
	if err != nil {
		return redisdb.Failed(err, "read run %s", id)
	}
	account, _ := fields[0].(string)
	answer, err := beginScript.RunReplicated(ctx, w.DB, []string{key, openKey(h.shard), fencesKey(h.shard),
		runsKey(h.shard, account)}, beginArgs{Run: id, Fence: h.fence, Now: w.opts.Now()})
	if err != nil || answer.Word != "BEGUN" {
		return redisdb.Failed(err, "go on with run %s", id)
	}
	return w.finish(ctx, h, id)
}

// finish makes the mail of a run and hands it to the outbox. Each step may be repeated.
func (w *worker) finish(ctx context.Context, h held, id string) error {
	r, err := w.find(ctx, "", id)
	if err != nil {
		return err
	}
	switch r.state {
	case api.DigestSkipped:
		return w.skip(ctx, h, r, r.reason)
	case api.DigestFailed:
		return w.giveUp(ctx, h, r)
	}
	began := time.Now()
	mail, err := w.mailOf(ctx, r)
	if err != nil {
		return w.failed(ctx, h, r, mail, err)
	}
	w.metrics.rendered.Observe(time.Since(began).Seconds())
	answer, err := w.Submit(ctx, mail.request)
	switch {
	case err != nil:
		return w.failed(ctx, h, r, mail, err)
	case answer.NoneQueued():
		return w.skip(ctx, h, r, "suppressed")
	}
	return w.submitted(ctx, h, r, mail, answer.QueueID)
}

// submitted notes the message of a run.
func (w *worker) submitted(ctx context.Context, h held, r *run, mail made, queueID string) error {
	w.log.InfoContext(ctx, "digest submitted", "message_id", queueID, "run", r.id, "account", r.account,
		"events", r.events)
	return w.close(ctx, h, r, closing{state: api.DigestSubmitted, queueID: queueID, groups: mail.record})
}

// skip tells that nobody is mailed.
func (w *worker) skip(ctx context.Context, h held, r *run, reason string) error {
	r.state, r.reason = api.DigestSkipped, reason
	if err := w.emit(ctx, r); err != nil {
		return err
	}
	w.metrics.runs.WithLabelValues(api.DigestSkipped).Inc()
	return w.close(ctx, h, r, closing{state: api.DigestSkipped, reason: reason})
}

const (
	firstWait = 10 * time.Second // before a run is tried again; doubled each time
	mostWait  = time.Hour
)

// failed decides what follows an error: the run is tried again, or fails. mail is empty if it was not made.
func (w *worker) failed(ctx context.Context, h held, r *run, mail made, cause error) error {
	if fault.Is(cause, fault.Unavailable) || errors.Is(cause, context.DeadlineExceeded) {
		return cause // of Redis: its lease ends, and no attempt is spent
	}
	// The outbox may have accepted its message before, when the answer was lost or the process died. What fails
	// now, as a template that was deleted since, must not mail its events in another one.
	queueID, err := w.Accepted(ctx, r.account, mailKey(r.id))
	if err != nil {
		return err
	}
	if queueID != "" {
		return w.submitted(ctx, h, r, mail, queueID)
	}
	reason := reasonOf(cause)
	if f, ok := errors.AsType[*fault.Error](cause); ok && f.Kind == fault.Limited { // a quota is used up
		wait := min(max(f.RetryAfter, firstWait), mostWait)
		return w.close(ctx, h, r, closing{reason: reason, again: w.opts.Now().Add(wait), unspent: true})
	}
	if r.attempts < w.opts.Attempts {
		wait := min(firstWait<<min(r.attempts, 10), mostWait)
		w.log.WarnContext(ctx, "digest not made; it is tried again", "run", r.id, "account", r.account, "attempt",
			r.attempts, "wait_seconds", wait.Seconds(), "error", cause)
		return w.close(ctx, h, r, closing{reason: reason, again: w.opts.Now().Add(wait)})
	}
	w.log.ErrorContext(ctx, "digest failed", "run", r.id, "account", r.account, "attempts", r.attempts, "error",
		cause)
	held, err := w.closed(ctx, h, r, closing{state: api.DigestFailed, reason: reason, open: true})
	if err != nil || !held {
		return err
	}
	r.state, r.reason = api.DigestFailed, reason
	return w.giveUp(ctx, h, r)
}

// giveUp ends the work on a run that failed. It stays open until its events returned and that is told, so
// that another process goes on if this one dies.
func (w *worker) giveUp(ctx context.Context, h held, r *run) error {
	if err := w.giveBack(ctx, r); err != nil {
		return err
	}
	return w.close(ctx, h, r, closing{state: api.DigestFailed, reason: r.reason})
}

// mostReason bounds the reason of a run, in bytes.
const mostReason = 300

func reasonOf(err error) string {
	reason := err.Error()
	if fault.CodeOf(err) != "" {
		reason = fault.CodeOf(err) + ": " + reason
	}
	return strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "")
}

// closing is how the work on a run ends.
type closing struct {
	state, reason, queueID, groups string
	again                          time.Time // without a state
	unspent                        bool      // this was no attempt
	open                           bool      // something is left to do about its state
}

func (b *base) close(ctx context.Context, h held, r *run, c closing) error {
	_, err := b.closed(ctx, h, r, c)
	return err
}

// closed is close. It reports whether the caller still held the run; if not, nothing was changed.
func (b *base) closed(ctx context.Context, h held, r *run, c closing) (held bool, _ error) {
	key, _ := runKey(r.id)
	answer, err := closeScript.RunReplicated(ctx, b.DB, []string{key, openKey(h.shard), fencesKey(h.shard),
		runsKey(h.shard, r.account), r.runs()}, closeArgs{Run: r.id, Fence: h.fence, Now: b.opts.Now(),
		State: c.state, Reason: c.reason, QueueID: c.queueID, Groups: c.groups, Seconds: seconds(b.opts.Retention),
		Again: c.again, Unspent: c.unspent, Open: c.open})
	return answer.Word == "CLOSED", redisdb.Failed(err, "close run %s", r.id)
}

// snapshot returns the groups of a run, ranked, and the ids of its events, of those beyond digest.keep not.
func (b *base) snapshot(ctx context.Context, r *run) ([]*group, []string, error) {
	keys := make([]string, len(r.taken))
	for i := range r.taken {
		keys[i] = takenKey(r.id, i)
	}
	all, ids, err := b.groups(ctx, r.taken, keys)
	for n := 0; n+idSize <= len(r.ids); n += idSize {
		ids = append(ids, r.ids[n:n+idSize])
	}
	return all, ids, err
}

// waiting returns the groups of what waits for a recipient, ranked.
func (b *base) waiting(ctx context.Context, r *recipient) ([]*group, error) {
	keys := make([]string, len(r.categories))
	for i, category := range r.categories {
		keys[i] = r.events(category)
	}
	all, _, err := b.groups(ctx, r.categories, keys)
	return all, err
}

// groups reads lists of events, each of a category.
func (b *base) groups(ctx context.Context, categories, keys []string) ([]*group, []string, error) {
	if len(keys) == 0 {
		return nil, nil, nil
	}
	pipe := b.DB.Client().Pipeline()
	lists, older := make([]*redis.StringSliceCmd, len(keys)), make([]*redis.MapStringStringCmd, len(keys))
	for i, key := range keys {
		lists[i] = pipe.LRange(ctx, key, 0, -1)
		older[i] = pipe.HGetAll(ctx, key+olderPart)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, redisdb.Failed(err, "read events of digests")
	}
	g := gathered{byName: map[string]*group{}}
	for i, listed := range categories {
		category := strings.TrimPrefix(listed, urgentCategory)
		if err := g.addOlder(category, older[i].Val()); err != nil {
			return nil, nil, err
		}
		if err := g.addLines(category, lists[i].Val()); err != nil {
			return nil, nil, err
		}
	}
	rank(g.all)
	return g.all, g.ids, nil
}

// gathered is groups of several lists.
type gathered struct {
	all    []*group
	byName map[string]*group
	ids    []string // of events
}

func (g *gathered) add(one *group) {
	name := one.category + "\x00" + groupField(one.entityType, one.entityID)
	if has := g.byName[name]; has != nil {
		has.join(one)
		return
	}
	g.byName[name], g.all = one, append(g.all, one)
}

// addOlder adds the groups that scripts folded.
func (g *gathered) addOlder(category string, older map[string]string) error {
	for name, value := range older {
		if !strings.Contains(name, "\x00") {
			continue // a counter
		}
		one, err := folded(category, name, value)
		if err != nil {
			return err
		}
		g.add(one)
	}
	return nil
}

func (g *gathered) addLines(category string, texts []string) (err error) {
	lines := make([]line, len(texts))
	for n, text := range texts {
		if lines[n], err = readLine(text); err != nil {
			return err
		}
		g.ids = append(g.ids, lines[n].id)
	}
	for _, one := range grouped(category, lines) {
		g.add(one)
	}
	return nil
}

// join adds another group about the same thing, whose events came later. An actor of both that neither
// names is counted twice: only a mail of all that waits, now, joins groups, of urgent and of other events.
func (g *group) join(later *group) {
	g.count += later.count
	g.first = min(g.first, later.first)
	g.priority = max(g.priority, later.priority)
	if later.last >= g.last {
		g.last, g.newest = later.last, later.newest
	}
	older, both := g.actors, 0
	g.actors = later.actors
	for _, a := range older {
		switch {
		case slices.ContainsFunc(later.actors, func(b letter.Actor) bool { return sameActor(a, b) }):
			both++
		case len(g.actors) < mostActors:
			g.actors = append(g.actors, a)
		}
	}
	g.different += later.different - both
}

// record is what a run keeps of what it said.
type record struct {
	Groups []api.DigestGroup `json:"groups"`
	Events []string          `json:"events"` // ids, the newest of them
}

// packers are writers of records at rest: each has a table of a megabyte.
var packers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is one that it knows
	}
	return w
}}

// write packs a record.
func (r record) write() (string, error) {
	var b bytes.Buffer
	packed, _ := packers.Get().(*flate.Writer)
	defer packers.Put(packed)
	packed.Reset(&b)
	err := json.NewEncoder(packed).Encode(r)
	if err == nil {
		err = packed.Close()
	}
	return b.String(), err
}

func readRecord(packed string) (r record, err error) {
	if packed == "" {
		return r, nil
	}
	raw, err := io.ReadAll(flate.NewReader(strings.NewReader(packed)))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		err = fmt.Errorf("read what a run said: %w", err)
	}
	return r, err
}

// show returns a run as the API shows it.
func (r *run) show() api.DigestRun {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return api.DigestRun{Run: r.id, Account: r.account, Recipient: r.place.id, Schedule: r.schedule,
		Period: r.period, State: r.state, Reason: r.reason, Scheduled: r.scheduled, Started: at(r.started),
		Ended: at(r.ended), Attempts: r.attempts, Events: r.events, QueueID: r.queueID}
}
