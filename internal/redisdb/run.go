package redisdb

import (
	"context"
	"time"
)

// Run watches the connection until ctx ends, then returns nil. It logs when Redis becomes unavailable and
// when it is back. It also logs what a write survives and the warnings about that, at first and after each
// change, for example after a failover to a replica with another configuration. The embedded server is
// supervised from Open to Close, with or without Run.
func (db *DB) Run(ctx context.Context) error {
	w := watch{db: db, up: true}
	for {
		w.look(ctx, time.Now())
		if !Pause(ctx, watchEvery) {
			return nil
		}
	}
}

const (
	watchEvery      = 2 * time.Second
	pingTimeout     = 2 * time.Second
	durabilityEvery = time.Minute
)

// watch is the state of Run between two checks.
type watch struct {
	db       *DB
	up       bool
	since    time.Time       // when it went away
	judged   time.Time       // when durability was last read
	summary  string          // durability's, as last logged
	warnings map[string]bool // the present warnings, all logged
}

func (w *watch) look(ctx context.Context, now time.Time) {
	_, err := w.db.Ping(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil && w.up:
		w.up, w.since = false, now
		w.db.log.Error("redis is unavailable", "address", w.db.address, "error", err)
	case err == nil && !w.up:
		w.up, w.judged = true, time.Time{}
		w.db.log.Info("redis is back", "address", w.db.address, "away_seconds", now.Sub(w.since).Seconds())
	}
	if w.up && now.Sub(w.judged) >= durabilityEvery {
		w.judge(ctx, now)
	}
}

// judge logs changes of the durability.
func (w *watch) judge(ctx context.Context, now time.Time) {
	d, err := w.db.Durability(ctx)
	if err != nil {
		return // the next ping has the error
	}
	w.judged = now
	if summary := d.String(); summary != w.summary {
		w.summary = summary
		w.db.log.Info("redis keeps what it acknowledges", "durability", summary, "version", d.Version)
	}
	seen := make(map[string]bool, len(d.Warnings))
	for _, warning := range d.Warnings {
		seen[warning] = true
		if !w.warnings[warning] {
			w.db.log.Warn("redis is not set up for mail", "warning", warning, "mode", w.db.mode)
		}
	}
	w.warnings = seen
}

// Ping returns the time of a round trip to Redis. It gives up after 2 seconds, or at the deadline of ctx.
func (db *DB) Ping(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	start := time.Now()
	err := db.client.Ping(ctx).Err()
	return time.Since(start), err
}
