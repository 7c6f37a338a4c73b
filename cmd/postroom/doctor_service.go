package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/alerts"
)

// Limits for the difference between this clock and that of Redis: machines compare times of attempts and
// leases.
const (
	clockOff      = 2 * time.Second
	clockHopeless = 30 * time.Second
)

// data checks the data directory: only its owner may read the secrets in it.
func (x *exam) data(context.Context) []finding {
	const name = "data"
	info, err := os.Stat(x.cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{{name, ok, x.cfg.Data + " is not there yet; the first start makes it", ""}}
	case err != nil:
		return []finding{{name, fail, err.Error(), "let the user that runs Postroom read and write it"}}
	case !info.IsDir():
		return []finding{{name, fail, x.cfg.Data + " is not a directory",
			"move it away, or set data to another place"}}
	}
	var found []finding
	for _, file := range []string{"secret", "token"} {
		path := filepath.Join(x.cfg.Data, file)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			found = append(found, finding{name, warn, path + " can be read by other users of this machine",
				"run: chmod 600 " + path})
		}
	}
	if len(found) == 0 {
		found = []finding{{name, ok, "kept in " + x.cfg.Data, ""}}
	}
	return found
}

// redis checks Redis itself, except the embedded one, which only Postroom can reach and /ready includes.
func (x *exam) redis(ctx context.Context) []finding {
	const name = "redis"
	if x.cfg.Redis.URL == "" {
		path, err := redisdb.ServerProgram()
		if err != nil {
			message, advice, _ := strings.Cut(err.Error(), "\n")
			lines := strings.Split(advice, "\n")
			for i, line := range lines {
				lines[i] = strings.Join(strings.Fields(line), " ")
			}
			return []finding{{name, fail, message, strings.Join(lines, "; ")}}
		}
		return []finding{{name, ok, "embedded, run by Postroom with " + path, ""}}
	}
	db, err := redisdb.Open(ctx, redisdb.Options{URL: x.cfg.Redis.URL.Reveal(),
		Partitions: x.cfg.Redis.Partitions, PoolSize: 4})
	if err != nil {
		return []finding{{name, fail, err.Error(), "start Redis there, or correct redis.url"}}
	}
	defer db.Close() //nolint:errcheck // nothing was written
	took, err := db.Ping(ctx)
	if err != nil {
		return []finding{{name, fail, fmt.Sprintf("%s does not answer: %v", db.Address(), err),
			"see the log of Redis"}}
	}
	found := []finding{{name, ok, fmt.Sprintf("%s (%s) answers within %d ms", db.Address(), db.Mode(),
		took.Milliseconds()+1), ""}}
	wrong, err := alerts.CheckRedis(ctx, db, x.cfg.Redis.MaxMemoryShare)
	if err != nil {
		found = append(found, finding{name, warn, err.Error(), ""})
	}
	if d, err := db.Durability(ctx); err == nil && len(d.Warnings) == 0 {
		found = append(found, finding{"durability", ok, d.String(), ""})
	}
	return append(append(found, x.alerts(wrong)...), clock(ctx, db)...)
}

// alerts returns the findings of alerts. One that was found at Redis stands at Postroom as well.
func (x *exam) alerts(wrong []api.Alert) (found []finding) {
	for _, a := range wrong {
		if id := a.Alert + a.Queue; !x.alerted[id] {
			x.alerted[id] = true
			found = append(found, finding{"alert " + a.Alert, warn, a.Text,
				"since " + a.Since.Local().Format(time.DateTime)})
		}
	}
	return found
}

// clock compares this machine's clock with that of Redis.
func clock(ctx context.Context, db *redisdb.DB) []finding {
	before := time.Now()
	theirs, err := db.Client().Time(ctx).Result()
	if err != nil {
		return []finding{{"clock", warn, "the time of Redis can't be read: " + err.Error(), ""}}
	}
	return []finding{judgeClock(theirs.Sub(before.Add(time.Since(before) / 2)))}
}

func judgeClock(off time.Duration) finding {
	off = off.Abs()
	const advice = "let both machines follow a time server (chrony, systemd-timesyncd)"
	switch {
	case off >= clockHopeless:
		return finding{"clock", fail, "the clocks of this machine and Redis are " + span(off) + " apart", advice}
	case off >= clockOff:
		return finding{"clock", warn, "the clocks of this machine and Redis are " + span(off) + " apart", advice}
	}
	return finding{"clock", ok, fmt.Sprintf("within %d ms of the clock of Redis", off.Milliseconds()), ""}
}

// ready checks /ready of Postroom. A worker has it at its monitor, if there is one, and has no API for the
// checks that follow.
func (x *exam) ready(ctx context.Context) []finding {
	const name = "service"
	if x.cfg.Role == "worker" && x.reach.URL == "" {
		x.away = true
		if x.cfg.Monitor.Listen == "" {
			return []finding{{name, ok, "role worker: it has no API to ask, and no monitor.listen", ""}}
		}
	}
	client, err := x.reach.clientWith(x.cfg, "")
	if err != nil {
		x.away = true
		return []finding{{name, fail, explain(err), ""}}
	}
	r, err := api.GetReady.Do(ctx, client)
	if err != nil {
		x.away = true
		return []finding{{name, fail, explain(err), ""}}
	}
	var found []finding
	for _, c := range r.Checks {
		status, advice := ok, ""
		if !c.OK {
			status, advice = fail, "see the log of Postroom"
		}
		found = append(found, finding{name, status, c.Name + colon(c.Message), advice})
	}
	if !r.Ready && len(found) == 0 {
		found = []finding{{name, fail, "is not ready", "see the log of Postroom"}}
	}
	if w := r.Durability.Warnings; len(w) > 0 { // for those without a token, who see no alerts
		found = append(found, x.alerts([]api.Alert{{Alert: "redisForgets", Text: strings.Join(w, " "),
			Since: time.Now()}})...)
	}
	return found
}

// api checks the access token, which the checks that follow need.
func (x *exam) api(ctx context.Context) []finding {
	if x.away {
		return nil
	}
	client, err := x.reach.client()
	if err != nil {
		x.away = true
		return []finding{{"token", warn, explain(err), "without one, accounts and queues are not checked"}}
	}
	x.client = client
	s, err := api.GetStats.Do(ctx, client, api.CounterQuery{})
	if err != nil {
		x.away = true
		return []finding{{"token", fail, explain(err), ""}}
	}
	return append([]finding{{"token", ok, "accepted by Postroom " + s.Version, ""}}, x.alerts(s.Alerts)...)
}

// troubles lists what the overview has found. It leaves out accounts and gateways, because x.accounts tries
// them.
func (x *exam) troubles(ctx context.Context) []finding {
	if x.away {
		return nil
	}
	o, err := api.GetOverview.Do(ctx, x.client, api.OverviewQuery{})
	if err != nil {
		return []finding{{"overview", fail, explain(err), ""}}
	}
	var found []finding
	for _, about := range []struct{ kind, check, fine string }{
		{"queue", "queues", "all running"}, {"endpoint", "webhooks", "no endpoint fails"},
	} {
		before := len(found)
		for _, t := range o.Troubles {
			if t.Kind == about.kind {
				found = append(found, finding{about.check, warn, t.ID + " is " + t.State + colon(t.Text),
					t.Do[0].Text + ": " + t.Do[0].Command})
			}
		}
		if len(found) == before {
			found = append(found, finding{about.check, ok, about.fine, ""})
		}
	}
	if o.More > 0 {
		found = append(found, finding{"overview", warn, fmt.Sprintf("%d more have problems", o.More),
			"see gateways and webhooks: postroom gateway list, postroom webhook list"})
	}
	return found
}

// search checks the search index.
func (x *exam) search(ctx context.Context) []finding {
	if x.away {
		return nil
	}
	s, err := api.GetDocuments.Do(ctx, x.client)
	return []finding{judgeSearch(s, err)}
}

func judgeSearch(s api.DocumentsState, err error) finding {
	const name = "search"
	switch {
	case err != nil:
		return finding{name, fail, explain(err), ""}
	case s.Store == "none":
		return finding{name, ok, "there is no search index (documents.store is none)", ""}
	case s.Indexer == "":
		return finding{name, warn, "no process keeps the search index",
			"see the log of Postroom where the API is served"}
	case s.Behind != nil:
		return finding{name, warn, behindSince(*s.Behind, time.Now()),
			"wait; if it stays so, see postroom queue status documents, and the log"}
	}
	return finding{name, ok, plural(s.Documents, "message") + " can be found", ""}
}
