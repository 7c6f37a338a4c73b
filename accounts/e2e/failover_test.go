package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// silentRow is an account whose first gateways stall.
type silentRow struct {
	name        string
	silent      int // gateways before the one that works
	after       int // messages that they take before
	verb        string
	connections int   // limit of each gateway; 0 if none
	weights     []int // the gateways'; nil if they have none
	processes   int   // 0: one
	back        int   // after how many messages they work again; 0 means never
	lane        func(n int) api.Lane
}

// mails is the number of the account's messages. If its gateways have a limit of connections, these are so
// many that they would take longer than the patience of the test if each waited a second for them.
func (row silentRow) mails() int {
	if row.connections > 0 {
		return 300
	}
	return 60
}

// TestMailPassesASilentGatewayWithinSeconds: an account with a fallback waits for no relay that stalls. Each
// message leaves once, and another account's messages are not touched. docs/delivery.md promises it.
func TestMailPassesASilentGatewayWithinSeconds(t *testing.T) {
	t.Parallel()
	for _, row := range []silentRow{
		{name: "from the start", silent: 1, verb: "CONNECT"},
		{name: "after EHLO", silent: 1, verb: "MAIL"},
		{name: "at MAIL, after it worked", silent: 1, after: 5, verb: "MAIL"},
		{name: "with one connection", silent: 1, verb: "EHLO", connections: 1},
		{name: "with three connections, after it worked", silent: 1, after: 5, verb: "MAIL", connections: 3},
		{name: "two of three gateways", silent: 2, verb: "EHLO"},
		{name: "two of three gateways, with two connections", silent: 2, verb: "MAIL", connections: 2},
		{name: "with weights", silent: 1, verb: "EHLO", weights: []int{90, 10}},
		{name: "two of three with weights", silent: 2, verb: "MAIL", weights: []int{50, 40, 10}},
		{name: "seen by two processes", silent: 1, verb: "EHLO", processes: 2, connections: 2},
		{name: "until the first messages passed it", silent: 1, verb: "EHLO", back: 1},
		{name: "until all messages passed it", silent: 1, verb: "MAIL", connections: 1, back: 300},
		{name: "bulk mail beside other mail", silent: 1, verb: "EHLO", lane: func(n int) api.Lane {
			return []api.Lane{api.Bulk, api.Transactional}[n%2]
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t)
		})
	}
}

func (row silentRow) run(t *testing.T) {
	var clients []*api.Client
	redis := testredis.URL(t)
	for range max(1, row.processes) {
		a := apptest.Run(t, map[string]string{"delivery.timeout": "3s", "redis.url": redis,
			"token": apptest.TestToken})
		clients = append(clients, api.NewClient(a.URL(), apptest.TestToken, nil))
	}
	submit := func(n int, account, to string) {
		req := mailFrom("", to)
		req.Account = account
		if row.lane != nil {
			req.Lane = row.lane(n)
		}
		apptest.HandIn(t, clients[n%len(clients)], req)
	}
	var back atomic.Bool
	var relays []*testsmtp.Server
	for range row.silent {
		relays = append(relays, row.relay(t, &back))
	}
	relays = append(relays, testsmtp.Start(t, testsmtp.Options{}))
	row.gateways(t, clients[0], "shop", "a", relays...)
	own := testsmtp.Start(t, testsmtp.Options{})
	silentRow{}.gateways(t, clients[0], "other", "z", own)
	mails := row.mails()
	for n := range mails {
		submit(n, "shop", fmt.Sprintf("p%03d@example.net", n))
		if n%10 == 0 {
			submit(n, "other", fmt.Sprintf("other%03d@example.net", n))
		}
	}
	own.Wait(mails / 10)
	apptest.Eventually(t, "all messages leave", func() bool { // it takes seconds
		n := len(recipientsOf(relays))
		back.Store(row.back > 0 && n >= row.back)
		return n >= mails
	})
	sent := mails
	if row.back > 0 {
		before := relays[0].Count()
		apptest.Eventually(t, "mail returns to a relay that works again", func() bool {
			if len(recipientsOf(relays)) >= sent {
				submit(0, "shop", fmt.Sprintf("later%d@example.net", sent))
				sent++
			}
			return relays[0].Count() > before
		})
		apptest.Eventually(t, "the other messages leave, too",
			func() bool { return len(recipientsOf(relays)) >= sent })
	}
	to := recipientsOf(relays)
	if slices.Sort(to); len(to) != sent || len(slices.Compact(slices.Clone(to))) != sent {
		t.Errorf("%d messages, sent to %s", sent, strings.Join(to, " "))
	}
	if to := recipientsOf([]*testsmtp.Server{own}); len(to) != mails/10 || slices.ContainsFunc(to,
		func(to string) bool { return !strings.HasPrefix(to, "other") }) {
		t.Errorf("the relay of another account got mail for %s", strings.Join(to, " "))
	}
}

// relay is a gateway's relay that stalls until back.
func (row silentRow) relay(t *testing.T, back *atomic.Bool) *testsmtp.Server {
	var started atomic.Pointer[testsmtp.Server] // a client may come before Start returns
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		taken := 0
		if relay := started.Load(); relay != nil {
			taken = relay.Count()
		}
		return testsmtp.Action{Hang: c.Verb == row.verb && taken >= row.after && !back.Load()}
	}})
	started.Store(relay)
	return relay
}

// gateways creates a gateway for each relay, with ids from first on, and an account that uses them in this
// order.
func (row silentRow) gateways(t *testing.T, client *api.Client, account, first string,
	relays ...*testsmtp.Server) {
	t.Helper()
	var routes []api.Route
	for i, relay := range relays {
		route := api.Route{Gateway: string(rune(int(first[0]) + i))}
		if row.weights != nil {
			route.Weight = row.weights[i]
		}
		if _, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: route.Gateway,
			Host: relay.Host(), Port: relay.Port(), Limits: &api.Limits{Connections: row.connections}}); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, route)
	}
	if _, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: account,
		Email: account + "@example.com", Gateways: routes}); err != nil {
		t.Fatal(err)
	}
}

// recipientsOf returns to whom relays took mail.
func recipientsOf(relays []*testsmtp.Server) (to []string) {
	for _, relay := range relays {
		for _, m := range relay.Messages() {
			to = append(to, m.To...)
		}
	}
	return to
}
