package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

const (
	readEvery   = time.Second     // interval at which Run reads the changes of other processes
	readTimeout = 3 * time.Second // for one such read, so that a hanging Redis does not delay the next
)

// Options are the values of the configuration, for settings that were never changed.
type Options struct {
	// ServiceURL is the public address, or empty.
	ServiceURL string
	// DeliveryAttempts is the number of attempts of a message. Defaults to 10.
	DeliveryAttempts int
	// QueueKeep is the number of completed jobs that stay visible in the queues.
	QueueKeep int
	// TrackOpens and TrackClicks are the defaults of accounts and messages: whether opens and clicks are
	// counted.
	TrackOpens, TrackClicks bool
	// Logger gets changes, and failures to read. Nil if nothing is logged.
	Logger *slog.Logger
}

// Settings stores the settings. It is safe for concurrent use, by any number of processes on one Redis.
type Settings struct {
	store    store
	ring     *seal.Ring
	log      *slog.Logger
	defaults Values

	reading redisdb.Turn // so that an older answer never replaces a newer one
	current atomic.Pointer[Values]
}

// New returns Settings on an open database. It does no I/O: until Get or Run has read Redis, Current returns
// the defaults.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Settings, error) {
	if db == nil || ring == nil {
		return nil, errors.New("settings: a database and a key ring are needed")
	}
	s := &Settings{store: store{client: db.Client(), scripts: db.Client()}, ring: ring,
		reading: make(redisdb.Turn, 1), log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	o.DeliveryAttempts = cmp.Or(o.DeliveryAttempts, 10)
	s.defaults = Values{
		ServiceURL: o.ServiceURL, DeliveryAttempts: o.DeliveryAttempts, QueueKeep: o.QueueKeep,
		TrackOpens: o.TrackOpens, TrackClicks: o.TrackClicks, BlockedLinks: []string{},
		Webhooks: Webhooks{Enabled: true, Events: []string{"*"}, Headers: []api.CustomHeader{}},
	}
	if err := Check(s.defaults.settings()); err != nil {
		return nil, fmt.Errorf("settings: from the configuration: %w", err)
	}
	s.current.Store(&s.defaults)
	return s, nil
}

// Run keeps Current up to date until ctx ends. It returns nil. It logs a failure when it begins and when it
// ends.
func (s *Settings) Run(ctx context.Context) error {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	failing := false
	for {
		within, cancel := context.WithTimeout(ctx, readTimeout)
		_, err := s.read(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			s.log.WarnContext(ctx, "settings can't be read; the last known ones stay in force", "error", err)
		case err == nil && failing:
			s.log.InfoContext(ctx, "settings can be read again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Current returns the settings in force, without asking Redis. Its slices must not be changed.
func (s *Settings) Current() Values { return *s.current.Load() }

// Get returns the settings; every field is set.
func (s *Settings) Get(ctx context.Context) (api.Settings, error) {
	v, err := s.read(ctx)
	return v.settings(), err
}

// Defaults returns the values of the configuration, which hold for settings that were never changed.
func (s *Settings) Defaults() api.Settings { return s.defaults.settings() }

// Update changes the settings of a request, and returns their names. Invalid names every wrong field.
func (s *Settings) Update(ctx context.Context, req api.Settings) (updated []string, err error) {
	if err := Check(req); err != nil {
		return nil, err
	}
	updated, err = s.put(ctx, req)
	if err != nil || len(updated) == 0 {
		return updated, err
	}
	s.log.InfoContext(ctx, "settings changed", "settings", updated)
	if _, err := s.read(ctx); err != nil {
		s.log.WarnContext(ctx, "changed settings not read back yet", "error", err)
	}
	return updated, nil
}

// put stores the settings of a request, and returns their names. The address of webhooks and the headers sent
// there change together or not at all.
func (s *Settings) put(ctx context.Context, req api.Settings) ([]string, error) {
	for range 5 {
		stored, err := s.store.client.HGetAll(ctx, settingsKey()).Result()
		if err != nil {
			return nil, redisdb.Failed(err, "settings: read settings")
		}
		before, err := s.decode(stored)
		if err != nil {
			return nil, err
		}
		if err := stays(req, before.Webhooks); err != nil {
			return nil, err
		}
		names, pairs, err := s.encode(req, before.Webhooks.URL)
		if err != nil || len(pairs) == 0 {
			return names, err
		}
		done, err := putScript.Run(ctx, s.store.scripts, []string{settingsKey()},
			putArgs{nameWebhooks, stored[nameWebhooks], nameCustomHeaders, stored[nameCustomHeaders], pairs})
		if err != nil {
			return nil, redisdb.Failed(err, "settings: store settings")
		}
		if done {
			return names, nil
		}
	}
	return nil, fault.New(fault.Conflict, "SettingsChanged",
		"Other requests are changing the settings. Try again")
}

// stays returns an error if a request sends the headers of webhooks to another address without naming them.
func stays(req api.Settings, before Webhooks) error {
	moved := req.Webhooks != nil && *req.Webhooks != before.URL
	if !moved || req.WebhooksCustomHeaders != nil || len(before.Headers) == 0 && before.Broken == nil {
		return nil
	}
	return fault.InvalidField(nameCustomHeaders, "must be entered again, or be empty, when webhooks changes")
}

// read updates Current.
func (s *Settings) read(ctx context.Context) (Values, error) {
	if err := s.reading.Take(ctx); err != nil {
		return Values{}, err
	}
	defer s.reading.Give()
	stored, err := s.store.client.HGetAll(ctx, settingsKey()).Result()
	if err != nil {
		return Values{}, redisdb.Failed(err, "settings: read settings")
	}
	v, err := s.decode(stored)
	if err != nil {
		return Values{}, err
	}
	last := s.current.Swap(&v)
	if v.Webhooks.Broken != nil && last.Webhooks.Broken == nil {
		s.log.ErrorContext(ctx, "headers of webhooks don't open; the events for them wait", "error",
			v.Webhooks.Broken)
	}
	return v, nil
}
