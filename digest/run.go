package digest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest/mail"
	"github.com/postroom/postroom/internal/redisdb"
)

// Runs are the emails of all schedules.
type Runs struct{ *base }

// run is a run as it is stored.
type run struct {
	readerKey
	id               string
	schedule, period string
	state, reason    string
	scheduled        time.Time
	started, ended   time.Time
	attempts, events int
	retries          int // how often somebody had it run again after it failed
	queueID          string
	taken            []string // categories of its events
	manner           manner
	email, name      string
	locale, tz       string
	groups           string // its content, as writeGroups writes it
	returned         int    // events that went back, after it failed
	dropped          int    // and the ones that did not
}

func readRun(id string, from map[string]string) *run {
	n := func(field string) int {
		i, _ := strconv.Atoi(from[field]) // written by us, or empty
		return i
	}
	r := &run{readerKey: readerKey{from["account"], from["recipient"]}, id: id, schedule: from["schedule"],
		period: from["period"], state: from["state"], reason: from["reason"],
		scheduled: redisdb.ParseTime(from["scheduled"]), started: redisdb.ParseTime(from["started"]),
		ended: redisdb.ParseTime(from["ended"]), attempts: n("attempts"), events: n("events"),
		retries: n("retries"),
		queueID: from["queueId"], email: from["email"], name: from["name"], locale: from["locale"], tz: from["tz"],
		groups: from["groups"], returned: n("returned"), dropped: n("dropped")}
	_ = json.Unmarshal([]byte(from["taken"]), &r.taken) // written by us
	_ = json.Unmarshal([]byte(from["manner"]), &r.manner)
	return r
}

// find returns a run. Unknown, or of another account: NotFound.
func (b *Runs) find(ctx context.Context, bound, id string) (*run, error) {
	r, _, err := b.findBegun(ctx, id, 0)
	if err == nil && bound != "" && r.account != bound {
		err = unknownRun(id)
	}
	return r, err
}

// findBegun returns a run with the events it took, which are in at most most lists, or NotFound.
func (b *Runs) findBegun(ctx context.Context, id string, most int) (*run, lists, error) {
	key, ok := runKey(id)
	if !ok {
		return nil, lists{}, unknownRun(id)
	}
	pipe := b.DB.Client().Pipeline()
	fields, taken := pipe.HGetAll(ctx, key), addLists(ctx, pipe, takenKeys(id, most))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, taken, redisdb.Failed(err, "read run %s", id)
	}
	r := readRun(id, fields.Val())
	if r.state == "" {
		return nil, taken, unknownRun(id)
	}
	return r, taken, nil
}

func unknownRun(id string) error {
	return fault.New(fault.NotFound, "DigestRunNotFound", "There is no digest run %q", id)
}

// open makes a plan's run and works on it. again is true if the recipient was changed in between.
func (w *worker) open(ctx context.Context, h held, r *recipient, p planned, now time.Time) (
	again bool, _ error) {
	scheduled := p.due
	if scheduled.IsZero() {
		scheduled = h.since(now)
	}
	id, answer, err := w.begin(ctx, h.member, h.fence, r, p, scheduled, now)
	if err != nil {
		return false, err
	}
	switch answer.Word {
	case "STALE":
		return false, nil
	case "CHANGED":
		return true, nil
	case "AGAIN": // events that came since that run began are looked at again
		return w.replan(ctx, h, r, p.schedule, now.Add(time.Second))
	}
	next := held{h.shard, "run " + id, answer.Fence}
	defer w.hold(ctx, next)()
	begun, taken, err := w.findBegun(ctx, id, len(p.categories))
	if err != nil {
		return false, err
	}
	return false, w.finish(ctx, next, begun, taken)
}

// since returns when it was due.
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
	id = runID(r.readerKey, p.schedule, p.period)
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
		keys = append(keys, r.readerKey.events(category))
	}
	others := ""
	if !p.later.IsZero() {
		others = entry{r.readerKey, p.schedule}.member()
	}
	answer, err := openScript.RunReplicated(ctx, b.DB, keys, openArgs{Member: member, Fence: fence,
		Version: r.version, Now: now, Lease: now.Add(b.opts.Lease), Run: id, Reason: reason,
		Seconds: seconds(b.opts.Retention), Lasts: lasts, Fields: texts, Schedule: others,
		Later: p.later, Categories: p.categories})
	return id, answer, redisdb.Failed(err, "begin the digest of %s", r.readerKey)
}

// whyNot returns why a recipient gets no mail about categories, or "".
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

// finish makes a run's mail from the events it took, and passes it to the outbox. Each step may be repeated.
func (w *worker) finish(ctx context.Context, h held, r *run, taken lists) error {
	switch r.state {
	case api.DigestSkipped:
		return w.skip(ctx, h, r, r.reason)
	case api.DigestFailed:
		return w.giveUp(ctx, h, r)
	}
	began := time.Now()
	mail, err := w.mailOf(r, taken)
	if err != nil {
		return w.failed(ctx, h, r, mail, err)
	}
	w.metrics.rendered.Observe(time.Since(began).Seconds())
	answer, err := w.Submit(ctx, mail.request)
	switch {
	case err != nil:
		return w.failed(ctx, h, r, mail, err)
	case answer.NoneQueued():
		held, err := w.closed(ctx, h, r, closing{state: api.DigestSkipped, reason: "suppressed", open: true})
		if err != nil || !held { // an erased recipient, for example, is not reported
			return err
		}
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

// skip reports that no mail is sent.
func (w *worker) skip(ctx context.Context, h held, r *run, reason string) error {
	r.state, r.reason = api.DigestSkipped, reason
	if err := w.emit(ctx, r); err != nil {
		return err
	}
	w.metrics.runs.WithLabelValues(api.DigestSkipped).Inc()
	return w.close(ctx, h, r, closing{state: api.DigestSkipped, reason: reason})
}

// closing is how the work on a run ends.
type closing struct {
	state, reason, queueID, groups string
	again                          time.Time // without a state
	unspent                        bool      // this doesn't count as an attempt
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

// lists are lists of events, each of a category, as they were read.
type lists struct {
	lines  []*redis.StringSliceCmd
	older  []*redis.MapStringStringCmd
	actors []*redis.StringSliceCmd // that older counts
}

// addLists reads lists with a pipeline.
func addLists(ctx context.Context, pipe redis.Pipeliner, keys []string) (l lists) {
	for _, key := range keys {
		l.lines = append(l.lines, pipe.LRange(ctx, key, 0, -1))
		l.older = append(l.older, pipe.HGetAll(ctx, key+olderPart))
		l.actors = append(l.actors, pipe.SMembers(ctx, key+":actors"))
	}
	return l
}

func (b *base) readLists(ctx context.Context, keys []string) (l lists, _ error) {
	if len(keys) == 0 {
		return l, nil
	}
	pipe := b.DB.Client().Pipeline()
	l = addLists(ctx, pipe, keys)
	_, err := pipe.Exec(ctx)
	return l, redisdb.Failed(err, "read events of digests")
}

// taken reads what a run took.
func (b *Runs) taken(ctx context.Context, r *run) (lists, error) {
	return b.readLists(ctx, takenKeys(r.id, len(r.taken)))
}

// takenKeys returns the keys of the first lists that a run took.
func takenKeys(id string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = takenKey(id, i)
	}
	return keys
}

// waiting returns the groups of a recipient's waiting events, ranked.
func (b *base) waiting(ctx context.Context, r *recipient) ([]*group, error) {
	keys := make([]string, len(r.categories))
	for i, category := range r.categories {
		keys[i] = r.events(category)
	}
	l, err := b.readLists(ctx, keys)
	if err != nil {
		return nil, err
	}
	all, _, err := l.groups(r.categories)
	return all, err
}

// groups returns the groups in the lists of categories, ranked, and the ids of their events, except for
// events beyond digest.keep.
func (l lists) groups(categories []string) ([]*group, []string, error) {
	g := gathered{byName: map[string]*group{}, seen: map[string]bool{}}
	for i, listed := range categories {
		category := strings.TrimPrefix(listed, urgentCategory)
		if err := g.addOlder(category, l.older[i].Val(), l.actors[i].Val()); err != nil {
			return nil, nil, err
		}
		if err := g.addLines(category, l.lines[i].Val()); err != nil {
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
	ids    []string        // the events' ids
	seen   map[string]bool // actors, each after its category and its group: each counts once in a group
}

func (g *gathered) add(one *group) {
	name := one.category + "\x00" + groupField(one.entityType, one.entityID)
	if has := g.byName[name]; has != nil {
		has.join(one)
		return
	}
	g.byName[name], g.all = one, append(g.all, one)
}

// addOlder adds the groups that scripts folded, and which actors they count.
func (g *gathered) addOlder(category string, older map[string]string, actors []string) error {
	counted := map[string]int{} // actors of a group who were counted before
	for _, actor := range actors {
		if g.seen[category+actor] {
			counted[actor[:digits]]++
		}
		g.seen[category+actor] = true
	}
	for name, value := range older {
		if !strings.Contains(name, "\x00") {
			continue // a counter
		}
		one, err := folded(category, name, value)
		if err != nil {
			return err
		}
		one.different -= counted[digitsOf(name)]
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
	for _, one := range grouped(category, lines, g.seen) {
		g.add(one)
	}
	return nil
}

// join adds another group about the same thing, whose events came later, and that counts other actors.
func (g *group) join(later *group) {
	g.count += later.count
	g.first = min(g.first, later.first)
	g.priority = max(g.priority, later.priority)
	if later.last >= g.last {
		g.last, g.newest = later.last, later.newest
	}
	older := g.actors
	g.actors = later.actors
	for _, a := range older {
		same := func(b mail.Actor) bool { return cmp.Or(a.ID, a.Name) == cmp.Or(b.ID, b.Name) }
		if len(g.actors) < mostActors && !slices.ContainsFunc(later.actors, same) {
			g.actors = append(g.actors, a)
		}
	}
	g.different += later.different
}

// record is what a run keeps of its content.
type record struct {
	Groups []api.DigestGroup `json:"groups"`
	Events []string          `json:"events"` // ids, the newest of them
}

// write packs a record: the number of its groups, a space, and its JSON, compressed.
func (r record) write() (string, error) {
	raw, err := json.Marshal(r)
	return strconv.Itoa(len(r.Groups)) + " " + string(s2.EncodeBetter(nil, raw)), err
}

// groupsOf returns how many groups are in a packed record.
func groupsOf(packed string) int {
	number, _, _ := strings.Cut(packed, " ")
	n, _ := strconv.Atoi(number) // written by us, or empty
	return n
}

func readRecord(packed string) (r record, err error) {
	if packed == "" {
		return r, nil
	}
	_, compressed, _ := strings.Cut(packed, " ")
	raw, err := s2.Decode(nil, []byte(compressed))
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
	return api.DigestRun{Run: r.id, Account: r.account, Recipient: r.readerKey.id, Schedule: r.schedule,
		Period: r.period, State: r.state, Reason: r.reason, Scheduled: r.scheduled, Started: at(r.started),
		Ended: at(r.ended), Attempts: r.attempts, Events: r.events, QueueID: r.queueID}
}
