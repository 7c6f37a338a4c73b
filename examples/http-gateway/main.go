// Command http-gateway is an endpoint for gateways with the type http. It checks that a request comes from
// Postroom, gives the message to a program such as sendmail once for each recipient, and answers for each.
// Replace the program with your provider's API.
//
//	POSTROOM_GATEWAY_SECRET=whsec_… go run ./examples/http-gateway 127.0.0.1:8080 /usr/sbin/sendmail
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	signed, err := standardwebhooks.NewWebhook(os.Getenv("POSTROOM_GATEWAY_SECRET"))
	if err != nil || len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: POSTROOM_GATEWAY_SECRET=whsec_… http-gateway HOST:PORT PROGRAM")
		os.Exit(2)
	}
	deliver := func(m mail, to string) error {
		program := exec.Command(os.Args[2], "-i", "-f", m.From, "--", to)
		program.Stdin = bytes.NewReader(m.Raw)
		return program.Run()
	}
	server := &http.Server{Addr: os.Args[1], Handler: &endpoint{signed: signed, deliver: deliver},
		ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// mail is as much of a request as this program needs.
type mail struct {
	From  string   `json:"from"`
	To    []string `json:"to"`
	Raw   []byte   `json:"raw"`
	Check bool     `json:"check"`
}

type result struct {
	To      string `json:"to"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// endpoint remembers its answers in memory; with a database, keep them there, so that they survive a restart.
type endpoint struct {
	signed  *standardwebhooks.Webhook
	deliver func(m mail, to string) error
	answers sync.Map // by idempotency key: func() []result, which delivers once
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil || e.signed.Verify(body, r.Header) != nil { // also if it is older than five minutes
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	var m mail
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "not JSON", http.StatusUnprocessableEntity)
		return
	}
	results := []result{}
	if !m.Check { // a check has no recipients, and nothing is sent
		key := r.Header.Get("Idempotency-Key")
		answer, repeated := e.answers.LoadOrStore(key, sync.OnceValue(func() []result { return e.send(m) }))
		if !repeated {
			time.AfterFunc(24*time.Hour, func() { e.answers.Delete(key) })
		}
		results = answer.(func() []result)() //nolint:forcetypeassert // nothing else is stored
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
}

func (e *endpoint) send(m mail) []result {
	results := []result{}
	for _, to := range m.To {
		one := result{To: to, Status: "accepted"}
		if err := e.deliver(m, to); err != nil {
			one.Status, one.Message = "later", err.Error()
		}
		results = append(results, one)
	}
	return results
}
