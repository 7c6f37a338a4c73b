package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server"
	"github.com/postroom/postroom/server/alerts"
)

// buildMonitor builds the listener for health and metrics if it is configured. It starts before the workers
// and stops after them, so that a process that is slow to stop can be monitored.
func (a *App) buildMonitor(context.Context) error {
	c := a.cfg
	if c.Monitor.Listen == "" {
		return nil
	}
	s, err := server.NewMonitor(a.access, a.state(), server.Options{
		Listen: c.Monitor.Listen, TLSCert: c.HTTP.TLS.Cert, TLSKey: c.HTTP.TLS.Key, Version: a.version,
		Metrics: a.metrics, Proxies: a.proxies, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.monitor = s
	a.life.onStop("monitoring listener", s.Close)
	a.life.onRun("monitoring", s.Run)
	return nil
}

// state reports the health of this process.
type state struct {
	db    *redisdb.DB
	watch *alerts.Watch
	takes func(context.Context) error // why new mail is refused; nil if this process takes no mail
	works func() bool                 // whether tasks are taken; nil if this process delivers nothing
	away  func() []routing.Away       // the relays that do not answer
}

func (a *App) state() state {
	s := state{db: a.db, watch: a.watch}
	if a.serves {
		s.takes = a.outbox.Intake.Admits
	}
	if a.delivers {
		s.works, s.away = a.working.Load, a.router.Away
	}
	return s
}

// Checks implements server.State.
func (s state) Checks(ctx context.Context) []api.Check {
	checks := []api.Check{s.redis(ctx)}
	if s.takes != nil {
		checks = append(checks, s.outbox(ctx))
	}
	if s.works != nil {
		check := api.Check{Name: "workers", OK: s.works(), Message: "take tasks"}
		if !check.OK {
			check.Message = "take no tasks: this process is starting or stopping"
		}
		checks = append(checks, check, s.relays())
	}
	return checks
}

// relays reports relays that do not answer. That stops the mail for these only, so the process is ready.
// Their names are in the log: this answer is public.
func (s state) relays() api.Check {
	check := api.Check{Name: "relays", OK: true, Message: "answer"}
	if n := len(s.away()); n > 0 {
		check.Message = fmt.Sprintf("%d do not answer this process; the log and the alert relayAway name them", n)
	}
	return check
}

// Alerts implements server.State.
func (s state) Alerts(ctx context.Context) ([]api.Alert, error) { return s.watch.Standing(ctx) }

// redis checks that Redis answers and accepts writes.
func (s state) redis(ctx context.Context) api.Check {
	took, err := s.db.Ping(ctx)
	if err != nil {
		return api.Check{Name: "redis", Message: "Redis is unavailable; see redis.url and the log"}
	}
	if d, err := s.db.Durability(ctx); err == nil && d.Refusal != "" {
		return api.Check{Name: "redis", Message: d.Refusal}
	}
	return api.Check{Name: "redis", OK: true, Message: fmt.Sprintf("%s, answers within %d ms", s.db.Mode(),
		took.Milliseconds()+1)}
}

// outbox checks that new mail is accepted.
func (s state) outbox(ctx context.Context) api.Check {
	err := s.takes(ctx)
	if err == nil {
		return api.Check{Name: "outbox", OK: true}
	}
	check := api.Check{Name: "outbox", Message: "new mail is refused"}
	if f, ok := errors.AsType[*fault.Error](err); ok { // its cause is only logged
		check.Message += ": " + f.Message
	}
	return check
}

// Durability implements server.State.
func (s state) Durability(ctx context.Context) (api.Durability, error) {
	d, err := s.db.Durability(ctx)
	if err != nil {
		return api.Durability{Mode: string(s.db.Mode())}, err
	}
	return durability(d), nil
}

// durability returns the durability of Redis as a type of the API.
func durability(d redisdb.Durability) api.Durability {
	fsync := d.Fsync
	if !d.AOF {
		fsync = "none"
	}
	return api.Durability{
		Mode: string(d.Mode), Version: d.Version, Persistent: d.Persistent, Fsync: fsync, Replicas: d.Replicas,
		Policy: d.Policy, Warnings: d.Warnings, Summary: d.String(),
	}
}
