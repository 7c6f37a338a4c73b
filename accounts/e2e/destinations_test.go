package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/internal/testsmtp"
)

// withLimits gives a gateway limits per domain.
func (p *providers) withLimits(t *testing.T, id string, all map[string]api.DomainLimits) {
	t.Helper()
	if _, err := api.UpdateGateway.Do(t.Context(), p.Client, api.GatewayPatch{LimitsPerDomain: &all},
		id); err != nil {
		t.Fatal(err)
	}
}

// submitMany submits messages to a domain, and returns their ids.
func (p *providers) submitMany(t *testing.T, domain string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		ids = append(ids, p.submit(t, fmt.Sprintf("p%02d@%s", i, domain)))
	}
	return ids
}

// waiting returns how many messages wait for a reason, with no attempt made.
func (p *providers) waiting(t *testing.T, ids []string, reason string) (n int) {
	t.Helper()
	for _, id := range ids {
		m, err := api.GetMessage.Do(t.Context(), p.Client, id)
		if err == nil && m.Reason == reason && m.AttemptsMade == 0 {
			n++
		}
	}
	return n
}

// TestALimitedDomainOverSMTP: mail to it waits for its limit, and mail to another domain does not.
func TestALimitedDomainOverSMTP(t *testing.T) {
	t.Parallel()
	const limit, mails = 3, 8
	p := office(t, nil, "smtp")
	p.withLimits(t, "smtp", map[string]api.DomainLimits{"slow.example": {PerMinute: limit}})
	slow, fast := p.submitMany(t, "slow.example", mails), p.submitMany(t, "fast.example", 2*mails)
	for _, id := range fast {
		if m := p.ended(t, id); m.Status != api.StatusSent {
			t.Errorf("%+v", m)
		}
	}
	apptest.Eventually(t, "the others wait", func() bool {
		return p.waiting(t, slow, "gateway smtp to slow.example: 3 a minute") == mails-limit
	})
	got := 0
	for to := range apptest.Copies(p.Relay) {
		if strings.HasSuffix(to, "@slow.example") {
			got++
		}
	}
	if got != limit {
		t.Errorf("%d went to the limited domain, want %d", got, limit)
	}
}

// TestARelayReportsADomainsLimit: only that domain is slowed down, and the gateway stays well.
func TestARelayReportsADomainsLimit(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "RCPT" && strings.Contains(c.Arg, "@slow.example") {
			return testsmtp.Action{Reply: "450 4.7.1 Rate limit exceeded for recipient domain slow.example"}
		}
		return testsmtp.Action{}
	}})
	p := office(t, nil, "smtp")
	host, port := relay.Host(), relay.Port()
	if _, err := api.UpdateGateway.Do(t.Context(), p.Client, api.GatewayPatch{Host: &host, Port: &port},
		"smtp"); err != nil {
		t.Fatal(err)
	}
	p.slowsAlone(t, "smtp", func() int { return relay.Count() })
}

// slowsAlone submits a message to slow.example, whose domain gets too much, and then to both domains.
func (p *providers) slowsAlone(t *testing.T, gateway string, delivered func() int) {
	t.Helper()
	first := p.submit(t, "first@slow.example")
	apptest.Eventually(t, "the first is put off", func() bool {
		m, err := api.GetMessage.Do(t.Context(), p.Client, first)
		return err == nil && m.AttemptsMade == 1
	})
	later, fast := p.submitMany(t, "slow.example", 3), p.submitMany(t, "fast.example", 10)
	for _, id := range fast {
		if m := p.ended(t, id); m.Status != api.StatusSent {
			t.Errorf("%+v", m)
		}
	}
	reason := "gateway " + gateway + " to slow.example: slowed down, as the receiver asked"
	apptest.Eventually(t, "the others to that domain wait", func() bool {
		return p.waiting(t, later, reason) == len(later)
	})
	info, err := api.GetGateway.Do(t.Context(), p.Client, gateway)
	if err != nil || info.State != "connected" || delivered() != len(fast) {
		t.Errorf("%+v, %d delivered, %v", info, delivered(), err)
	}
}

// TestACampaignPassesALimitedDomain: its mail to the domain waits in the outbox, and its other mail goes.
func TestACampaignPassesALimitedDomain(t *testing.T) {
	t.Parallel()
	const limit, atOnce, mails = 10, 8, 20 // bulk mail leaves a fifth
	const others = 2*mails + 1             // with the one who is on the list already
	r := campaignRivals(t, map[string]string{})
	all := map[string]api.DomainLimits{"slow.example": {PerMinute: limit}}
	if _, err := api.UpdateGateway.Do(t.Context(), r.admin, api.GatewayPatch{LimitsPerDomain: &all},
		"ga"); err != nil {
		t.Fatal(err)
	}
	var people []string
	for i := range mails {
		people = append(people, fmt.Sprintf("p%02d@slow.example", i))
	}
	apptest.People(t, r.a, "lista", append(people, apptest.Many(2*mails)...)...)
	apptest.Draft(t, r.a, "one", "lista", nil)
	apptest.SendNow(t, r.a, "one")
	apptest.Eventually(t, "all but the mail to the limited domain is out", func() bool {
		st := apptest.Stats(t, r.a, "one")
		return st.States.Sent == others+atOnce && st.States.Deferred == mails-atOnce
	})
	if n := r.relays["a"].Count(); n != others+atOnce {
		t.Errorf("%d mails went out", n)
	}
}

// TestALimitedDomainOverAnAPI: the same limits hold for an API, whose endpoint may report a domain's limit.
func TestALimitedDomainOverAnAPI(t *testing.T) {
	t.Parallel()
	const limit, mails = 3, 8
	p := office(t, nil, "http")
	fake := p.fakes["http"]
	p.withLimits(t, "http", map[string]api.DomainLimits{"*": {PerMinute: limit}, "fast.example": {}})
	one, fast := p.submitMany(t, "one.example", mails), p.submitMany(t, "fast.example", mails)
	two := p.submitMany(t, "two.example", mails)
	for _, id := range fast {
		p.ended(t, id)
	}
	apptest.Eventually(t, "the others wait", func() bool {
		return p.waiting(t, one, "gateway http to one.example: 3 a minute") == mails-limit &&
			p.waiting(t, two, "gateway http to two.example: 3 a minute") == mails-limit
	})
	if n := fake.Count(""); n != mails+2*limit {
		t.Errorf("%d were delivered, want %d", n, mails+2*limit)
	}
}

// TestAnEndpointReportsADomainsLimit slows that domain only.
func TestAnEndpointReportsADomainsLimit(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "http")
	fake := p.fakes["http"]
	fake.Change(func(o *testapi.Options) { o.Inactive = map[string]string{"first@slow.example": "domain"} })
	p.slowsAlone(t, "http", func() int { return fake.Count("") })
}
