package outbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// settledReply is the response of a recipient whose message was in doubt.
const settledReply = "reported by the provider: it took the message in an attempt that was in doubt"

// settle resolves a doubt with what is known about the message. A recipient with a report has the message and
// doesn't get it again. It returns the decision if no recipient is left, or if a provider's report must be
// waited for, and nil if the message must be tried. After a replay it asks nothing, because an operator wants
// the message sent.
func (d *Delivery) settle(ctx context.Context, c *claim, started time.Time, p policy) *decision {
	if c.unrecorded() || c.doubts <= c.oldDoubts {
		return nil
	}
	facts, err := d.factEvents(ctx, c.row)
	if err != nil {
		return d.untried(ctx, c, err, "reports about the message can't be read; the log has the reason")
	}
	queued := c.status.having(rcptQueued)
	var taken []smtpsend.RecipientResult
	for _, i := range queued {
		for _, f := range facts {
			if len(f.Recipients) == 1 && strings.EqualFold(f.Recipients[0], c.envelope.To[i]) {
				taken = append(taken, smtpsend.RecipientResult{Address: c.envelope.To[i], Response: settledReply})
				break
			}
		}
	}
	switch {
	case len(taken) == 0:
		return d.awaitReport(ctx, c, started)
	case len(taken) == len(queued):
		return d.refused(c, p, attempted{start: started, result: smtpsend.Result{Recipients: taken,
			Response: settledReply}})
	}
	if err := d.progress(ctx, c, taken); err != nil {
		return d.untried(ctx, c, err, "what the provider reported can't be recorded; the log says why")
	}
	return nil
}

// awaitReport makes a message wait if its worker died in doubt and a provider of its account may report on
// it. It returns nil if the message needn't wait.
func (d *Delivery) awaitReport(ctx context.Context, c *claim, started time.Time) *decision {
	for _, lapse := range slices.Backward(strings.Fields(c.lapsed)) {
		how, began, _ := strings.Cut(lapse, "@")
		until := redisdb.ParseTime(began).Add(d.opts.ReportWait)
		if how != "doubt" || !started.Before(until) {
			continue
		}
		account, err := d.Accounts.Resolve(ctx, c.envelope.Account)
		reports := func(r gateways.Relay) bool { return d.reports(ctx, r) }
		if err != nil || !slices.ContainsFunc(d.relays(ctx, account, c.gateway), reports) {
			return nil // an error is found again, and told, when the message is tried
		}
		return &decision{outcome: deferred, at: started, due: until, reservation: c.reservation,
			reason: "it is in doubt: the provider may report that it took the message"}
	}
	return nil
}

// relays returns the gateway that a message asks for, or else the relays of its account.
func (d *Delivery) relays(ctx context.Context, account accounts.Sender, gateway string) []gateways.Relay {
	if gateway == "" {
		return account.Relays
	}
	relay, err := d.Gateways.Resolve(ctx, gateway)
	if err != nil {
		return nil
	}
	return []gateways.Relay{relay}
}

// reportWait returns how long to wait for a report from the last relay asked. It returns 0 if that relay
// makes none, or if the message belongs to a campaign, which gets its reports.
func (d *Delivery) reportWait(ctx context.Context, c *claim, account accounts.Sender,
	tries []routing.Try) time.Duration {
	if len(tries) == 0 || c.unrecorded() {
		return 0
	}
	last := tries[len(tries)-1].Gateway
	for _, relay := range d.relays(ctx, account, last) {
		if relay.Gateway == last && d.reports(ctx, relay) {
			return d.opts.ReportWait
		}
	}
	return 0
}

// reports reports whether a relay's provider reports the results of messages by webhook.
func (d *Delivery) reports(ctx context.Context, r gateways.Relay) bool {
	return d.Reports != nil && d.Reports(ctx, r)
}

// unreported reports whether the last attempt was in doubt, and no report and no repeat has settled that.
func (c *claim) unreported() bool {
	n := len(c.status.Log)
	return n > 0 && c.status.Log[n-1].InDoubt && c.status.Doubt == nil && c.doubts > c.oldDoubts
}
