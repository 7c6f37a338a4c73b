package newsletter

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// zone answers as a DNS that has some TXT records.
type zone struct {
	records map[string][]string
	away    bool
}

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	found := z.records[strings.TrimSuffix(name, ".")]
	if len(found) == 0 {
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	}
	return slices.Clone(found), nil
}

func (z zone) LookupNS(context.Context, string) ([]*net.NS, error) {
	if z.away {
		return nil, errors.New("no route")
	}
	return nil, nil
}

func prechecked(z zone, web *http.Client) *precheck {
	return &precheck{campaigns: &Campaigns{Parts: Parts{DNS: z, Web: web}}, one: &campaign{}}
}

func codes(all []api.CampaignFault) []string {
	list := []string{}
	for _, f := range all {
		list = append(list, f.Code)
	}
	return list
}

// TestWhatReceiversWantOfSenders: a signature of From's domain whose key is published, and one DMARC record.
func TestWhatReceiversWantOfSenders(t *testing.T) {
	t.Parallel()
	const key = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	const signed = "DKIM-Signature: v=1; a=ed25519-sha256; d=example.com;\r\n s=s1; b=abc=\r\nSubject: x\r\n\r\nx"
	good := map[string][]string{"s1._domainkey.example.com": {key}, "_dmarc.example.com": {"v=DMARC1; p=none"}}
	with := func(name string, records ...string) map[string][]string {
		all := map[string][]string{name: records}
		for other, has := range good {
			if other != name {
				all[other] = has
			}
		}
		return all
	}
	for _, c := range []struct {
		name, from, raw string
		z               zone
		want            []string
	}{
		{"all is well", "a@example.com", signed, zone{records: good}, []string{}},
		{"of a subdomain", "a@news.example.com", signed, zone{records: good}, []string{}},
		{"not signed", "a@example.com", "Subject: x\r\n\r\nx", zone{records: good}, []string{"NoDKIM"}},
		{"signed by another", "a@example.org", signed, zone{records: with("_dmarc.example.org",
			"v=DMARC1; p=none")},
			[]string{"NoDKIM"}},
		{"no key", "a@example.com", signed, zone{records: with("s1._domainkey.example.com")}, []string{"NoDKIM"}},
		{"a wrong key", "a@example.com", signed, zone{records: with("s1._domainkey.example.com", "v=DKIM1; p=?")},
			[]string{"NoDKIM"}},
		{"no DMARC", "a@example.com", signed, zone{records: with("_dmarc.example.com")}, []string{"NoDMARC"}},
		{"two DMARC", "a@example.com", signed, zone{records: with("_dmarc.example.com", "v=DMARC1; p=none",
			"v=DMARC1; p=reject")}, []string{"NoDMARC"}},
		{"no DNS", "a@example.com", signed, zone{away: true}, []string{"DNSAway"}},
	} {
		e := prechecked(c.z, nil)
		e.askDNS(t.Context(), c.from, []byte(c.raw))
		if diff := cmp.Diff(c.want, codes(e.result.Warnings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s%v", c.name, diff, e.result.Warnings)
		}
	}
}

func TestLinksAreAsked(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		case r.URL.Path == "/moved":
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	e := prechecked(zone{}, server.Client())
	e.askLinks(t.Context(), linksOf(`<a href="`+server.URL+`/gone">x</a> <a href="`+server.URL+`/get">x</a>
		<a href="mailto:a@example.com">x</a> <img src="`+closed.URL+`/i.png"> <a href="`+server.URL+`/moved">y</a>
		<a href="https://mail.example.com/unsubscribe?t=x">leave</a> <a href="`+server.URL+`/gone">x</a>`,
		"https://mail.example.com"))
	want := []api.CampaignFault{{Code: "Link", Message: server.URL + "/gone answers 410"},
		{Code: "Link", Message: closed.URL + "/i.png does not answer"}}
	if diff := cmp.Diff(want, e.result.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGatewaysThatCannotCarryTheMail: a warning names each, and it is a fault if none can.
func TestGatewaysThatCannotCarryTheMail(t *testing.T) {
	t.Parallel()
	viaAPI := func(kind api.GatewayType) gateways.Relay {
		return gateways.Relay{Type: kind, API: apisend.Target{Type: kind, ID: string(kind)}}
	}
	raw := []byte("From: a@example.com\r\nTo: b@example.com\r\nSubject: Hi\r\nX-Note: =?utf-8?q?=C3=BC?=\r\n\r\nHi\r\n")
	for name, row := range map[string]struct {
		relays           []gateways.Relay
		faults, warnings int
	}{
		"none can": {[]gateways.Relay{viaAPI(api.GatewayBrevo)}, 1, 0},
		"one can":  {[]gateways.Relay{viaAPI(api.GatewayBrevo), viaAPI(api.GatewaySendGrid)}, 0, 1},
		"a relay":  {[]gateways.Relay{{}}, 0, 0},
		"no relay": {nil, 0, 0},
	} {
		e := prechecked(zone{}, nil)
		e.carried(row.relays, &sample{raw: raw})
		if len(e.result.Faults) != row.faults || len(e.result.Warnings) != row.warnings {
			t.Errorf("%s: %+v", name, e.result)
		}
	}
}

// TestHowLongItTakes: with rates, limits of a day, and a warm-up that grows.
func TestHowLongItTakes(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	always := func(r limits.Rate) func(int) (float64, float64) {
		return func(int) (float64, float64) { return paceOf(r).get() }
	}
	for _, c := range []struct {
		name   string
		people int
		pace   func(day int) (float64, float64)
		want   time.Duration
		ok     bool
	}{
		{"no limit", 1e6, always(limits.Rate{}), 0, true},
		{"a rate", 100, always(limits.Rate{PerSecond: 10}), 10 * time.Second, true},
		{"by the minute", 100, always(limits.Rate{PerMinute: 10}), 10 * time.Minute, true},
		{"by the day", 2500, always(limits.Rate{PerDay: 1000}), 2 * day, true},
		{"a slow rate", 86_400 * 3, always(limits.Rate{PerSecond: 1}), 3 * day, true},
		{"it grows", 700, func(d int) (float64, float64) {
			return paceOf(limits.Rate{PerDay: 100 * float64(
				d+1)}).get()
		},
			3 * day, true},
		{"no relay", 1, func(int) (float64, float64) { return 0, 0 }, 0, false},
		{"nobody", 0, always(limits.Rate{}), 0, true},
	} {
		if got, ok := duration(c.people, c.pace); got != c.want || ok != c.ok {
			t.Errorf("%s: %s, %v; want %s", c.name, got, ok, c.want)
		}
	}
	two := paceOf(limits.Rate{PerSecond: 5}).plus(paceOf(limits.Rate{PerSecond: 3, PerDay: 10}))
	if s, d := two.least(paceOf(limits.Rate{PerDay: 1e9})).get(); s != 8 || d != 5*secondsOfDay+10 {
		t.Errorf("two ways: %v a second, %v a day", s, d)
	}
}
