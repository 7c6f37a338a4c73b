package server

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
)

// TestLogIsAskedAsTheQuerySays checks each parameter of the list, and the query without parameters.
func TestLogIsAskedAsTheQuerySays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	long := strings.Repeat("ü", 1024)
	cases := []struct {
		query string
		want  api.LogQuery
	}{
		{"", api.LogQuery{}},
		{"?page=3&pageSize=1000", api.LogQuery{Page: 3, PageSize: 1000}},
		{"?cursor=c%2B1", api.LogQuery{Cursor: "c+1"}},
		{"?status=suppressed&account=acme&lane=bulk&tag=a%20b",
			api.LogQuery{Status: api.StatusSuppressed, Account: "acme", Lane: api.Bulk, Tag: "a b"}},
		{"?search=%3Cid%40x%3E%20%E2%82%AC", api.LogQuery{Search: "<id@x> €"}},
		{"?search=" + long, api.LogQuery{Search: long}},
		{"?createdAfter=2026-11-21T00:00:00Z&createdBefore=2026-11-21T09:00:00%2B02:00",
			api.LogQuery{CreatedAfter: at.Add(-6 * time.Hour), CreatedBefore: at.Add(time.Hour)}},
		{"?createdBefore=0001-01-01T00:00:00Z", api.LogQuery{CreatedBefore: time.Time{}.Add(1)}},
	}
	for _, tc := range cases {
		q := inputFrom[api.LogQuery](t, "/v1/messages"+tc.query)
		if diff := gocmp.Diff(&tc.want, q); diff != "" {
			t.Errorf("%.60s: the log is asked (-want +got):\n%s", tc.query, diff)
		}
	}
	if got := setup(t).do(t, http.MethodGet, "/v1/messages?status=suppressed", adminToken,
		""); got.status != 200 ||
		!strings.Contains(got.body, `"messages":[]`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// inputFrom reads the input of a route from the address of a request.
func inputFrom[I any](t *testing.T, target string) *I {
	t.Helper()
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, target, nil), httptest.NewRecorder())
	in := new(I)
	inputs := inputOf(reflect.TypeFor[I](), true)
	if err := inputs.bind(c, nil, smallBody, reflect.ValueOf(in).Elem()); err != nil {
		t.Fatalf("%.60s: %v", target, err)
	}
	return in
}

// TestAnUnknownMessageReadsTheSame: messages of other accounts must look like messages that never existed.
func TestAnUnknownMessageReadsTheSame(t *testing.T) {
	t.Parallel()
	w := setup(t)
	theirs := "/v1/messages/" + w.parts.queued(t, "other")
	read := func(path, token string) api.Problem {
		p := w.do(t, http.MethodGet, path, token, "").problem
		p.RequestID = ""
		return p
	}
	want := api.Problem{StatusCode: 404, Error: "Not Found",
		Message: "There is no such message in the email log", Code: "MessageNotFound"}
	for _, suffix := range []string{"", "/events", "/content", "/parts", "/parts/1"} {
		for path, token := range map[string]string{theirs: boundToken,
			"/v1/messages/none": boundToken, "/v1/messages/n%2Fone%20%E2%82%AC": adminToken} {
			if diff := gocmp.Diff(want, read(path+suffix, token)); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", path, suffix, diff)
			}
		}
	}
	w.parts.failWith(redis.ErrPoolExhausted)
	if got := read(theirs, adminToken); got.Code != "RedisAway" {
		t.Errorf("a Redis that is away reads as %+v", got)
	}
}

// TestAMessageIsTakenApart for as long as its content is stored, even as a dead letter.
func TestAMessageIsTakenApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.account(t, "acme")
	at := time.Now().Add(time.Hour)
	answer, err := w.parts.Outbox.Intake.Submit(t.Context(), api.SubmitRequest{Account: "acme", Subject: "Grüße",
		To: api.Addresses{{Address: "rcpt@example.net"}}, Text: "Hi", HTML: "<p>Hi", SendAt: &at,
		Attachments: []api.Attachment{{Filename: "a.html", ContentType: "text/html", Content: []byte("<b>")}}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/messages/" + answer.QueueID
	var got api.MessageParts
	listed := w.do(t, http.MethodGet, path+"/parts", adminToken, "")
	if err := json.Unmarshal([]byte(listed.body), &got); err != nil {
		t.Fatal(err)
	}
	want := []api.MessagePart{{Part: 1, ContentType: "text/plain", Size: 2, Text: "Hi"},
		{Part: 2, ContentType: "text/html", Size: 5, Text: "<p>Hi"},
		{Part: 3, ContentType: "text/html", Filename: "a.html", File: true, Size: 3}}
	if diff := gocmp.Diff(want, got.Parts); diff != "" {
		t.Errorf("its parts (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.Headers, api.HeaderField{Name: "Subject", Value: "Grüße",
		Raw: "Subject: =?utf-8?B?R3LDvMOfZQ==?="}) {
		t.Errorf("its header: %q", got.Headers)
	}
	file := w.do(t, http.MethodGet, path+"/parts/3", adminToken, "")
	if file.body != "<b>" || file.header.Get("Content-Type") != "application/octet-stream" ||
		file.header.Get("Content-Disposition") != "attachment; filename=a.html" ||
		file.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(file.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%v\n%s", file.header, file.body)
	}
	if got := w.do(t, http.MethodGet, path+"/parts/4", adminToken, ""); got.problem.Code != "PartNotFound" {
		t.Errorf("a part that is not there: %+v", got.problem)
	}
	if got := w.do(t, http.MethodGet, path+"/parts/0", adminToken, ""); got.status != http.StatusBadRequest {
		t.Errorf("part 0: %+v", got.problem)
	}
	if got := w.do(t, http.MethodGet, path+"/content", adminToken, ""); got.status != http.StatusOK ||
		len(got.body) == 0 || got.header.Get("Content-Type") != "message/rfc822" {
		t.Errorf("its content: %d %v", got.status, got.header)
	}
	dead := "/v1/messages/" + w.parts.dead(t, "acme") + "/parts"
	if got := w.do(t, http.MethodGet, dead, adminToken, ""); got.status != http.StatusOK {
		t.Errorf("a dead letter: %+v", got.problem)
	}
	sent := "/v1/messages/" + w.parts.delivered(t, "acme", "250 OK") + "/parts"
	if got := w.do(t, http.MethodGet, sent, adminToken, ""); got.problem.Code != "ContentNotKept" {
		t.Errorf("a message that was sent: %+v", got.problem)
	}
}

// TestContentOfASentMessage can be read by those who could read it before, and by no one else.
func TestContentOfASentMessage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.parts
	keeps, err := outbox.New(outbox.Parts{DB: p.db, Queue: queue.NewClient(p.db.Client(), queue.Options{}),
		Control: queue.NewControl(p.db.Client()), Router: p.relay, Accounts: p.Accounts, Gateways: p.Gateways},
		outbox.Options{KeepContent: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]string{}
	for _, account := range []string{"acme", "other"} {
		p.account(t, account)
		sent[account] = p.submitted(t, account, time.Now())
		keeps.Delivery.Deliver(t.Context(), queue.Task{ID: sent[account] + ".1"})
	}
	for _, part := range []string{"/content", "/parts", "/parts/1"} {
		for _, row := range []struct{ account, token, code string }{{"acme", boundToken, ""},
			{"acme", adminToken, ""}, {"other", adminToken, ""}, {"other", boundToken, "MessageNotFound"}} {
			got := w.do(t, http.MethodGet, "/v1/messages/"+sent[row.account]+part, row.token, "")
			if got.problem.Code != row.code || (got.status == http.StatusOK) != (row.code == "") {
				t.Errorf("%s of %s: %d %+v", part, row.account, got.status, got.problem)
			}
		}
		if got := w.do(t, http.MethodGet, "/v1/messages/"+sent["acme"]+part, "", ""); got.status !=
			http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", part, got.status)
		}
	}
	var m api.LoggedMessage
	if err := json.Unmarshal([]byte(w.do(t, http.MethodGet, "/v1/messages/"+sent["acme"], boundToken, "").body),
		&m); err != nil || m.ContentUntil == nil || time.Until(*m.ContentUntil) > time.Hour+time.Minute {
		t.Errorf("kept until %v, %v", m.ContentUntil, err)
	}
}

// TestReplayTakesCorrections in every form, and none.
func TestReplayTakesCorrections(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if _, err := w.parts.Gateways.Create(t.Context(), api.Gateway{Gateway: "spare", Name: "s", Host: "h",
		Port: 25}); err != nil {
		t.Fatal(err)
	}
	w.parts.account(t, "shop")
	spare := "spare"
	cases := []struct {
		name, body string
		want       api.Corrections // as the message shows them
	}{
		{"no body", "", api.Corrections{}},
		{"nothing corrected", `{}`, api.Corrections{}},
		{"one recipient", `{"to":"ann@example.net"}`, api.Corrections{To: api.Emails{"ann@example.net"}}},
		{"recipients", `{"to":["ann@example.net","jörg@exämple.net"]}`,
			api.Corrections{To: api.Emails{"ann@example.net", "jörg@xn--exmple-cua.net"}}},
		{"a gateway", `{"gateway":"spare"}`, api.Corrections{Gateway: &spare}},
		{"the account's own relays", `{"gateway":"","account":"shop"}`, api.Corrections{Account: "shop"}},
	}
	shown := func(id string) api.Corrections {
		t.Helper()
		m, err := w.parts.Outbox.Reader.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		c := api.Corrections{Gateway: m.Gateway, Account: m.Account}
		for _, r := range m.Recipients {
			if r.Status != "replaced" {
				c.To = append(c.To, r.Address)
			}
		}
		return c
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			id := w.parts.dead(t, "acme")
			if tc.want.Account != "" { // it had a gateway before
				if _, err := w.parts.Outbox.Operations.Replay(t.Context(), id,
					api.Corrections{Gateway: &spare}); err != nil {
					t.Fatal(err)
				}
				w.parts.deliver(t, id, "550 No")
			}
			if got := w.do(t, http.MethodPost, "/v1/dead-letters/"+id+"/replay", adminToken,
				tc.body); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			tc.want.Account = cmp.Or(tc.want.Account, "acme")
			if tc.want.To == nil {
				tc.want.To = api.Emails{"rcpt@example.net"}
			}
			if diff := gocmp.Diff(tc.want, shown(id)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	ids := []string{w.parts.dead(t, "other"), w.parts.dead(t, "other")}
	answer, err := api.ReplayDeadLetters.Do(t.Context(), w.client, api.ReplayRequest{
		Account: "other", Corrections: &api.Corrections{Gateway: &spare, Account: "shop"}})
	if err != nil || answer.Replayed != 2 {
		t.Errorf("ReplayAll = %+v, %v", answer, err)
	}
	for _, id := range ids {
		want := api.Corrections{To: api.Emails{"rcpt@example.net"}, Gateway: &spare, Account: "shop"}
		if diff := gocmp.Diff(want, shown(id)); diff != "" {
			t.Errorf("of many (-want +got):\n%s", diff)
		}
	}
}

// TestDeadLettersByReason are counted, listed and replayed by the reason of their explanation. A bound token
// sees its account's.
func TestDeadLettersByReason(t *testing.T) {
	t.Parallel()
	w := setup(t)
	full := w.parts.dead(t, "acme")
	other := w.parts.dead(t, "other")
	for id, line := range map[string]string{full: "552 5.2.2 Full", other: "550 5.7.23 SPF"} {
		if _, err := w.parts.Outbox.Operations.Replay(t.Context(), id, api.Corrections{}); err != nil {
			t.Fatal(err)
		}
		w.parts.deliver(t, id, line)
	}
	found, err := api.ListDeadLetterReasons.Do(t.Context(), w.client, api.DeadLetterFilter{})
	if err != nil || found.Total != 2 || len(found.Reasons) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	found, err = api.ListDeadLetterReasons.Do(t.Context(), w.client, api.DeadLetterFilter{Account: "acme"})
	if err != nil || len(found.Reasons) != 1 || found.Reasons[0].Reason != "mailboxFull" ||
		found.Reasons[0].QueueID != full || found.Reasons[0].Accounts[0] != "acme" {
		t.Errorf("of one account: %+v, %v", found, err)
	}
	page, err := api.ListDeadLetters.Do(t.Context(), w.client, api.DeadLetterQuery{Reason: "spf"})
	if err != nil || page.Total != 1 || page.DeadLetters[0].QueueID != other ||
		page.DeadLetters[0].Progress.Error.Explanation.Reason != "spf" {
		t.Errorf("listed: %+v, %v", page, err)
	}
	if _, err := api.ListDeadLetters.Do(t.Context(), w.client, api.DeadLetterQuery{Reason: "none"}); err == nil {
		t.Error("a reason that there is not is taken")
	}
	if _, err := api.ReplayDeadLetters.Do(t.Context(), w.client, api.ReplayRequest{Reason: "none"}); err == nil {
		t.Error("a replay for a reason that there is not is taken")
	}
	answer, err := api.ReplayDeadLetters.Do(t.Context(), w.client, api.ReplayRequest{Reason: "spf"})
	if err != nil || answer.Replayed != 1 {
		t.Errorf("replayed: %+v, %v", answer, err)
	}
	e, err := api.ExplainReply.Do(t.Context(), w.client, api.ReplyQuery{Reply: "550 5.2.2 x"})
	if err != nil || e.Reason != "mailboxFull" {
		t.Errorf("explained: %+v, %v", e, err)
	}
}

// TestAnOptionalBodyMayBeLeftOut in all the ways that clients have for it: one that streams announces no
// length, and curl -d ” a form.
func TestAnOptionalBodyMayBeLeftOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if _, err := w.parts.Gateways.Create(t.Context(), api.Gateway{Gateway: "spare", Name: "s", Host: "h",
		Port: 25}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, kind, body string
		length           int64
		status           int
	}{
		{"nothing", "", "", 0, 200},
		{"an empty form", "application/x-www-form-urlencoded", "", 0, 200},
		{"an empty stream", "", "", -1, 200},
		{"a stream", "application/json", `{"gateway":"spare"}`, -1, 200},
		{"a broken stream", "application/json", "{", -1, 400},
		{"nulls", "", `{"to":null,"gateway":null,"account":null}`, -1, 200},
		{"null", "", `null`, -1, 400},
		{"blanks", "", ` `, -1, 400},
	} {
		var body io.Reader
		if tc.length != 0 {
			body = struct{ io.Reader }{strings.NewReader(tc.body)}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+"/v1/dead-letters/"+
			w.parts.dead(t, "acme")+"/replay", body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = tc.length
		req.Header.Set("Authorization", "Bearer "+adminToken)
		if tc.kind != "" {
			req.Header.Set("Content-Type", tc.kind)
		}
		resp, err := w.http.Transport.(*checked).inner.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d", tc.name, resp.StatusCode, tc.status)
		}
	}
}

func TestStatsAreNarrowed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.account(t, "acme")
	for query, want := range map[string]api.CounterQuery{"": {}, "?account=acme": {Account: "acme"},
		"?lane=bulk":                       {Lane: api.Bulk},
		"?account=acme&lane=transactional": {Account: "acme", Lane: api.Transactional},
		"?seconds=86400":                   {Seconds: 86400}} {
		q := inputFrom[api.CounterQuery](t, "/v1/stats"+query)
		if diff := gocmp.Diff(&want, q); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		got := w.do(t, http.MethodGet, "/v1/stats"+query, adminToken, "")
		var stats api.Stats
		if err := json.Unmarshal([]byte(got.body), &stats); err != nil || got.status != 200 ||
			stats.Accounts != 2 || len(stats.Queues) != 4 || len(stats.Alerts) != 1 ||
			*stats.Connections != (api.Connections{Unset: 2}) || stats.RedisVersion != "7.2.4" ||
			stats.Go != runtime.Version() || stats.Arch != runtime.GOARCH {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// FuzzCorrections holds the reader of a replay's body against encoding/json.
func FuzzCorrections(f *testing.F) {
	for _, seed := range []string{`{}`, `{"to":"a@example.net"}`,
		`{"to":["a@example.net","\u0062@example.net"],"gateway":""}`, `{"to":[]}`, `{"to":{}}`,
		`{"to":null,"account":"x"}`, `{"to":"a@b","to":"c@d"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, faults, ok := read[api.Corrections](text)
		if !ok || len(faults) > 0 {
			return
		}
		var want api.Corrections
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("taken, but encoding/json says: %v", err)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("(-encoding/json +ours):\n%s", diff)
		}
	})
}
