package suppression

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// Providers imports the suppression lists of the providers that gateways use by API. It reads page by page in
// the background, in one process at a time. If the process dies, another one continues at the same page.
//
// It adds entries, and an entry that is there already may last longer. It never removes or shortens one.
type Providers struct {
	s     *Store
	o     ProvidersOptions
	owner lease.Lock
	woken chan struct{}
}

// ProvidersOptions are what Providers work with. The functions are required.
type ProvidersOptions struct {
	// Gateway returns the type of a gateway and its account at the provider. ErrBusy: it must not be asked now
	Gateway func(ctx context.Context, id string) (api.GatewayType, apisend.Target, error)
	// List reads a page of the list; apiadmin.Client.Suppressions
	List func(ctx context.Context, t apisend.Target, cursor string) (apiadmin.SuppressionPage, error)
	// Every is the interval of looking for imports that another process began. Defaults to 5 seconds
	Every time.Duration
}

// ErrBusy is the error of a gateway whose list must not be read now, because it is paused or throttled.
var ErrBusy = errors.New("the gateway is paused after failures, or its provider asked to slow down")

const (
	providerOwned = time.Minute      // longer than a page takes
	providerPage  = 40 * time.Second // bounds the request for a page
	providerLook  = 5 * time.Second  // interval of looking for imports that another process began
	providerBusy  = time.Minute      // wait for a gateway that is busy
	providerTries = 6                // failures of one page until the import has failed
	providerAgain = 10 * time.Second // before the second try; then twice as long each time
	providerMost  = 2_000_000        // entries of a list: a longer list is a list without an end
	providerPages = 100_000          // the same
)

// NewProviders returns the imports of a store. [Providers.Run] runs them.
func NewProviders(s *Store, o ProvidersOptions) *Providers {
	o.Every = cmp.Or(o.Every, providerLook)
	return &Providers{s: s, o: o, woken: make(chan struct{}, 1), owner: lease.Lock{Client: s.db.Client(),
		Key: providerOwnerKey(), Holder: rand.Text(), Length: providerOwned}}
}

// SourceOf returns the source of entries that come from the provider of a gateway.
func SourceOf(gateway string) string { return "provider:" + gateway }

// Start starts an import, unless one is running, and returns its progress. It returns Invalid for Mailjet and
// other types whose list can't be read.
func (p *Providers) Start(ctx context.Context, gateway string, o api.ProviderImportStart) (api.ProviderImport,
	error) {
	kind, _, err := p.o.Gateway(ctx, gateway)
	if err != nil && !errors.Is(err, ErrBusy) {
		return api.ProviderImport{}, err
	}
	if !apiadmin.HasSuppressions(kind) {
		return api.ProviderImport{}, fault.New(fault.Invalid, "NoSuppressionList",
			"Gateway %s is of type %s, whose suppression list can't be read over its API. Export the list at the "+
				"provider, and import the file: postroom suppressions import", gateway, cmp.Or(kind, api.GatewaySMTP))
	}
	if !validAccount(o.Account) {
		return api.ProviderImport{}, fault.InvalidField("account", "isn't an account ID")
	}
	now := p.s.now().UTC()
	fresh := providerState{ProviderImport: api.ProviderImport{Gateway: gateway, Account: o.Account,
		State: "running", Started: &now}}
	if state, err := p.load(ctx, gateway); err == nil && state.State == "running" {
		return state.ProviderImport, nil
	} else if err != nil && !fault.Is(err, fault.NotFound) {
		return api.ProviderImport{}, err
	}
	if err := p.begin(ctx, fresh); err != nil {
		return api.ProviderImport{}, err
	}
	select {
	case p.woken <- struct{}{}:
	default:
	}
	return fresh.ProviderImport, nil
}

// Progress returns the progress of the import that runs, or ran last. NotFound: none did in the last 90 days.
func (p *Providers) Progress(ctx context.Context, gateway string) (api.ProviderImport, error) {
	state, err := p.load(ctx, gateway)
	return state.ProviderImport, err
}

// Run runs the imports until ctx ends. Then it returns nil.
func (p *Providers) Run(ctx context.Context) error {
	defer func() { _ = p.owner.Release(ctx) }() // so that another process can continue immediately
	tick := time.NewTicker(p.o.Every)
	defer tick.Stop()
	for {
		worked, err := p.round(ctx)
		if err != nil && ctx.Err() == nil {
			p.s.log.Debug("imports of providers' lists are waiting", "error", err)
		}
		if worked && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-p.woken:
		}
	}
}

// round reads a page of each import that is running, and reports whether there was one that isn't waiting.
func (p *Providers) round(ctx context.Context) (worked bool, err error) {
	running, err := p.running(ctx)
	if err != nil || len(running) == 0 {
		return false, err
	}
	for _, gateway := range running {
		if held, err := p.owner.Claim(ctx); err != nil || !held {
			return false, err
		}
		state, err := p.load(ctx, gateway)
		if fault.Is(err, fault.NotFound) {
			err = p.over(ctx, gateway)
			state.State = "gone"
		}
		if err != nil {
			return worked, err
		}
		if state.State != "running" || p.s.now().Before(state.Next) {
			continue
		}
		if err := p.step(ctx, &state); err != nil {
			return worked, err
		}
		worked = true
	}
	return worked, nil
}

// step reads one page of an import. It returns only Redis errors; the provider's errors are in the state.
func (p *Providers) step(ctx context.Context, state *providerState) error {
	page, err := p.read(ctx, state)
	if err == nil {
		err = p.add(ctx, state, page)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case redisdb.Unavailable(err) || fault.Is(err, fault.Unavailable):
		return err // the page is read again
	case err != nil:
		p.failed(state, err)
	default:
		state.Tries, state.Pages, state.Cursor = 0, state.Pages+1, page.Next
		if page.Next == "" {
			if state.Left, err = p.left(ctx, state); err != nil {
				return err
			}
			p.end(state, "done", "")
		} else if state.Read > providerMost || state.Pages > providerPages {
			p.end(state, "failed", fmt.Sprintf("The list has no end after %d addresses. Export it at the provider, "+
				"and import the file: postroom suppressions import", state.Read))
		}
	}
	return p.save(ctx, state)
}

func (p *Providers) read(ctx context.Context, state *providerState) (apiadmin.SuppressionPage, error) {
	_, target, err := p.o.Gateway(ctx, state.Gateway)
	if err != nil {
		return apiadmin.SuppressionPage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, providerPage)
	defer cancel()
	return p.o.List(ctx, target, state.Cursor)
}

// failed decides what follows from an error: a wait, or the end.
func (p *Providers) failed(state *providerState, err error) {
	e, _ := errors.AsType[*smtpsend.Error](err)
	wait := time.Duration(0)
	switch {
	case errors.Is(err, ErrBusy):
		wait = providerBusy
	case e != nil && e.RetryAfter > 0:
		wait = e.RetryAfter
	case e != nil && e.Verdict == smtpsend.Throttle:
		wait = providerBusy
	case fault.CodeOf(err) != "", e != nil && e.Verdict == smtpsend.Auth, state.Tries+1 >= providerTries:
		p.end(state, "failed", message.Clip(importAdvice(state.Gateway, err, e), 500))
		return
	default:
		wait = providerAgain << state.Tries
		state.Tries++
	}
	state.Error, state.Next = message.Clip(err.Error(), 500), p.s.now().Add(wait)
}

// importAdvice says what to do about an error that ended an import.
func importAdvice(gateway string, err error, e *smtpsend.Error) string {
	switch {
	case e != nil && e.Verdict == smtpsend.Auth:
		return fmt.Sprintf("%s. Check the gateway's key with postroom gateway verify %s; it needs the right to "+
			"read suppressions. Then start the import again", err, gateway)
	case fault.CodeOf(err) != "":
		return fmt.Sprintf("%s. Start the import again after that", err)
	}
	return fmt.Sprintf("%s. Start the import again later; if it fails again, export the list at the provider, "+
		"and import the file: postroom suppressions import", err)
}

func (p *Providers) end(state *providerState, how, why string) {
	now := p.s.now().UTC()
	state.State, state.Error, state.Ended, state.Cursor, state.Next = how, why, &now, "", time.Time{}
	p.s.log.Info("import of a provider's suppression list ended", slog.String("gateway", state.Gateway),
		slog.String("state", how), slog.Int("read", state.Read), slog.Int("added", state.Added),
		slog.String("error", why))
}

// reasonsOf are the entries' reasons, by the provider's.
var reasonsOf = map[provider.Reason]Reason{provider.ReasonBounced: HardBounce,
	provider.ReasonSpam: SpamReport, provider.ReasonUnsubscribed: Unsubscribe}

// add adds the entries of a page.
func (p *Providers) add(ctx context.Context, state *providerState, page apiadmin.SuppressionPage) error {
	now, entries, bad := p.s.now(), []Entry{}, 0
	for _, found := range page.Entries {
		e, wrong := Entry{Address: found.Address, Reason: cmp.Or(reasonsOf[found.Reason], Manual),
			Account: state.Account, Created: found.Since, Expires: found.Until, Source: SourceOf(state.Gateway),
			Response: found.Comment}.Normal("", now)
		if len(wrong) > 0 {
			bad++
			continue
		}
		entries = append(entries, e)
	}
	if err := p.s.hasRoom(ctx, entries); err != nil {
		return err
	}
	added, err := p.s.add(ctx, entries, now)
	if err != nil {
		return err
	}
	if err := p.see(ctx, state, entries); err != nil {
		return err
	}
	state.Read += len(page.Entries) + page.Skipped
	state.Added, state.Updated = state.Added+added, state.Updated+len(entries)-added
	state.Failed, state.Skipped, state.Error = state.Failed+bad, state.Skipped+page.Skipped, ""
	state.Note = cmp.Or(page.Note, state.Note)
	p.s.metrics.imported(added, len(entries)-added, bad)
	return nil
}
