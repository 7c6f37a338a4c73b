package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// submitInput is a submit without an account in its path.
type submitInput struct {
	Key  string `header:"Idempotency-Key" doc:"Same as the field idempotencyKey. Quotes around it are ignored"`
	Body api.SubmitRequest
}

type submitAsInput struct {
	Account string `path:"account" maxLength:"256" doc:"Account that sends"`
	submitInput
}

// submitRoutes accept messages.
type submitRoutes struct {
	accept   func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error)
	metrics  *metrics
	draining *atomic.Bool // the instance is stopping
}

func (s submitRoutes) submit(ctx context.Context, in *submitInput) (api.SubmitAnswer, error) {
	return s.send(ctx, in, "")
}

func (s submitRoutes) submitAs(ctx context.Context, in *submitAsInput) (api.SubmitAnswer, error) {
	return s.send(ctx, &in.submitInput, in.Account)
}

func (s submitRoutes) send(ctx context.Context, in *submitInput, account string) (api.SubmitAnswer, error) {
	if s.draining.Load() {
		return api.SubmitAnswer{}, fault.New(fault.Unavailable, "Stopping", "This instance is stopping")
	}
	if err := in.settle(ctx, account); err != nil {
		return api.SubmitAnswer{}, err
	}
	answer, err := s.accept(ctx, in.Body)
	if err == nil {
		s.countSubmits(answer)
	}
	for _, r := range answer.MailMerge {
		for i, f := range r.Fields {
			r.Fields[i].Message = labelled(fault.Field{Key: f.Key, Message: f.Message})
		}
	}
	return answer, err
}

// countSubmits counts the result of a submit, or of each entry of a mail merge. metrics.refused counts
// submits that were refused as a whole.
func (s submitRoutes) countSubmits(answer api.SubmitAnswer) {
	if len(answer.MailMerge) == 0 {
		s.metrics.submits.WithLabelValues(outcomeOf(answer.QueueID, answer.Idempotency, answer.Skipped)).Inc()
		return
	}
	for _, r := range answer.MailMerge {
		outcome := outcomeOf(r.QueueID, r.Idempotency, r.Skipped)
		if !r.Success {
			outcome = "entry_refused"
		}
		s.metrics.submits.WithLabelValues(outcome).Inc()
	}
}

// outcomeOf returns the outcome of an accepted submit, as the metric names it.
func outcomeOf(queueID string, key *api.IdempotencyStatus, skipped *api.Skipped) string {
	switch {
	case queueID == "":
		return "dry_run"
	case key != nil && key.Status == "HIT":
		return "repeated"
	case skipped != nil && skipped.All:
		return "skipped"
	}
	return "accepted"
}

// settle sets account and idempotency key of a submit from its path, header, body and token.
func (in *submitInput) settle(ctx context.Context, account string) error {
	grant := grantOf(ctx)
	in.Body.KeyRequired, in.Body.Bound = grant.KeyRequired, boundTo(ctx) != ""
	in.Body.Token, in.Body.TokenQuota = grant.QuotaID, grant.Quota
	if err := in.settleAccount(boundTo(ctx), account); err != nil {
		return err
	}
	if (in.Body.Proxy != "" || in.Body.LocalAddress != "") &&
		(!grant.Allows(api.ScopeAPI) || !grant.CanSee("")) {
		return fault.New(fault.Forbidden, "", "proxy and localAddress require a token that may change "+
			"accounts")
	}
	var faults []fault.Field
	if account != "" && in.Body.Account != account {
		faults = append(faults, wrong("account", "isn't the account in the path"))
	}
	faults = append(faults, in.settleTimes()...)
	faults = append(faults, in.settleKey()...)
	if in.Body.Reference == nil {
		return fault.InvalidFields(faults)
	}
	return &fault.Error{
		Kind: fault.Invalid, Code: "MailboxUnavailable",
		Message: "There is no mailbox to take the referenced message from",
		Fields:  append(faults, wrong("reference", "is not supported: use inReplyTo and references")),
	}
}

// settleAccount sets the account. A bound token sends as its own account only.
func (in *submitInput) settleAccount(bound, path string) error {
	in.Body.Account = cmp.Or(in.Body.Account, path)
	if bound == "" {
		return nil
	}
	in.Body.Account = cmp.Or(in.Body.Account, bound)
	if in.Body.Account != bound || path != "" && path != bound {
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return nil
}

// settleTimes puts times without an offset on the clocks of the request's zone.
func (in *submitInput) settleTimes() (faults []fault.Field) {
	zone, err := schedule.Zone(cmp.Or(in.Body.TZ, "UTC"))
	if err != nil {
		zone = time.UTC // the outbox reports it
	}
	set := func(key string, at *time.Time) {
		if at == nil || at.Location() != schedule.Floating {
			return
		}
		if *at, err = schedule.Local(*at, zone); err != nil {
			faults = append(faults, wrong(key, "must exist: "+err.Error()))
		}
	}
	set("sendAt", in.Body.SendAt)
	set("deliverBy", in.Body.DeliverBy)
	for i := range in.Body.MailMerge {
		set(fmt.Sprintf("mailMerge[%d].sendAt", i), in.Body.MailMerge[i].SendAt)
	}
	return faults
}

// settleKey sets the idempotency key of the header, which may be in quotes, as a structured field (RFC 8941).
func (in *submitInput) settleKey() []fault.Field {
	key := in.Key
	if len(key) >= 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	switch {
	case key == "":
		return nil
	case len(key) > 1024:
		return []fault.Field{wrong("idempotencyKey", "length must be less than or equal to 1024 "+
			"characters long")}
	case in.Body.IdempotencyKey != "" && in.Body.IdempotencyKey != key:
		return []fault.Field{wrong("idempotencyKey", "differs from the header Idempotency-Key")}
	}
	in.Body.IdempotencyKey = key
	return nil
}

// complete adds the errors that only the outbox can find, by a dry run of the fields that were read. The
// other fields keep their one error: the outbox's error about their absence is dropped.
func (in *submitInput) complete(ctx context.Context, p *Parts, found *fault.Error) {
	in.completeAs(ctx, p, found, "")
}

func (in *submitAsInput) complete(ctx context.Context, p *Parts, found *fault.Error) {
	in.completeAs(ctx, p, found, in.Account)
}

func (in *submitInput) completeAs(ctx context.Context, p *Parts, found *fault.Error, account string) {
	known := map[string]bool{}
	for _, f := range found.Fields {
		known[rootOf(f.Key)] = true
	}
	if known[""] || known["mailMerge"] {
		return // the body isn't an object, or its recipients were not read
	}
	more := in.settle(ctx, account)
	if more == nil {
		in.Body.DryRun = true
		_, more = p.Submit(ctx, in.Body)
	}
	if e, ok := more.(*fault.Error); ok && e.Kind == fault.Invalid {
		for _, f := range e.Fields {
			if !known[rootOf(f.Key)] {
				found.Fields = append(found.Fields, f)
			}
		}
		found.Code = e.Code
	}
}

// rootOf returns the top-level field of a key.
func rootOf(key string) string {
	root, _, _ := strings.Cut(key, ".")
	root, _, _ = strings.Cut(root, "[")
	return root
}
