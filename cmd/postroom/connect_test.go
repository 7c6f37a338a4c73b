package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
)

func TestLocalURL(t *testing.T) {
	for _, tc := range []struct{ listen, want string }{
		{"127.0.0.1:3000", "http://127.0.0.1:3000"},
		{":3000", "http://localhost:3000"},
		{"0.0.0.0:80", "http://localhost:80"},
		{"[::]:3000", "http://localhost:3000"},
		{"[::1]:3000", "http://[::1]:3000"},
		{"mail.example.com:443", "http://mail.example.com:443"},
		{"127.0.0.1:0", ""},
	} {
		got, err := localURL(&config.Config{HTTP: config.HTTP{Listen: tc.listen}}, newTransport())
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: got %q, %v; want %q", tc.listen, got, err, tc.want)
		}
	}
}

// TestWorkersAreReachedAtTheirMonitor: where a worker listens at all, it is there.
func TestWorkersAreReachedAtTheirMonitor(t *testing.T) {
	c := &config.Config{Role: "worker", HTTP: config.HTTP{Listen: ":3000"}, Monitor: config.Monitor{
		Listen: ":3001"}}
	if got, err := localURL(c, newTransport()); err != nil || got != "http://localhost:3001" {
		t.Errorf("a worker: %q, %v", got, err)
	}
	c.Role = "api"
	if got, err := localURL(c, newTransport()); err != nil || got != "http://localhost:3000" {
		t.Errorf("an API: %q, %v", got, err)
	}
}

// TestOwnCertificateIsTrusted: on its own machine a Postroom with TLS is reached by an address that stands in
// no certificate, and its certificate may be signed by nobody; it is trusted because the settings name it,
// and no other is.
func TestOwnCertificateIsTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Ready{Ready: true})
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the handshake that shall fail
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "cert.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(server.URL, "https://")
	own := &config.Config{HTTP: config.HTTP{Listen: address, TLS: config.TLS{Cert: file}}}
	client, err := reachFlags{}.clientWith(own, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := api.GetReady.Do(t.Context(), client); err != nil || !r.Ready {
		t.Errorf("got %v, %v", r, err)
	}
	stranger, err := reachFlags{URL: server.URL}.clientWith(own, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.GetReady.Do(t.Context(), stranger); err == nil ||
		!strings.Contains(explain(err), "certificate") {
		t.Errorf("an address given by hand is verified as any other, got %v", err)
	}
}

// TestFailuresSayWhatToDo goes through what can come back instead of an answer.
func TestFailuresSayWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		want   []string
	}{
		{"a token that is not known", problem(401, api.Problem{Message: "Bad token"}),
			[]string{"Bad token (401)", "--token"}},
		{"a scope that is missing", problem(403, api.Problem{Message: "Missing scope outbox"}),
			[]string{"(403)", "postroom token add"}},
		{"wrong fields", problem(400, api.Problem{Message: "Invalid input", Fields: []api.ProblemField{
			{Key: "to", Message: "at least one"}}}), []string{"to: at least one", "(400)"}},
		{"a Redis that is away", problem(503, api.Problem{Message: "Redis does not answer", RequestID: "r1"}),
			[]string{"try again in 5s", "request_id r1"}},
		{"something else", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>", http.StatusBadGateway)
		}, []string{"not one of Postroom's (502)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			code, _, text := command(t, "outbox", "--url", server.URL, "--token", "x")
			if code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
			if strings.Count(text, "\n") != 1 {
				t.Errorf("a failure is one line, got %q", text)
			}
		})
	}
}

func problem(status int, p api.Problem) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		p.StatusCode, p.Error = status, http.StatusText(status)
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(p)
	}
}

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want int
	}{
		{"help", []string{"--help"}, exitDone},
		{"version", []string{"version"}, exitDone},
		{"an unknown command", []string{"fly"}, exitUsage},
		{"an unknown flag", []string{"send", "--fly"}, exitUsage},
		{"a setting that does not exist", []string{"config", "--set", "fly=high"}, exitUsage},
		{"nobody to send to", []string{"send", "--text", "x", "--url", "http://127.0.0.1:1", "--token", "x"},
			exitUsage},
		{"nothing listens", []string{"outbox", "--url", "http://127.0.0.1:1", "--token", "x"}, exitFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if code, _, text := command(t, tc.args...); code != tc.want {
				t.Errorf("got %d, want %d: %s", code, tc.want, text)
			}
		})
	}
}

// TestInterrupted: whoever presses Ctrl-C while a message is followed gets the code that shells give for it.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_ = json.NewEncoder(w).Encode(api.SubmitAnswer{QueueID: "1"})
			return
		}
		cancel()
		_ = json.NewEncoder(w).Encode(api.OutboxMessage{QueueID: "1", State: api.Waiting})
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	con := &console{in: strings.NewReader(""), out: &out, err: &errs, inTTY: true}
	began := time.Now()
	code := run(ctx, []string{"send", "--to", "ada@example.net", "--wait", "--url", server.URL, "--token", "x"},
		con)
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") ||
		time.Since(began) > 30*time.Second {
		t.Errorf("got %d after %s: %s", code, time.Since(began), errs.String())
	}
}

// command runs a command line in this process, with nothing on standard input.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &console{in: strings.NewReader(""), out: &o, err: &e, inTTY: true})
	return code, o.String(), e.String()
}
