package server

import (
	"context"
	"net/url"
	"runtime"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/server/settings"
)

// queueNames are the queues in stats. Queue submit includes bulk.
var queueNames = []string{"submit", "notify", "documents", "digests"}

// queueRoutes are about the instance: its queues, counters and settings.
type queueRoutes struct {
	box       *outbox.Outbox
	accounts  *accounts.Accounts
	documents *search.Documents
	digests   *digest.Digests
	settings  *settings.Settings
	state     State
	version   string
}

type queueInput struct {
	Queue string `path:"queue" enum:"submit,bulk,notify,documents,digests" doc:"Name of the queue. submit counts and pauses both streams, bulk only its own. For digests, waiting counts the recipients' schedules with pending events, and active counts the current runs"`
}

func (q queueRoutes) getQueue(ctx context.Context, in *queueInput) (api.QueueStatus, error) {
	return q.statusOf(ctx, in.Queue)
}

func (q queueRoutes) statusOf(ctx context.Context, name string) (api.QueueStatus, error) {
	s, err := q.box.Queues.QueueStatus(ctx, name)
	if err == nil && name == queue.Digests {
		err = q.digests.Count(ctx, &s)
	}
	return s, err
}

type putQueueInput struct {
	queueInput
	Body api.QueuePatch
}

func (q queueRoutes) putQueue(ctx context.Context, in *putQueueInput) (api.QueuePaused, error) {
	if in.Body.Paused == nil {
		q, err := q.box.Queues.QueueStatus(ctx, in.Queue)
		return api.QueuePaused{Queue: in.Queue, Paused: q.Paused}, err
	}
	err := q.box.Queues.SetPaused(ctx, in.Queue, *in.Body.Paused)
	return api.QueuePaused{Queue: in.Queue, Paused: *in.Body.Paused}, err
}

// getStats returns counters. A bound token gets its account's, without queues, alerts, and the numbers of
// accounts, which are the instance's.
func (q queueRoutes) getStats(ctx context.Context, in *api.CounterQuery) (api.Stats, error) {
	stats := api.Stats{Version: q.version, Accounts: 1, Queues: map[string]api.QueueCounts{},
		Go: runtime.Version(), Arch: runtime.GOARCH}
	var err error
	if in.Account, err = ownAccount(ctx, in.Account); err != nil {
		return stats, err
	}
	if boundTo(ctx) == "" {
		if err := q.countInstance(ctx, &stats); err != nil {
			return stats, err
		}
	}
	durability, err := q.state.Durability(ctx)
	if err != nil {
		return stats, err
	}
	stats.Redis, stats.RedisVersion = durability.Mode, durability.Version
	stats.Counters, err = q.box.Queues.Counters(ctx, *in)
	return stats, err
}

func (q queueRoutes) countInstance(ctx context.Context, stats *api.Stats) (err error) {
	for _, name := range queueNames {
		s, err := q.statusOf(ctx, name)
		if err != nil {
			return err
		}
		stats.Queues[name] = countsOf(s)
	}
	if stats.Alerts, err = q.state.Alerts(ctx); err != nil {
		return err
	}
	search, err := q.documents.State(ctx)
	if err != nil {
		return err
	}
	stats.Search = &search
	states, err := q.accounts.States(ctx)
	if err != nil {
		return err
	}
	stats.Connections = &states
	stats.Accounts, err = q.accounts.Count(ctx)
	return err
}

// countsOf returns the counts of a queue. Total is the number of tasks that are not done.
func countsOf(q api.QueueStatus) api.QueueCounts {
	j := q.Jobs
	return api.QueueCounts{
		Active: j.Active, Scheduled: j.Scheduled, Delayed: j.Delayed, Waiting: j.Waiting, Paused: j.Paused,
		IsPaused: q.Paused, Total: j.Pending(),
	}
}

// settingsInput selects settings by name, as with EmailEngine; without names, all.
type settingsInput struct{ Query url.Values }

func (q queueRoutes) getSettings(ctx context.Context, in *settingsInput) (api.SettingsFound, error) {
	return q.settings.Find(ctx, in.Query)
}

// settingsRequest is api.Settings, with the names of settings that only EmailEngine has.
type settingsRequest struct {
	api.Settings
	_       struct{} `additionalProperties:"true"`
	ignored []string
}

type postSettingsInput struct{ Body settingsRequest }

func (q queueRoutes) postSettings(ctx context.Context, in *postSettingsInput) (api.SettingsUpdated, error) {
	if in.Body.Settings == (api.Settings{}) && len(in.Body.ignored) == 0 {
		return api.SettingsUpdated{}, fault.New(fault.Invalid, "", "The request changes no setting")
	}
	updated, err := q.settings.Update(ctx, in.Body.Settings)
	return api.SettingsUpdated{Updated: updated, Ignored: in.Body.ignored}, err
}

func (s *Server) getConfiguration(context.Context, *struct{}) (api.ConfiguredValues, error) {
	all := s.opts.Configuration
	if all == nil {
		all = []api.ConfiguredSetting{}
	}
	return api.ConfiguredValues{Settings: all}, nil
}
