package outbox

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// kinds are the kinds of parts of the mail, by their names in the API.
var kinds = map[string]string{
	"": "", "gateway": "g:", "localAddress": "i:", "lane": "n:", "list": "l:", "tag": "t:", "domain": "d:",
}

// coarse reports whether the counters of a kind are by day, and by hour for keepHours only.
func coarse(kind string) bool { return kind == "t:" || kind == "d:" || kind == "l:" }

// Rates returns the counters that a query selects: for each name that it asks by, in each step of time, or
// the sums. Times are rounded to hours, or to UTC days. Events are counted some seconds after they were
// written.
func (r *Counts) Rates(ctx context.Context, q api.RatesQuery) (api.Rates, error) {
	w, err := r.windowOf(q)
	if err != nil {
		return api.Rates{}, err
	}
	sums := map[rateKey]*tallied{}
	if err := r.readDays(ctx, w, sums); err != nil {
		return api.Rates{}, redisError(err, "read the counters of rates")
	}
	out := api.Rates{From: w.from, To: w.to, Rates: make([]api.Rate, 0, len(sums))}
	for key, sum := range sums {
		row := sum.rate()
		row.Name, row.Other = key.name, key.name == "" && w.kind != ""
		if w.step > 0 {
			at := time.Unix(key.at, 0).UTC()
			row.Time = &at
		}
		out.Rates = append(out.Rates, row)
	}
	slices.SortFunc(out.Rates, func(a, b api.Rate) int {
		if a.Time != nil && !a.Time.Equal(*b.Time) {
			return a.Time.Compare(*b.Time)
		}
		return cmp.Or(cmp.Compare(b.Sent, a.Sent), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// CountEvents adds to each account how many events it had since it was created, by type, until the 13 months
// after its last one. messageQueued is not counted.
func (r *Counts) CountEvents(ctx context.Context, accounts []api.AccountInfo) error {
	pipe, got := r.DB.Client().Pipeline(), make([][]*redis.MapStringStringCmd, len(accounts))
	for i, a := range accounts {
		for p := range r.DB.Partitions() {
			got[i] = append(got[i], pipe.HGetAll(ctx, r.keys.accountEvents(p, a.Account.Account)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return redisError(err, "read the counts of events")
	}
	for i, cmds := range got {
		events := map[string]int{}
		for _, cmd := range cmds {
			for name, text := range cmd.Val() {
				n, _ := strconv.Atoi(text)
				events[name] += n
			}
		}
		if len(events) > 0 {
			accounts[i].Counters.Events = events
		}
	}
	return nil
}

// ForgetEvents deletes what CountEvents adds to an account: it is deleted, or about to be created. The events
// of before are counted first, so that they are not counted afterwards.
func (r *Counts) ForgetEvents(ctx context.Context, account string) error {
	if err := r.countNew(ctx); err != nil {
		return err
	}
	pipe := r.DB.Client().Pipeline()
	for p := range r.DB.Partitions() {
		pipe.Del(ctx, r.keys.accountEvents(p, account))
	}
	_, err := pipe.Exec(ctx)
	return redisError(err, "delete the event counts of account "+account)
}

// rateKey is a row of an answer.
type rateKey struct {
	at   int64 // Unix seconds of the step; 0 if there is none
	name string
}

// rateWindow is a checked query.
type rateWindow struct {
	api.RatesQuery
	from, to    time.Time     // whole hours, or days
	step, grain time.Duration // the answer's (0 for none) and the counters'
	kind        string
}

// rowsMost is how many days an answer with all names and with steps has.
const rowsMost = 31

func (r *Counts) windowOf(q api.RatesQuery) (rateWindow, error) {
	kind, known := kinds[q.By]
	w := rateWindow{RatesQuery: q, kind: kind, grain: time.Hour}
	w.step = map[string]time.Duration{"hour": time.Hour, "day": day}[q.Step]
	if coarse(kind) && q.Step != "hour" {
		w.grain = day
	}
	now := r.clock.Now()
	w.to = cmp.Or(q.To, now).UTC()
	if up := w.to.Truncate(w.grain); up != w.to {
		w.to = up.Add(w.grain)
	}
	w.from = cmp.Or(q.From, w.to.Add(-30*day)).UTC().Truncate(w.grain)
	oldest := now.Add(-keepRates)
	if coarse(kind) && w.grain == time.Hour {
		oldest = now.Add(-keepHours)
	}
	wrong := func(key, why string, args ...any) error {
		return fault.InvalidField(key, why, args...)
	}
	switch {
	case !known:
		return w, wrong("by", "must be gateway, localAddress, lane, list, tag or domain")
	case q.Name != "" && q.By == "":
		return w, wrong("name", "requires by")
	case q.Step != "" && w.step == 0:
		return w, wrong("step", "must be hour or day")
	case !w.from.Before(w.to):
		return w, wrong("from", "must be before to")
	case w.from.Before(oldest.Truncate(day)):
		return w, wrong("from", "is too early; these counters start at %s", oldest.Format(time.DateOnly))
	case q.By != "" && q.Name == "" && w.step > 0 && w.to.Sub(w.from) > rowsMost*day:
		return w, wrong("from", "is too early for all names by %s; set one name, or at most %d days", q.Step,
			rowsMost)
	}
	return w, nil
}

// readDays adds the counters of a window to sums.
func (r *Counts) readDays(ctx context.Context, w rateWindow, sums map[rateKey]*tallied) error {
	pipe, days := r.DB.Client().Pipeline(), map[*redis.MapStringStringCmd]time.Time{}
	for at := w.from.Truncate(day); at.Before(w.to); at = at.Add(day) {
		for p := range r.DB.Partitions() {
			key := r.keys.rates(p, at, coarse(w.kind) && w.grain == time.Hour)
			days[pipe.HGetAll(ctx, of(key, w.Account))] = at
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	for cmd, at := range days {
		for field, text := range cmd.Val() {
			w.add(sums, at, field, text)
		}
	}
	return nil
}

// add adds a field of a day, if the window selects it: an hour and a part, or only a part.
func (w rateWindow) add(sums map[rateKey]*tallied, at time.Time, field, text string) {
	part := field
	if w.grain == time.Hour {
		if len(field) < 2 {
			return
		}
		hour, err := strconv.Atoi(field[:2])
		if err != nil {
			return
		}
		at, part = at.Add(time.Duration(hour)*time.Hour), field[2:]
	}
	name, ok := strings.CutPrefix(part, w.kind)
	if !ok || w.kind == "" && part != "" || at.Before(w.from) || !at.Before(w.to) ||
		w.Name != "" && name != w.Name {
		return
	}
	key := rateKey{name: name}
	if w.step > 0 {
		key.at = at.Truncate(w.step).Unix()
	}
	if sums[key] == nil {
		sums[key] = &tallied{}
	}
	for i, n := range strings.Split(text, ",") {
		if i < columns {
			v, _ := strconv.Atoi(n)
			sums[key][i] += v
		}
	}
}
