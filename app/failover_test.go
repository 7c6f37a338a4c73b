package app_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testsmtp"
)

// gatewaysOf creates a gateway for each relay, named a, b, c…, and an account that uses them in this order.
func gatewaysOf(t *testing.T, client *api.Client, account string, connections int,
	relays ...*testsmtp.Server) {
	t.Helper()
	var routes []api.Route
	for i, relay := range relays {
		id := string(rune('a' + i))
		if _, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: id, Host: relay.Host(),
			Port: relay.Port(), Limits: &api.Limits{Connections: connections}}); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, api.Route{Gateway: id})
	}
	if _, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: account,
		Email: "app@example.com", Gateways: routes}); err != nil {
		t.Fatal(err)
	}
}

// silentAfter is a relay that takes a number of messages, and then says nothing more from a command on.
func silentAfter(t *testing.T, messages int, verb string) *testsmtp.Server {
	var started atomic.Pointer[testsmtp.Server] // a client may come before Start returns
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		taken := 0
		if relay := started.Load(); relay != nil {
			taken = relay.Count()
		}
		return testsmtp.Action{Hang: c.Verb == verb && taken >= messages}
	}})
	started.Store(relay)
	return relay
}

// TestMailPassesASilentGatewayWithinSeconds: an account with a fallback waits for no relay that stalls. Each
// message leaves once, and those of another account are not touched. docs/delivery.md promises it.
func TestMailPassesASilentGatewayWithinSeconds(t *testing.T) {
	t.Parallel()
	const mails = 100
	for _, row := range []struct {
		name        string
		silent      int // gateways before the one that works
		after       int // messages that they take before
		verb        string
		connections int // limit of each gateway; 0: none
		lane        func(n int) api.Lane
	}{
		{name: "from the start", silent: 1, verb: "CONNECT"},
		{name: "at MAIL, after it worked", silent: 1, after: 5, verb: "MAIL"},
		{name: "with one connection", silent: 1, verb: "EHLO", connections: 1},
		{name: "two of three gateways", silent: 2, verb: "EHLO"},
		{name: "bulk mail beside other mail", silent: 1, verb: "EHLO", lane: func(n int) api.Lane {
			if n%2 == 0 {
				return api.Bulk
			}
			return api.Transactional
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			a := start(t, map[string]string{"delivery.timeout": "3s"})
			client := api.NewClient(a.URL(), a.Token(), nil)
			var relays []*testsmtp.Server
			for range row.silent {
				relays = append(relays, silentAfter(t, row.after, row.verb))
			}
			relays = append(relays, testsmtp.Start(t, testsmtp.Options{}))
			gatewaysOf(t, client, "shop", row.connections, relays...)
			var merge []api.SubmitRequest
			for n := range mails {
				req := mailFrom("", fmt.Sprintf("p%03d@example.net", n))
				req.Account = "shop"
				if row.lane != nil {
					req.Lane = row.lane(n)
				}
				merge = append(merge, req)
			}
			for _, req := range merge {
				if _, err := api.Submit.Do(t.Context(), client, req); err != nil {
					t.Fatal(err)
				}
			}
			var to []string
			for began := time.Now(); len(to) < mails; time.Sleep(20 * time.Millisecond) {
				to = nil
				for _, relay := range relays {
					for _, m := range relay.Messages() {
						to = append(to, m.To...)
					}
				}
				if time.Since(began) > time.Minute { // it takes seconds
					t.Fatalf("only %d left", len(to))
				}
			}
			if slices.Sort(to); len(slices.Compact(slices.Clone(to))) != len(to) {
				t.Errorf("a message left twice: %s", strings.Join(to, " "))
			}
		})
	}
}
