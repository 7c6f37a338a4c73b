package apiadmin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/provider"
)

// recording is one answer of a recorded exchange.
type recording struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/mailgun-events/" + file)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replay answers questions in the order in which they were recorded, and notes them.
func replay(t *testing.T, answers ...recording) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path+"?"+r.URL.RawQuery)
		if _, key, _ := r.BasicAuth(); len(answers) == 0 || key != "secret-key" {
			t.Errorf("asked %s with key %q", r.URL, key)
			return
		}
		a := answers[0]
		answers = answers[1:]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		_, _ = w.Write(bytes.ReplaceAll(a.Body, []byte("https://api.mailgun.net"), []byte(server.URL)))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestMailgunEventsAsRecorded(t *testing.T) {
	var answers []recording
	load(t, "exchange.json", &answers)
	d := setup(t, "mailgun")
	url, asked := replay(t, answers...)
	d.target.URL, d.target.Domain = url, "example.com"
	from := time.Date(2015, 11, 11, 0, 0, 0, 0, time.UTC)
	got, err := d.all(from, from.AddDate(0, 0, 2))
	if err != nil || len(got.Events) != 2 || got.Broken > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	e := got.Events[1]
	if e.Kind != provider.Delivered || e.Recipient != "james.vandyne@example.com" ||
		e.Key != "li2QK7xxQz-SM_0uruVQnw@1447255764463" {
		t.Errorf("%+v", e)
	}
	want := []string{"/v3/example.com/events?ascending=yes&begin=1447200000&end=1447372800&event=delivered+OR+" +
		"failed+OR+rejected+OR+complained+OR+unsubscribed+OR+opened+OR+clicked&limit=300"}
	for _, a := range answers[1:] {
		want = append(want, a.Path+"?")
	}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Error(diff)
	}
}

func TestMailgunRefusesAsRecorded(t *testing.T) {
	var refusal recording
	load(t, "refusal.json", &refusal)
	d := setup(t, "mailgun")
	d.target.URL, _ = replay(t, refusal)
	if _, err := d.all(now, now); answered(err) != http.StatusBadRequest {
		t.Error(err)
	}
}
