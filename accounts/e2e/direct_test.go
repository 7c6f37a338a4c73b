package e2e_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testdns"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
)

// direct starts a Postroom whose account shop delivers straight to the servers of a zone. They listen at the
// port.
func direct(t *testing.T) (p *providers, zone *testdns.Zone, port int) {
	t.Helper()
	zone, port = testdns.NewZone(t), testkit.FreePort(t)
	zone.Add(t, "com. 60 NS ns.com.", "example.com. 60 MX 10 mx.example.com.")
	p = &providers{apptest.Start(t, map[string]string{"dns.servers": zone.Addr,
		"delivery.directPort": strconv.Itoa(port)}), nil}
	p.add(t, api.Gateway{Gateway: "direct", Type: api.GatewayMX, MX: &api.GatewayDirect{
		Addresses: []api.GatewaySource{{Address: "127.0.0.3", Name: "out.example.com"}}}})
	_, err := api.CreateAccount.Do(t.Context(), p.Client, api.Account{Account: "shop", Email: "shop@example.com",
		Gateways: []api.Route{{Gateway: "direct"}}})
	if err != nil {
		t.Fatal(err)
	}
	return p, zone, port
}

// TestAMessageStraightToItsServers: a dead host is passed over, and a domain that takes no mail fails alone
// (RFC 5321 section 5.1, RFC 7505).
func TestAMessageStraightToItsServers(t *testing.T) {
	t.Parallel()
	p, zone, port := direct(t)
	zone.Add(t, "example.net. 60 MX 10 dead.example.net.", "example.net. 60 MX 20 mx.example.net.",
		"dead.example.net. 60 A 127.0.0.9", "mx.example.net. 60 A 127.0.0.2", "none.example. 60 MX 0 .")
	server := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort("127.0.0.2", strconv.Itoa(port)),
		Record: true})
	m := p.ended(t, p.submit(t, "ann@example.net", "bob@none.example"))
	ann, bob := m.Recipients[0], m.Recipients[1]
	if ann.Status != "sent" || len(server.Messages()) != 1 || server.Messages()[0].To[0] != "ann@example.net" {
		t.Errorf("%+v, %d messages arrived", ann, len(server.Messages()))
	}
	if bob.Status != "failed" || !strings.Contains(bob.Response, "5.1.10") {
		t.Errorf("%+v, want a null MX", bob)
	}
	if !strings.Contains(strings.Join(server.Commands(), "\n"), "EHLO out.example.com") {
		t.Errorf("greeted with %q", server.Commands())
	}
	apptest.Eventually(t, "the domain without mail is suppressed", func() bool {
		page, err := api.ListSuppressions.Do(t.Context(), p.Client, api.SuppressionQuery{Account: "shop"})
		return err == nil && len(page.Suppressions) == 1 && page.Suppressions[0].Email == "bob@none.example"
	})
}

// TestWhatDirectDeliveryNeedsInTheDNS: SPF has to cover each source address, whose PTR record has to lead to
// its name and back.
func TestWhatDirectDeliveryNeedsInTheDNS(t *testing.T) {
	t.Parallel()
	p, zone, _ := direct(t)
	records := func() map[string]api.DNSRecord {
		t.Helper()
		got, err := api.GetAccountDNS.Do(t.Context(), p.Client, api.AccountDNSQuery{}, "shop")
		if err != nil || got.Trouble != "" {
			t.Fatal(err, got.Trouble)
		}
		found := map[string]api.DNSRecord{}
		for _, r := range got.Records {
			found[r.Purpose] = r
		}
		return found
	}
	zone.Add(t, `example.com. 60 TXT "v=spf1 ip4:192.0.2.1 -all"`)
	got := records()
	if spf := got["spf"]; spf.Status != "differs" || !strings.Contains(spf.Advice, "ip4:127.0.0.3") {
		t.Errorf("%+v, want the advice to add the address", spf)
	}
	want := api.DNSRecord{Purpose: "source", Type: "PTR", Name: "3.0.0.127.in-addr.arpa",
		Value: "out.example.com", Status: "missing"}
	source := got["source"]
	if source.Message, source.Advice = "", ""; source.Status != want.Status || source.Name != want.Name ||
		source.Value != want.Value || source.Type != want.Type {
		t.Errorf("%+v, want %+v", source, want)
	}
	zone.Clear("example.com", 16)
	zone.Add(t, `example.com. 60 TXT "v=spf1 ip4:127.0.0.3 -all"`, "3.0.0.127.in-addr.arpa. 60 PTR out.example.com.",
		"out.example.com. 60 A 127.0.0.3")
	if got = records(); got["spf"].Status != "found" || got["source"].Status != "found" {
		t.Errorf("%+v, %+v, want both found", got["spf"], got["source"])
	}
}
