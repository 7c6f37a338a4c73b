package apisend_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// order is the message in the fixtures of providers that take parts.
const order = "From: Shop <shop@example.com>\r\nTo: ann@example.net\r\nSubject: Your order 1042\r\n" +
	"Message-ID: <01JDXAMPLE0001@example.com>\r\nDate: Fri, 27 Nov 2026 09:00:00 +0000\r\n" +
	"List-Unsubscribe: <https://mail.example.com/unsubscribe?t=abc>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/alternative; boundary=B\r\n\r\n--B\r\nContent-Type: text/plain\r\n\r\n" +
	"Hello Ann, your order 1042 is on its way.\r\n--B\r\nContent-Type: text/html\r\n\r\n" +
	"<p>Hello Ann, your order <b>1042</b> is on its way.</p>\r\n--B--\r\n"

// partsFixture is one file of provider-send.
type partsFixture struct {
	Request struct {
		Method, Path string
		Headers      map[string]string
		Body         map[string]any
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    json.RawMessage
		Raw     string
	}
	Expect struct {
		Recipients []struct {
			To, Result, ProviderMessageID, Verdict, Scope string
			Elsewhere, Suppress                           bool
			RetryAfterSeconds                             int
		}
	}
}

// checkFixtures sends the message in each of a provider's fixtures, and compares the request and the result.
// plain removes from a body what differs each time.
func checkFixtures(t *testing.T, target apisend.Target, plain func(map[string]any)) {
	t.Helper()
	files, err := filepath.Glob("../../internal/testapi/testdata/provider-send/" + string(target.Type) +
		"/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if strings.HasPrefix(name, "batch-") || strings.HasPrefix(name, "versions-") {
			continue // several messages in one request
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f partsFixture
			raw, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(raw, &f)
			}
			if err != nil {
				t.Fatal(err)
			}
			target := target
			target.Sandbox = name == "sandbox"
			checkFixture(t, f, target, plain)
		})
	}
}

func checkFixture(t *testing.T, f partsFixture, target apisend.Target, plain func(map[string]any)) {
	t.Helper()
	var request *http.Request
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = r
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil {
			t.Error(err)
		}
		for name, value := range f.Response.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(f.Response.Status)
		_, _ = io.WriteString(w, string(f.Response.Body)+f.Response.Raw)
	}))
	defer server.Close()
	sender, err := apisend.New(apisend.Options{Now: func() time.Time { return time.Unix(1795770000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	m := mail("ann@example.net")
	m.Body, m.Labels.Tags = smtpsend.Bytes(order), []string{"orders"}
	target.URL = server.URL
	r, _ := sender.Send(t.Context(), target, m)
	if request.Method != f.Request.Method || request.RequestURI != f.Request.Path {
		t.Errorf("%s %s, want %s %s", request.Method, request.RequestURI, f.Request.Method, f.Request.Path)
	}
	for name, want := range f.Request.Headers {
		if have := request.Header.Get(name); have != want {
			t.Errorf("header %s is %q, want %q", name, have, want)
		}
	}
	plain(body)
	plain(f.Request.Body)
	if diff := cmp.Diff(f.Request.Body, body); diff != "" {
		t.Errorf("body (-want +have):\n%s", diff)
	}
	want, have := f.Expect.Recipients[0], r.Recipients[0]
	if e := have.Err; want.Result == "sent" {
		if e != nil || have.ProviderID != want.ProviderMessageID {
			t.Errorf("%+v, want sent with id %q", have, want.ProviderMessageID)
		}
	} else if e == nil || string(e.Verdict) != want.Verdict || string(e.Scope) != want.Scope ||
		e.Elsewhere() != want.Elsewhere || e.Suppress != want.Suppress ||
		e.RetryAfter != time.Duration(want.RetryAfterSeconds)*time.Second || e.InDoubt {
		t.Errorf("%+v, want %+v", e, want)
	}
}

// answered is a row of a table of answers.
type answered struct {
	status int
	body   string
	want   string // as says has it
	wait   time.Duration
}

// checkAnswers sends one message for each row to a server that answers so.
func checkAnswers(t *testing.T, target apisend.Target, rows []answered) {
	t.Helper()
	for _, row := range rows {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(row.status)
			_, _ = io.WriteString(w, row.body)
		}))
		sender, err := apisend.New(apisend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := mail("ann@example.net")
		m.Labels.ID = "" // without a key nothing is repeated
		target.URL = server.URL
		r, _ := sender.Send(t.Context(), target, m)
		if got := says(r.Recipients[0]); got != row.want {
			t.Errorf("%d %s: %s, want %s: %v", row.status, row.body, got, row.want, r.Recipients[0].Err)
		}
		if e := r.Recipients[0].Err; e != nil && e.RetryAfter != row.wait {
			t.Errorf("%d %s: waits %s, want %s", row.status, row.body, e.RetryAfter, row.wait)
		}
		sender.Close()
		server.Close()
	}
}

// TestOneBadAddressAmongMany: a recipient whom a provider refuses doesn't stop the others. Where the answer
// doesn't name it, it is found by halves.
func TestOneBadAddressAmongMany(t *testing.T) {
	t.Parallel()
	for kind, row := range map[api.GatewayType]struct {
		status, requests int
		refusal          string // %s: the place in its list
	}{
		api.GatewaySendGrid: {400, 2,
			`{"errors":[{"message":"Does not contain a valid address.","field":"personalizations.0.cc.6.email"}]}`},
		api.GatewayBrevo: {400, 11, `{"code":"invalid_parameter","message":"email is not valid in to"}`},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			requests, taken := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				raw, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				status, said := row.status, row.refusal
				if !strings.Contains(string(raw), "bad@example.net") {
					taken += strings.Count(string(raw), "@example.net")
					status, said = map[api.GatewayType]int{api.GatewaySendGrid: 202, api.GatewayBrevo: 201}[kind], ""
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, said)
			}))
			defer server.Close()
			sender, err := apisend.New(apisend.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer sender.Close()
			var to []string
			for _, c := range "abcdefghijklmnopqrstuvwxyz" {
				to = append(to, string(c)+"@example.net")
			}
			to[11] = "bad@example.net"
			m := mail(to...)
			m.Body = smtpsend.Bytes(strings.Replace(text, "To: Ann <ann@example.net>",
				"To: "+strings.Join(to[:5], ", ")+"\r\nCc: "+strings.Join(to[5:], ",\r\n "), 1))
			r, err := sender.Send(t.Context(), target(kind, server.URL), m)
			if err != nil {
				t.Fatal(err)
			}
			for i, one := range r.Recipients {
				want := "sent"
				if i == 11 {
					want = "policy recipient"
				}
				if got := says(one); got != want {
					t.Errorf("%s: %s, want %s: %v", one.Address, got, want, one.Err)
				}
			}
			if taken != 25 || requests > row.requests {
				t.Errorf("%d recipients in %d requests, want 25 in at most %d", taken, requests, row.requests)
			}
		})
	}
}
