package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/settings"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/webhooks"
)

// senders gives the outbox its accounts.
type senders struct{ accounts *accounts.Accounts }

// Account implements outbox.Accounts.
func (s senders) Account(ctx context.Context, id string) (outbox.Account, error) {
	a, err := s.accounts.Resolve(ctx, id)
	return outbox.Account{ID: a.ID, Name: a.Name, Email: a.Email, Retry: a.Retry}, err
}

// Gateway implements outbox.Accounts.
func (s senders) Gateway(_ context.Context, id string) error {
	return fault.New(fault.NotFound, "GatewayNotFound", "No gateway with id %q", id)
}

// Trial implements outbox.Accounts.
func (s senders) Trial(context.Context, string) (bool, error) { return true, nil }

type direct struct {
	sender   *smtpsend.Sender
	accounts *accounts.Accounts
}

func (s direct) Send(ctx context.Context, d outbox.Dispatch) outbox.Dispatched {
	start := time.Now()
	a, err := s.accounts.Resolve(ctx, d.Account)
	if err != nil {
		return outbox.Dispatched{Err: err}
	}
	relay := a.Routes[0].Relay
	r, err := s.sender.Send(ctx, relay, d.Message)
	host := net.JoinHostPort(relay.Host, strconv.Itoa(relay.Port))
	return outbox.Dispatched{Result: r, Err: err, Tries: []outbox.Try{{Host: host, Start: start, End: time.Now(), Result: r, Err: err}}}
}

// Outcome implements outbox.Accounts.
func (s senders) Outcome(ctx context.Context, id string, err error) { s.accounts.Outcome(ctx, id, err) }

// sources tells webhooks of the endpoints that stand in settings and accounts.
type sources struct {
	settings *settings.Settings
	accounts *accounts.Accounts
}

// ServiceURL implements webhooks.Sources.
func (s sources) ServiceURL() string { return s.settings.Current().ServiceURL }

// Implicit implements webhooks.Sources. An account that no longer exists has no endpoint of its own.
func (s sources) Implicit(ctx context.Context, account string) ([]webhooks.Target, error) {
	var targets []webhooks.Target
	if w := s.settings.Current().Webhooks; w.Enabled && w.URL != "" && len(w.Events) > 0 {
		headers := make(map[string]string, len(w.Headers))
		for _, h := range w.Headers {
			headers[h.Key] = h.Value
		}
		targets = append(targets, webhooks.Target{ID: webhooks.SettingsID, URL: w.URL, Events: w.Events, Headers: headers})
	}
	if account == "" {
		return targets, nil
	}
	url, err := s.accounts.Webhooks(ctx, account)
	if err != nil || url == "" {
		return targets, ignoreNotFound(err)
	}
	return append(targets, webhooks.Target{ID: webhooks.AccountID(account), URL: url}), nil
}

// verifier tries the login of a relay.
type verifier struct {
	sender   *smtpsend.Sender
	accounts *accounts.Accounts
}

// Verify implements server.Verifier.
func (v verifier) Verify(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error) {
	relay, err := v.relay(ctx, req)
	if err != nil {
		return api.VerifyAnswer{}, err
	}
	if err := v.sender.Verify(ctx, relay); err != nil {
		out := api.VerifyResult{Error: err.Error()}
		if e, ok := errors.AsType[*smtpsend.Error](err); ok {
			out.Code = e.Name()
		}
		return api.VerifyAnswer{SMTP: out}, nil
	}
	return api.VerifyAnswer{SMTP: api.VerifyResult{Success: true}}, nil
}

// relay is what is to be tried: that of a stored account, or the one the request describes.
func (v verifier) relay(ctx context.Context, req api.VerifyRequest) (smtpsend.Relay, error) {
	switch {
	case req.Account == "":
		return accounts.VerifyRelay(req)
	case req.SMTP != nil:
		return smtpsend.Relay{}, fault.InvalidFields([]fault.Field{{Key: "smtp", Message: "can't be combined with account"}})
	}
	a, err := v.accounts.Resolve(ctx, req.Account)
	if err != nil {
		return smtpsend.Relay{}, err
	}
	return a.Routes[0].Relay, nil
}

// operator mirrors what is done in the queue's dashboard to the messages behind the tasks.
type operator struct{ outbox *outbox.Outbox }

// TaskAction implements queue.Operator.
func (o operator) TaskAction(ctx context.Context, a queue.Action, name string, _ queue.State, ids []string) []error {
	do := map[queue.Action]func(context.Context, string) error{
		queue.ActionDelete: o.outbox.TaskDeleted, queue.ActionRun: o.outbox.TaskRun, queue.ActionArchive: o.outbox.TaskArchived,
	}[a]
	if do == nil || !o.outbox.Owns(name) {
		return nil
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		errs[i] = do(ctx, id)
	}
	return errs
}

// QueueAction implements queue.Operator. The pause of a queue is the queue's own; messages read it from there.
func (o operator) QueueAction(context.Context, queue.Action, string) error { return nil }

// state tells the server how the instance is doing.
type state struct {
	db     *redisdb.DB
	outbox *outbox.Outbox
}

// Checks implements server.State.
func (s state) Checks(ctx context.Context) []api.Check {
	checks := []api.Check{{Name: "redis", OK: true}, {Name: "outbox", OK: true}}
	if took, err := s.db.Ping(ctx); err != nil {
		checks[0] = api.Check{Name: "redis", Message: "Redis does not answer; see redis.url and the log"}
	} else {
		checks[0].Message = fmt.Sprintf("%s, answers in %s", s.db.Mode(), took)
	}
	if err := s.outbox.Admits(ctx); err != nil {
		checks[1] = api.Check{Name: "outbox", Message: "new mail is refused"}
		if f, ok := errors.AsType[*fault.Error](err); ok { // its cause is for the log, not for whoever asks
			checks[1].Message += ": " + f.Message
		}
	}
	return checks
}

// Durability implements server.State.
func (s state) Durability(ctx context.Context) (api.Durability, error) {
	d, err := s.db.Durability(ctx)
	if err != nil {
		return api.Durability{Mode: string(s.db.Mode())}, err
	}
	return durability(d), nil
}

// durability puts what Redis tells about itself in the words of the API.
func durability(d redisdb.Durability) api.Durability {
	fsync := d.Fsync
	if !d.AOF {
		fsync = "none"
	}
	return api.Durability{
		Mode: string(d.Mode), Persistent: d.Persistent, Fsync: fsync, Replicas: d.Replicas, Policy: d.Policy, Warnings: d.Warnings,
	}
}

// ignoreNotFound takes what does not exist for an answer.
func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
