package ui

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// counted is a world with mail of two accounts, and its counters.
func counted(t *testing.T) *world {
	t.Helper()
	w := setup(t)
	_, err := w.accounts.Create(t.Context(), api.Account{Account: "news", Email: "news@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
	w.relay.replies["gone@example.org"] = "550 5.1.1 No such user"
	to := func(address string) api.Addresses { return api.Addresses{{Address: address}} }
	for _, req := range []api.SubmitRequest{
		{To: to("ada@example.net"), Tags: []string{"spring"}},
		{To: to("gone@example.org"), Tags: []string{"spring"}},
		{To: to("bob@example.org"), Tags: []string{"<sale>"}, Account: "news", Lane: api.Bulk},
	} {
		w.deliver(w.submit(req))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.outbox.Run(ctx) }()
	for all := 0; all < 3; time.Sleep(5 * time.Millisecond) {
		got, err := w.outbox.Counts.Rates(ctx, api.RatesQuery{})
		w.must(err)
		if len(got.Rates) > 0 {
			all = got.Rates[0].Sent + got.Rates[0].Failed
		}
	}
	cancel()
	w.must(<-done)
	return w
}

// rows returns the rows of the table: name, sent and failed, and the time in front if there is one.
func (p page) rows() (rows [][]string) {
	cell := regexp.MustCompile(`data-label="(?:Time \(UTC\)|Name|Sent|Failed)">([^<]*)<`)
	for _, row := range strings.Split(p.body, "<tr>")[1:] {
		var cells []string
		for _, m := range cell.FindAllStringSubmatch(row, -1) {
			cells = append(cells, m[1])
		}
		if cells != nil {
			rows = append(rows, cells)
		}
	}
	return rows
}

func TestRatesAreShownAndFiltered(t *testing.T) {
	t.Parallel()
	w := counted(t)
	b := w.operator()
	for query, want := range map[string][][]string{
		"":                                {{"all", "2", "1"}},
		"?days=1&account=news":            {{"all", "1", "0"}},
		"?days=365&by=tag":                {{"&lt;sale&gt;", "1", "0"}, {"spring", "1", "1"}},
		"?by=tag&name=spring":             {{"spring", "1", "1"}},
		"?by=domain":                      {{"example.net", "1", "0"}, {"example.org", "1", "1"}},
		"?by=lane&account=news":           {{"bulk", "1", "0"}},
		"?by=lane&name=bulk&account=":     {{"bulk", "1", "0"}},
		"?by=tag&name=winter":             nil,
		"?account=nobody":                 nil,
		"?days=9999&step=&by=&name=&x=no": {{"all", "2", "1"}},
	} {
		p := b.get("/rates" + query)
		p.isSafe(t, "/rates"+query)
		if diff := cmp.Diff(want, p.rows()); diff != "" || p.status != http.StatusOK {
			t.Errorf("%s answered %d: %s", query, p.status, diff)
		}
		if want == nil {
			p.has(t, "No messages were sent in this period.")
		}
	}

	p := b.get("/rates?days=7&by=tag&name=spring&step=hour&account=default")
	p.has(t, `<option value="7" selected>`, `<option value="tag" selected>`, `<option value="hour" selected>`,
		`name="name" value="spring"`, `name="account" value="default"`, `href="/rates" aria-current="page"`)
	now := w.outbox.Queues.Now().UTC()
	rows := p.rows() // two if the hour ended meanwhile
	if len(rows) == 0 || !strings.Contains(rows[0][0], now.Add(-time.Minute).Format("2006-01-02")) {
		t.Errorf("by hour: %v, at %s", rows, now)
	}
}

func TestWrongRatesAreNamed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	for query, want := range map[string]string{
		"by=colour":               "<strong>by</strong> must be gateway, localAddress, lane, list, tag or domain",
		"name=spring":             "<strong>name</strong> requires by",
		"step=minute":             "<strong>step</strong> must be hour or day",
		"by=tag&step=hour":        "",
		"days=90&by=tag&step=day": "<strong>from</strong> is too early for all names by day",
	} {
		p := b.get("/rates?" + query)
		if bad := p.status == http.StatusBadRequest; bad != (want != "") {
			t.Errorf("%s answered %d", query, p.status)
		}
		p.has(t, want)
	}
}

// TestRatesAreOfTheWholeInstance: a token of one account sees its counters in the API, and not this page.
func TestRatesAreOfTheWholeInstance(t *testing.T) {
	t.Parallel()
	w := setup(t)
	made, err := w.access.Create(t.Context(), api.TokenRequest{Description: "news", Account: "news",
		Scopes: []api.Scope{api.ScopeAPI}}, time.Now())
	w.must(err)
	for name, p := range map[string]page{"the token": w.program(made.Token).get("/rates"),
		"its login": w.browser().post("/login", url.Values{"token": {made.Token}})} {
		if p.status != http.StatusForbidden {
			t.Errorf("%s: answered %d", name, p.status)
		}
		p.has(t, "This token is bound to the account news")
	}
	if p := w.browser().get("/rates"); p.status != http.StatusSeeOther || !strings.HasPrefix(p.to(), "/login") {
		t.Errorf("without a login: %d, to %s", p.status, p.to())
	}
}
