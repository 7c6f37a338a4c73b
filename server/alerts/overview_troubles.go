package alerts

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

const (
	troublesAtMost = 10   // of each kind
	listed         = 1000 // gateways and endpoints that are looked at
)

// queues fills in the queues of the instance that are paused.
func (o *Overview) queues(ctx context.Context, out *api.Overview) error {
	if out.Account != "" {
		return nil
	}
	for _, name := range []string{"submit", "bulk", "notify", "documents", "digests"} {
		q, err := o.QueueStatus(ctx, name)
		if err != nil {
			return err
		}
		if q.Paused {
			out.Troubles = append(out.Troubles, api.OverviewTrouble{Kind: "queue", ID: name, State: "paused",
				Text: fmt.Sprintf("It holds %d jobs.", q.Jobs.Paused+q.Jobs.Waiting), Do: []api.WhyStep{resume(name)}})
		}
	}
	return nil
}

// troubles fills in the instance's problems, or one account's.
func (o *Overview) troubles(ctx context.Context, out *api.Overview) error {
	if out.Account != "" {
		return o.ownTroubles(ctx, out)
	}
	ids, err := o.Troubled(ctx)
	if err != nil {
		return err
	}
	var found []api.OverviewTrouble
	for _, id := range ids[:min(len(ids), troublesAtMost)] {
		a, err := o.Account(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue // it was deleted since
		}
		if err != nil {
			return err
		}
		found = append(found, troubleOfAccounts(a))
	}
	keep(out, found)
	out.More += max(0, len(ids)-troublesAtMost)
	gateways, err := o.Gateways(ctx, 0, listed)
	if err != nil {
		return err
	}
	keep(out, gatewayTroubles(gateways.Gateways, nil))
	endpoints, err := o.Endpoints(ctx, 0, listed)
	if err != nil {
		return err
	}
	found = nil
	for _, e := range endpoints.Endpoints {
		if !inTrouble(e) {
			continue
		}
		t, err := o.endpointTrouble(ctx, out.Time, e)
		if err != nil {
			return err
		}
		found = append(found, t)
	}
	keep(out, found)
	return nil
}

func (o *Overview) ownTroubles(ctx context.Context, out *api.Overview) error {
	a, err := o.Account(ctx, out.Account)
	switch {
	case fault.Is(err, fault.NotFound): // its mail may still be in the log
	case err != nil:
		return err
	case a.State == "error" || a.State == "held":
		keep(out, []api.OverviewTrouble{troubleOfAccounts(a)})
	}
	if len(a.Gateways) > 0 {
		gateways, err := o.Gateways(ctx, 0, listed)
		if err != nil {
			return err
		}
		keep(out, gatewayTroubles(gateways.Gateways, a.Gateways))
	}
	e, err := o.Endpoint(ctx, "account:"+out.Account)
	switch {
	case fault.Is(err, fault.NotFound): // it has none
	case err != nil:
		return err
	case inTrouble(e):
		t, err := o.endpointTrouble(ctx, out.Time, e)
		if err != nil {
			return err
		}
		keep(out, []api.OverviewTrouble{t})
	}
	return nil
}

// keep adds the first problems of a kind, and counts the others.
func keep(out *api.Overview, found []api.OverviewTrouble) {
	n := min(len(found), troublesAtMost)
	out.Troubles = append(out.Troubles, found[:n]...)
	out.More += len(found) - n
}

func troubleOfAccounts(a api.AccountInfo) api.OverviewTrouble {
	id := a.Account.Account
	return api.OverviewTrouble{Kind: "account", ID: id, State: a.State, Text: a.LastError, Since: a.LastErrorAt,
		Do: []api.WhyStep{step("Try its login", "account verify "+id, "/accounts"),
			step("See its mail", "outbox list --account "+id, "/outbox?account="+url.QueryEscape(id))}}
}

// gatewayTroubles returns the problems of gateways, or of an account's routes to them (nil means all).
func gatewayTroubles(all []api.GatewayInfo, routes []api.Route) (found []api.OverviewTrouble) {
	for _, g := range all {
		id := g.Gateway.Gateway
		if !isAway(g) ||
			routes != nil && !slices.ContainsFunc(routes, func(r api.Route) bool { return r.Gateway == id }) {
			continue
		}
		t := api.OverviewTrouble{Kind: "gateway", ID: id, State: g.State, Do: []api.WhyStep{
			step("Try its login", "gateway verify "+id, "/gateways")}}
		if g.LastError != nil {
			t.Text, t.Since = g.LastError.Response, &g.LastError.Time
		}
		found = append(found, t)
	}
	return found
}

// inTrouble reports whether an endpoint fails, or was switched off by Postroom, not by hand.
func inTrouble(e api.Endpoint) bool {
	if !e.Enabled {
		return e.DisabledReason != ""
	}
	return e.FailingSince != nil || e.Resting != nil && e.Resting.Failures > 0
}

func (o *Overview) endpointTrouble(ctx context.Context, now time.Time, e api.Endpoint) (
	api.OverviewTrouble, error,
) {
	t := api.OverviewTrouble{Kind: "endpoint", ID: e.ID, State: "failing", Since: e.FailingSince,
		Text: e.DisabledReason, Do: []api.WhyStep{step("See its deliveries",
			"webhook deliveries "+e.ID, "/webhooks/"+url.PathEscape(e.ID))}}
	if !e.Enabled {
		t.State = "disabled"
		return t, nil
	}
	stats, err := o.EndpointStats(ctx, e.ID, 2) // this hour may have just begun
	if err != nil && !fault.Is(err, fault.NotFound) {
		return t, err
	}
	t.Text = failing(e, stats, now)
	return t, nil
}

// failing says how an endpoint fails: a few failures in a row pause it, though it may take most events.
func failing(e api.Endpoint, stats api.EndpointStats, now time.Time) string {
	var says []string
	switch r := e.Resting; {
	case r != nil && r.Failures > 1:
		says = append(says, fmt.Sprintf("%d attempts in a row failed, the last: %s.", r.Failures, r.Error))
	case r != nil:
		says = append(says, fmt.Sprintf("The last attempt failed: %s.", r.Error))
	default:
		says = append(says, fmt.Sprintf("No attempt has succeeded since %s.", clock(*e.FailingSince)))
	}
	if stats.Requests > 0 {
		says = append(says, fmt.Sprintf("%d of %d requests (%.0f %%) succeeded since %s.", stats.Delivered,
			stats.Requests, 100*stats.SuccessRate, clock(stats.From)))
	}
	switch {
	case e.Resting == nil:
	case e.Resting.Until.After(now):
		says = append(says, fmt.Sprintf("It is tried again at %s.", clock(e.Resting.Until)))
	default:
		says = append(says, "It is tried again now.")
	}
	return strings.Join(says, " ")
}

func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 UTC") }
