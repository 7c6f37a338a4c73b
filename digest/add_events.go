package digest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// Recipients are the readers of all accounts, with their waiting events.
type Recipients struct{ *base }

// States of an event.
const (
	waiting    = "waiting"
	atOnce     = "immediate"
	dropped    = "dropped"
	noAddress  = "address"
	removed    = "deleted"
	mostEvents = 1000
)

// AddEvents adds events for their recipients. Each has its own answer; if a single event is refused, that is
// the error. A nil error means that events answered with success are durable. It returns Invalid if there is
// no event or too many, NotFound for an unknown account, and Unavailable while Redis is unreachable or full.
// Then an event may have been added; its key makes a repetition safe.
func (r *Recipients) AddEvents(ctx context.Context, bound string, req api.DigestEventsRequest) (
	api.DigestEventsAnswer, error) {
	single := req.Events == nil
	list := req.Events
	switch {
	case single:
		list = []api.DigestEvent{req.DigestEvent}
	case len(list) == 0 || len(list) > mostEvents:
		return api.DigestEventsAnswer{}, fault.InvalidField("events", "must be 1 to %d", mostEvents)
	case req.Recipient+req.Category+req.EntityType+req.EntityID != "":
		return api.DigestEventsAnswer{}, fault.InvalidField("events", "can't be combined with a single event")
	}
	account, err := r.requestAccount(ctx, bound, req.Account)
	if err != nil {
		return api.DigestEventsAnswer{}, err
	}
	b := &eventBatch{base: r.base, account: account, now: r.opts.Now(),
		results: make([]api.DigestEventResult, len(list)), byReader: map[string]*reader{}}
	for i, e := range list {
		b.add(i, e)
	}
	if single && b.wrong != nil {
		return api.DigestEventsAnswer{}, fault.InvalidFields(b.wrong)
	}
	if err := r.admit(ctx, account, len(list)); err != nil {
		return api.DigestEventsAnswer{}, err
	}
	if err := b.storeAll(ctx); err != nil {
		return api.DigestEventsAnswer{}, err
	}
	for _, one := range b.found {
		// If this fails, the entry for those without an address plans them.
		if _, err := r.change(ctx, one, nil); err != nil {
			r.log.WarnContext(ctx, "digest events of a recipient whose address came wait for up to a day",
				"error", err)
		}
	}
	r.metrics.added(b.results)
	if !single {
		return api.DigestEventsAnswer{Events: b.results}, nil
	}
	if one := b.results[0]; one.Success {
		return api.DigestEventsAnswer{DigestEventResult: &one}, nil
	}
	return api.DigestEventsAnswer{}, fault.New(fault.Unprocessable, b.results[0].Code, "%s", b.results[0].Error)
}

// eventBatch has the events of one call of AddEvents.
type eventBatch struct {
	*base
	account  string
	now      time.Time
	results  []api.DigestEventResult
	wrong    []fault.Field // for the last event that was invalid
	readers  []*reader     // in the order of their first event
	byReader map[string]*reader
	found    []readerKey // recipients whose address came while events waited for it
}

// reader is a recipient with its events of one call.
type reader struct {
	*recipient
	events                  []incoming
	email, name, locale, tz string // as the events say
	addressless             bool   // it had no address before
}

// add checks an event, and adds it to its recipient's events.
func (b *eventBatch) add(i int, e api.DigestEvent) {
	in, wrong := check(e, b.account, b.now)
	if wrong != nil {
		b.wrong = wrong
		err := fault.InvalidFields(wrong)
		b.results[i] = api.DigestEventResult{StatusCode: http.StatusBadRequest, Code: fault.CodeOf(err),
			Error: err.Error(), Fields: problemFields(wrong)}
		return
	}
	in.at = i
	one := b.byReader[e.Recipient]
	if one == nil {
		one = &reader{recipient: &recipient{readerKey: readerKey{b.account, e.Recipient}}}
		b.readers, b.byReader[e.Recipient] = append(b.readers, one), one
	}
	one.events = append(one.events, in)
	one.email, one.name = cmp.Or(one.email, in.event.Email), cmp.Or(one.name, e.Name)
	one.locale, one.tz = cmp.Or(one.locale, e.Locale), cmp.Or(one.tz, e.TZ)
}

func problemFields(wrong []fault.Field) []api.ProblemField {
	all := make([]api.ProblemField, len(wrong))
	for i, f := range wrong {
		all[i] = api.ProblemField{Key: f.Key, Message: f.Message}
	}
	return all
}

// mostTries bounds how often a recipient is read again because somebody changed it in between.
const mostTries = 20

// storeAll stores the events, and retries recipients that somebody changes in between.
func (b *eventBatch) storeAll(ctx context.Context) error {
	kinds, err := b.kinds.of(ctx, b.account)
	if err != nil {
		return err
	}
	left := b.readers
	for range mostTries {
		if err := b.load(ctx, left); err != nil {
			return err
		}
		stopped, err := b.stopped(ctx, left, kinds)
		if err != nil {
			return err
		}
		if left, err = b.store(ctx, left, kinds, stopped); err != nil || len(left) == 0 {
			return err
		}
	}
	return fault.New(fault.Unavailable, "Busy",
		"The events for %s were not accepted, because its preferences keep changing. Try again", left[0].readerKey)
}

// load reads recipients, and completes them by what the events say.
func (b *eventBatch) load(ctx context.Context, list []*reader) error {
	pipe := b.DB.Client().Pipeline()
	found := make([]*redis.MapStringStringCmd, len(list))
	for i, one := range list {
		found[i] = pipe.HGetAll(ctx, one.key())
	}
	if len(list) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "read recipients of digests")
	}
	for i, one := range list {
		one.recipient = readRecipient(one.readerKey, found[i].Val())
		one.addressless = one.recipient.email == ""
		one.fill(one.email, one.name, one.locale, one.tz)
	}
	return nil
}

// stops are the reasons why a recipient's mail is stopped: listed for the list of digests, required for mail
// of no list, which required kinds send.
type stops struct{ listed, required string }

// stopped returns why recipients get no mail.
func (b *eventBatch) stopped(ctx context.Context, list []*reader, kinds map[string]*api.DigestKind) (
	map[string]stops, error) {
	var addresses []string
	for _, one := range list {
		if one.recipient.email != "" {
			addresses = append(addresses, one.recipient.email)
		}
	}
	found := map[string]stops{}
	required := slices.ContainsFunc(list, func(one *reader) bool {
		return slices.ContainsFunc(one.events, func(in incoming) bool {
			k := kinds[in.event.Category]
			return k != nil && k.Required
		})
	})
	for _, listed := range []bool{true, false} {
		if !listed && !required {
			continue
		}
		reasons, err := b.stopping(ctx, b.account, addresses, listed)
		if err != nil {
			return nil, err
		}
		for i, address := range addresses {
			s := found[address]
			if listed {
				s.listed = reasons[i]
			} else {
				s.required = reasons[i]
			}
			found[address] = s
		}
	}
	return found, nil
}

// stopping returns why addresses get no mail, or "". listed is for mail of the list of digests.
func (b *base) stopping(ctx context.Context, account string, addresses []string, listed bool) (
	[]string, error) {
	q := suppression.Question{Account: account, Addresses: addresses}
	if listed {
		q.List, q.Bulk = ListID(account), true
	}
	found, err := b.Suppressions.Check(ctx, q)
	if err != nil {
		return nil, err
	}
	reasons := make([]string, len(addresses))
	for i, e := range found {
		switch {
		case e == nil:
		case e.Reason == suppression.Unsubscribe:
			reasons[i] = "left"
		case e.Reason == suppression.Erased:
			reasons[i] = "erased"
		default:
			reasons[i] = "suppressed"
		}
	}
	return reasons, nil
}

// readersAtOnce is how many recipients one round trip stores. Redis does all of it before it serves other
// clients, and a recipient takes it some 25 us.
const readersAtOnce = 20

// store stores the events of recipients. It returns the recipients that somebody changed in between.
func (b *eventBatch) store(ctx context.Context, list []*reader, kinds map[string]*api.DigestKind,
	stopped map[string]stops) (again []*reader, _ error) {
	for _, one := range list {
		if one.addressless {
			if err := b.noteAddress(ctx, one.readerKey, one.recipient.email); err != nil {
				return nil, err
			}
		}
	}
	var byShard [shards][]*reader
	for _, one := range list {
		byShard[one.shard()] = append(byShard[one.shard()], one)
	}
	for some := range slices.Chunk(slices.Concat(byShard[:]...), readersAtOnce) {
		changed, err := b.storeSome(ctx, some, kinds, stopped)
		if err != nil {
			return nil, err
		}
		again = append(again, changed...)
	}
	return again, nil
}

// storeSome is store for recipients in the order of their shards: it runs one script for each shard.
func (b *eventBatch) storeSome(ctx context.Context, list []*reader, kinds map[string]*api.DigestKind,
	stopped map[string]stops) (again []*reader, _ error) {
	pipe := b.DB.ReplicatedPipeline()
	var replies []*redisdb.Reply[string]
	for left := list; len(left) > 0; {
		shard, n := left[0].shard(), 0
		keys, args := []string{recipientsKey(shard, b.account), dueKey(shard)}, b.args()
		for ; n < len(left) && left[n].shard() == shard; n++ {
			its, recipient := b.recipient(left[n], kinds, stopped[left[n].recipient.email])
			keys, args.Recipients = append(keys, its...), append(args.Recipients, recipient...)
		}
		replies, left = append(replies, addEventsScript.Add(pipe, keys, args)), left[n:]
	}
	if err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "add digest events")
	}
	var answers []string
	for _, reply := range replies {
		text, err := reply.Read()
		if err != nil {
			return nil, redisdb.Failed(err, "add digest events")
		}
		answers = append(answers, strings.Split(text, "\n")...)
	}
	for _, one := range list {
		if answers[0] == "C" {
			again, answers = append(again, one), answers[1:]
			continue
		}
		if one.addressless && one.recipient.email != "" && len(one.categories) > 0 {
			b.found = append(b.found, one.readerKey)
		}
		for _, in := range one.events {
			b.answer(&b.results[in.at], in, answers[0])
			answers = answers[1:]
		}
	}
	return again, nil
}

// day is the unit in which idempotency keys are forgotten.
const day = 24 * time.Hour

// knownFor is how long the keys of a day are kept, from the first one. An hour is for clocks that differ.
const knownFor = 3*day + time.Hour

// today returns the number of the day.
func today(now time.Time) int64 { return now.Unix() / int64(day/time.Second) }

// args returns what the script gets, without recipients.
func (b *eventBatch) args() addEventsArgs {
	return addEventsArgs{Now: b.now, Today: today(b.now), Keep: b.opts.Keep, Known: seconds(knownFor),
		Retention: seconds(b.opts.Retention)}
}

// recipient returns the keys of a recipient, and what the script gets of it. It sets the answers to its
// events as they are if all goes well.
func (b *eventBatch) recipient(one *reader, kinds map[string]*api.DigestKind, stopped stops) (
	keys, args []string) {
	today := today(b.now)
	keys = []string{one.key(), one.known(today - 2), one.known(today - 1), one.known(today),
		one.known(today + 1)}
	args = []string{one.version, one.id, "", strconv.Itoa(len(one.events)), one.email, one.name, one.locale,
		one.tz}
	var lists []string // categories
	for _, in := range one.events {
		category := in.event.Category
		if in.line.priority == urgent {
			category = urgentCategory + category
		}
		result, member, due := b.decide(one, category, kinds, stopped)
		number := 0
		if result.State != dropped {
			if number = slices.Index(lists, category) + 1; number == 0 {
				lists, keys = append(lists, category), append(keys, one.readerKey.events(category))
				number = len(lists)
			}
		}
		result.Success, result.ID = true, in.line.id
		b.results[in.at] = result
		args = append(args, strconv.Itoa(number), category, in.key, in.fingerprint, stateCode(result), member,
			strconv.FormatInt(redisdb.Millis(due), 10), in.line.text())
	}
	args[2] = strconv.Itoa(len(lists))
	return keys, args
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// decide returns the result for a category's event: its answer, and the entry of due.
func (b *eventBatch) decide(one *reader, category string, kinds map[string]*api.DigestKind, stopped stops) (
	result api.DigestEventResult, member string, due time.Time) {
	kind := kinds[strings.TrimPrefix(category, urgentCategory)]
	why := stopped.listed
	if kind != nil && kind.Required {
		why = stopped.required
	}
	if why != "" {
		return api.DigestEventResult{State: dropped, Reason: why}, "", due
	}
	w, wished := b.opts.wish(one.recipient, category, kinds)
	if !wished {
		return api.DigestEventResult{State: dropped, Reason: off}, "", due
	}
	result.State = waiting
	if one.recipient.email == "" {
		result.Reason = noAddress
		return result, entry{one.readerKey, addressSchedule}.member(), b.now.Add(addressWait)
	}
	due, ok := b.opts.dueFirst(one.recipient, w, category, b.now)
	if !ok { // a cadence that ends, which none does for years
		return api.DigestEventResult{State: dropped, Reason: off}, "", due
	}
	soonest := b.now
	if w.schedule != urgentSchedule {
		soonest = afterGap(w.gap, one.lastMail(category), b.now)
	}
	if w.mode == immediate && due.Equal(soonest) { // else quiet hours or a pause put it off
		result.State = atOnce
	}
	return result, entry{one.readerKey, w.schedule}.member(), due
}

// stateCodes has the code of each state and reason of an event. Idempotency keys keep these codes.
var stateCodes = map[string]string{
	waiting: "w", waiting + noAddress: "a",
	atOnce:        "i",
	dropped + off: "o", dropped + removed: "d", dropped + "suppressed": "s", dropped + left: "l", dropped +
		"erased": "e",
}

func stateCode(r api.DigestEventResult) string { return stateCodes[r.State+r.Reason] }

// readStateCode is the inverse of stateCode.
func readStateCode(code string) (state, reason string) {
	for name, is := range stateCodes {
		if is != code {
			continue
		}
		for _, state := range []string{waiting, atOnce, dropped} {
			if reason, ok := strings.CutPrefix(name, state); ok {
				return state, reason
			}
		}
	}
	return waiting, ""
}

// answer completes the answer to an event by what the script says.
func (b *eventBatch) answer(r *api.DigestEventResult, in incoming, result string) {
	fields := strings.Fields(result)
	if key := in.event.IdempotencyKey; key != "" {
		r.Idempotency = &api.IdempotencyStatus{Key: key, Status: "MISS"}
	}
	switch fields[0] {
	case "R":
		*r = refused("IdempotencyKeyReused", fmt.Sprintf("The idempotencyKey %q was used for another event of %q",
			in.event.IdempotencyKey, in.event.Recipient))
		return
	case "M":
		*r = refused("TooManyCategories", fmt.Sprintf(
			"The recipient %q has events of %d categories, and can't have one of %q", in.event.Recipient,
			mostCategories, in.event.Category))
		return
	case "H":
		r.Idempotency.Status = "HIT"
		r.State, r.Reason = readStateCode(fields[1])
	}
	r.Due = nil
	due := redisdb.ParseTime(fields[len(fields)-1])
	if r.State != dropped && r.Reason != noAddress && !due.IsZero() {
		r.Due = &due
	}
}

func refused(code, why string) api.DigestEventResult {
	return api.DigestEventResult{StatusCode: http.StatusUnprocessableEntity, Code: code, Error: why}
}
