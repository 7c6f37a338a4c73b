package feedback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/provider"
)

// answer is one answer of a recorded exchange.
type answer struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body"`
}

func loadAnswers(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/mailgun-events/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// replay answers questions in the order in which they were recorded, and complains of any other.
type replay struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	answers []answer
	asked   []string // paths and queries
}

const mailgunKey = "key-of-the-events-api"

func newReplay(t *testing.T, answers []answer) *replay {
	t.Helper()
	r := &replay{t: t, answers: answers}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP gives the next answer.
func (r *replay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.URL.Path+"?"+q.URL.RawQuery)
	user, key, _ := q.BasicAuth()
	switch {
	case len(r.answers) == 0:
		r.t.Errorf("asked once more: %s", q.URL)
	case q.Method != http.MethodGet || q.URL.Path != r.answers[0].Path:
		r.t.Errorf("asked %s %s, recorded is %s", q.Method, q.URL.Path, r.answers[0].Path)
	case user != "api" || key != mailgunKey:
		r.t.Errorf("asked as %s with %q", user, key)
	default:
		a := r.answers[0]
		r.answers = r.answers[1:]
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		_, _ = w.Write(bytes.ReplaceAll(a.Body, []byte("https://api.mailgun.net"), []byte(r.URL)))
		return
	}
	w.WriteHeader(http.StatusTeapot)
}

func (r *replay) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// mailgunAt is the source that asks a server. Waits are noted, not waited.
func mailgunAt(t *testing.T, url string, waits *[]time.Duration) *Mailgun {
	t.Helper()
	m, err := NewMailgun(MailgunOptions{APIKey: mailgunKey, Domain: "example.com", BaseURL: url,
		Transport: &http.Transport{DisableKeepAlives: true},
		Wait:      func(_ context.Context, d time.Duration) { *waits = append(*waits, d) }})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The days of the recording.
var (
	recordedFrom = time.Date(2015, 11, 11, 0, 0, 0, 0, time.UTC)
	recordedTo   = time.Date(2015, 11, 13, 0, 0, 0, 0, time.UTC)
)

const (
	eventQuery = "&event=delivered+OR+failed+OR+rejected+OR+complained+OR+unsubscribed+OR+opened+OR+clicked"
	firstQuery = "ascending=yes&begin=1447200000&end=1447372800" + eventQuery + "&limit=300"
)

func TestMailgunEventsAsRecorded(t *testing.T) {
	var answers []answer
	loadAnswers(t, "exchange.json", &answers)
	r := newReplay(t, answers)
	var waits []time.Duration
	m := mailgunAt(t, r.URL, &waits)
	var kinds []provider.Kind
	var pages []Page
	for next, n := "", 0; n < 10; n++ {
		page, err := m.Events(t.Context(), recordedFrom, recordedTo, next)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page)
		for _, e := range page.Events {
			kinds = append(kinds, e.Kind)
		}
		if next = page.Next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]provider.Kind{provider.Accepted, provider.Delivered}, kinds); diff != "" {
		t.Error(diff)
	}
	if len(pages) != 3 || !pages[1].Until.Equal(time.UnixMicro(1447255764463081)) {
		t.Errorf("pages %+v", pages)
	}
	e := pages[1].Events[0]
	if e.Recipient != "james.vandyne@example.com" || e.MessageID != "<20151111152908.17071.97735@example.com>" ||
		e.Key != "li2QK7xxQz-SM_0uruVQnw@1447255764463" {
		t.Errorf("read %+v", e)
	}
	want := []string{"/v3/example.com/events?" + firstQuery}
	for _, a := range answers[1:] {
		want = append(want, a.Path+"?")
	}
	if diff := cmp.Diff(want, r.questions()); diff != "" {
		t.Error(diff)
	}
}

// The same event has the same key by webhook and by the events API: that is what absorbs one of them.
func TestMailgunEventsHaveTheKeysOfWebhooks(t *testing.T) {
	var answers []answer
	loadAnswers(t, "exchange.json", &answers)
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(answers[1].Body, &page); err != nil {
		t.Fatal(err)
	}
	body := `{"signature":{"timestamp":"1","token":"t","signature":"s"},"event-data":` + string(page.Items[0]) +
		`}`
	batch, err := provider.Read(provider.Mailgun, provider.Request{Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	var p Page
	p.add(page.Items[0])
	if diff := cmp.Diff(batch.Events, p.Events); diff != "" {
		t.Error(diff)
	}
}

func TestMailgunRefusals(t *testing.T) {
	var refusal answer
	loadAnswers(t, "refusal.json", &refusal)
	refusal.Path = "/v3/example.com/events"
	limit := func(after string) answer {
		a := answer{Path: refusal.Path, Status: http.StatusTooManyRequests, Header: http.Header{},
			Body: json.RawMessage(`{}`)}
		if after != "" {
			a.Header.Set("Retry-After", after)
		}
		return a
	}
	empty := answer{Path: refusal.Path, Status: 200, Body: json.RawMessage(`{"items":[],"paging":{}}`)}
	mixed := answer{Path: refusal.Path, Status: 200,
		Body: json.RawMessage(`{"items":[17,{"event":"delivered","timestamp":1447255764.1},{"event":"snored","id":"x","timestamp":1447255765,"recipient":"a@b.example"},{"id":"no event"}],"paging":{"next":"` +
			"https://api.mailgun.net" + `/v3/example.com/events/next"}}`)}
	for _, row := range []struct {
		name    string
		answers []answer
		waits   []time.Duration
		err     string // empty: it goes well
		page    Page
	}{
		{"the window has no inside", []answer{refusal}, nil, "status 400", Page{}},
		{"wrong key", []answer{{Path: refusal.Path, Status: 401, Body: json.RawMessage(`"Forbidden"`)}}, nil,
			"status 401", Page{}},
		{"not JSON", []answer{{Path: refusal.Path, Status: 200, Body: json.RawMessage(`<html>`)}}, nil,
			"read the answer", Page{}},
		{"a redirect, the key is for nobody else",
			[]answer{{Path: refusal.Path, Status: 302, Header: http.Header{"Location": {"/elsewhere"}},
				Body: json.RawMessage(`{}`)}}, nil, "status 302", Page{}},
		{"too many requests, then well", []answer{limit("7"), limit(""), empty}, []time.Duration{7 * time.Second,
			10 * time.Second}, "", Page{}},
		{"too many requests, for long", []answer{limit("1"), limit("86400"), limit("2"), limit("3")},
			[]time.Duration{time.Second, 2 * time.Minute, 2 * time.Second}, "too many requests", Page{}},
		{"some can't be read", []answer{mixed}, nil, "",
			Page{Ignored: 1, Broken: 2, Until: time.Unix(1447255765, 0).UTC()}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newReplay(t, row.answers)
			var waits []time.Duration
			page, err := mailgunAt(t, r.URL, &waits).Events(t.Context(), recordedFrom, recordedTo, "")
			if row.err == "" && err != nil || row.err != "" &&
				(err == nil || !strings.Contains(err.Error(), row.err)) {
				t.Errorf("%v, want %q", err, row.err)
			}
			if err != nil && strings.Contains(err.Error(), mailgunKey) {
				t.Error("the error shows the key")
			}
			page.Events, page.Next = nil, ""
			if diff := cmp.Diff(row.page, page); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(row.waits, waits); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The key goes with each question, so the address of a page may not lead anywhere else.
func TestMailgunPagesStayAtHome(t *testing.T) {
	m, err := NewMailgun(MailgunOptions{APIKey: mailgunKey, Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		"https://api.mailgun.net/v3/example.com/events/W3s=":             true,
		"https://api.mailgun.net.example.org/v3/example.com/events/W3s=": false,
		"http://api.mailgun.net/v3/example.com/events/W3s=":              false,
		"https://x@api.mailgun.net/v3/example.com/events/W3s=":           false,
		"https://api.mailgun.net/v3/other.example/events/W3s=":           false,
		"https://api.mailgun.net/v3/example.com/events/../../other":      false, "::": false,
		"/v3/example.com/events/W3s=": false,
	} {
		if _, err := m.address(recordedFrom, recordedTo, address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestNewMailgunRefusesWhatCannotWork(t *testing.T) {
	for _, o := range []MailgunOptions{
		{}, {APIKey: "k"}, {Domain: "example.com"}, {APIKey: "k", Domain: "../x"},
		{APIKey: "k", Domain: "example.com", BaseURL: "ftp://x"},
		{APIKey: "k", Domain: "example.com", BaseURL: "https://user:pw@x"}, {APIKey: "k", Domain: "example.com",
			BaseURL: "nonsense"},
	} {
		if _, err := NewMailgun(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestMailgunIsNoMetadataService(t *testing.T) {
	t.Parallel()
	m, err := NewMailgun(MailgunOptions{APIKey: mailgunKey, Domain: "example.com",
		BaseURL: "http://169.254.169.254"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Events(t.Context(), startOfTime, startOfTime.Add(time.Hour), ""); !errors.Is(err,
		dialing.ErrRefused) {
		t.Error(err)
	}
}
