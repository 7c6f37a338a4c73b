package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// sayStuck replaces the state and its sentence if no relay of an account takes its mail. unsent are messages
// that are due or delayed, lookedAt of each at most.
func (o *Overview) sayStuck(
	ctx context.Context, f *api.OverviewFlow, unsent []api.OutboxMessage, paused []string,
) error {
	ids, n, err := o.stuck(ctx, unsent)
	if err != nil || n == 0 {
		return err
	}
	f.State = api.FlowStuck
	wait := fmt.Sprintf("%d messages wait", n)
	if n == 1 {
		wait = "1 message waits"
	}
	if f.Waiting+f.Delayed > len(unsent) {
		wait = "at least " + wait
	}
	if len(ids) == 1 {
		f.Sentence = fmt.Sprintf("Mail of account %s is stuck: no relay takes it, and %s.", ids[0], wait)
	} else {
		f.Sentence = fmt.Sprintf("Mail of these accounts is stuck: %s. No relay takes it, and %s.", some(ids), wait)
	}
	if len(paused) > 0 {
		f.Sentence += fmt.Sprintf(" Sending is paused, too (%s mail).", strings.Join(paused, " and "))
	}
	return nil
}

// stuck returns the accounts with mail that no relay takes, and how many of the messages are theirs.
func (o *Overview) stuck(ctx context.Context, unsent []api.OutboxMessage) (ids []string, n int, err error) {
	if len(unsent) == 0 {
		return nil, 0, nil
	}
	gateways, err := o.Gateways(ctx, 0, listed)
	if err != nil {
		return nil, 0, err
	}
	away := map[string]bool{}
	for _, g := range gateways.Gateways {
		away[g.Gateway.Gateway] = isAway(g)
	}
	accounts := map[string]api.AccountInfo{}
	for _, m := range unsent {
		a, known := accounts[m.Account]
		if !known {
			a, err = o.Account(ctx, m.Account)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return nil, 0, err
			}
			accounts[m.Account] = a
		}
		if takenByNone(m, a, away) {
			ids, n = append(ids, m.Account), n+1
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), n, nil
}

// isAway reports whether a gateway took no mail when it was last used.
func isAway(g api.GatewayInfo) bool { return g.State == "error" || g.State == "open" }

// takenByNone reports whether all relays that may take a message are away: its gateway, or those of its
// account for its lane.
func takenByNone(m api.OutboxMessage, a api.AccountInfo, away map[string]bool) bool {
	switch {
	case m.Gateway != nil: // the one it asked for
		return away[*m.Gateway]
	case a.State == "held":
		return true
	}
	for _, lane := range []api.Lane{m.Lane, ""} {
		var all []bool
		for _, r := range a.Gateways {
			if r.Lane == lane {
				all = append(all, away[r.Gateway])
			}
		}
		if lane == "" && (a.SMTP != nil || len(a.Gateways) == 0) { // its own relay
			all = append(all, a.State == "error")
		}
		if len(all) > 0 {
			return !slices.Contains(all, false)
		}
	}
	return false
}
