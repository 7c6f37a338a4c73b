package ui

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
)

func TestDNSOfAnAccountIsShownAndChecked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text, err := dkim.Generate("ed25519", 0)
	w.must(err)
	_, err = w.accounts.Create(t.Context(), api.Account{Account: "shop", Email: "orders@Shop.example.com",
		SMTP: &api.SMTPServer{Preset: "sendgrid"},
		DKIM: &api.DKIM{Domain: "shop.example.com", Selector: "s1", PrivateKey: text}})
	w.must(err)
	key, err := dkim.Parse(text)
	w.must(err)
	record, err := dkim.Record(key)
	w.must(err)
	b, at := w.operator(), "/accounts/shop/dns"
	p := b.get(at)
	p.isSafe(t, at)
	p.has(t, "not checked", "v=spf1 include:sendgrid.net ~all", "s1._domainkey.shop.example.com", record,
		"_dmarc.shop.example.com", "GET /v1/account/shop/dns · postroom account dns shop")
	p.lacks(t, "PRIVATE KEY")
	b.get(at+"?check=1").has(t, "can't be asked from here: no network", "Nothing was checked")

	w.zone = zone{}
	p = b.get(at + "?check=1")
	p.has(t, "Checked", `<span class="chip failed">missing`, "has no DMARC record")
	if n := strings.Count(p.body, ">missing"); n != 4 {
		t.Errorf("%d records are missing, want 4", n)
	}
	w.zone["shop.example.com"] = []string{"v=spf1 ip4:192.0.2.1 ~all"}
	w.zone["s1._domainkey.shop.example.com"] = []string{"v=DKIM1; k=ed25519; p=AAAA" + evilText}
	w.zone["_dmarc.shop.example.com"] = []string{"v=DMARC1; p=reject"}
	p = b.get(at + "?check=1")
	p.isSafe(t, at)
	p.has(t, "differs", "add include:sendgrid.net before the last term", "publishes another key",
		"10 mx.example.com")
	if n := strings.Count(p.body, ">found<"); n != 2 {
		t.Errorf("%d records were found, want 2: DMARC and MX", n)
	}
	w.zone["shop.example.com"] = []string{"v=spf1 include:sendgrid.net -all"}
	w.zone["s1._domainkey.shop.example.com"] = []string{record}
	p = b.get(at + "?check=1")
	if n := strings.Count(p.body, ">found<"); n != 4 {
		t.Errorf("%d records were found, want all 4:\n%s", n, p.body)
	}

	w.dns.BounceDomain = "bounces.example.com"
	b.get(at).has(t, "MX of return paths", "10 mail.example.com")
	b.get("/accounts/default/dns").has(t, "v=spf1 a:relay.test ~all", "doesn't sign")
	bea := w.person("bea", api.RoleOperator, "shop")
	if p := bea.get("/accounts/default/dns"); p.status != http.StatusForbidden {
		t.Errorf("records of another account: %d", p.status)
	}
}
