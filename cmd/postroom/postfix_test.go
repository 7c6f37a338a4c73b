package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// TestPostfixPipesMailBack has a real Postfix hand a mail to `postroom bounce`. While Postroom is away,
// Postfix keeps the mail.
func TestPostfixPipesMailBack(t *testing.T) {
	const to = "bounces+Token@bounce.example.com"
	requests := make(chan string, 10)
	away := make(chan bool, 1)
	away <- true
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-away:
			w.WriteHeader(http.StatusServiceUnavailable)
			requests <- "away"
		default:
			fmt.Fprint(w, `{"kind":"bounced","result":"taken","recipients":[]}`)
			requests <- r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization") + "\n" + string(body)
		}
	}))
	t.Cleanup(service.Close)
	postfix := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{
		Transports: map[string]string{"bounce.example.com": "program"},
		Pipe: publicProgram(t) + " bounce --quiet --url " + service.URL +
			" --token secret --to ${original_recipient}",
	})
	mail := "From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered Mail\r\n\r\nno such user\r\n"
	if err := smtp.SendMail(fmt.Sprintf("127.0.0.1:%d", postfix.Port), nil, "", []string{to},
		[]byte(mail)); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		for late := time.Now().Add(patience); time.Now().Before(late); {
			select {
			case r := <-requests:
				return r
			case <-time.After(time.Second):
				postfix.Flush(t) // Postfix skips what it is still deferring
			}
		}
		t.Fatalf("postroom did not come\n%s", postfix.Log())
		return ""
	}
	if got := next(); got != "away" {
		t.Fatalf("first came %q", got)
	}
	waitFor(t, postfix, "status=deferred")
	postfix.Flush(t)
	got := next()
	if !strings.HasPrefix(got,
		"POST /v1/bounces?envelopeTo=bounces%2BToken%40bounce.example.com Bearer secret\n") ||
		!strings.Contains(got, "Subject: Undelivered Mail\n") {
		t.Errorf("then came %q", got)
	}
	waitFor(t, postfix, "status=sent")
}

// waitFor waits until Postfix has logged something.
func waitFor(t *testing.T, postfix *testsmtp.Postfix, text string) {
	t.Helper()
	for late := time.Now().Add(patience); !strings.Contains(postfix.Log(), text); time.Sleep(
		20 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("no %q in the log\n%s", text, postfix.Log())
		}
	}
}

// publicProgram is a copy of postroom that other users may run.
func publicProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("postroom")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "postroom-program-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Postfix runs it as another user
		t.Fatal(err)
	}
	public := filepath.Join(dir, "postroom")
	if err := os.WriteFile(public, program, 0o755); err != nil { //nolint:gosec // likewise
		t.Fatal(err)
	}
	return public
}
