package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/server/peers"
)

// unfinished sends a POST with a declared length, and a shorter body.
func unfinished(t *testing.T, w *world, path, token string, length int, body string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, token, length, body)
	return conn
}

// statusOf reads the status of an answer.
func statusOf(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestUnknownProviderIsAnsweredUnread: its body never comes.
func TestUnknownProviderIsAnsweredUnread(t *testing.T) {
	t.Parallel()
	w := setup(t)
	conn := unfinished(t, w, "/webhooks/provider/pigeons", "x", provider.MaxBody, "")
	if got := statusOf(t, conn); got != 404 {
		t.Errorf("got %d, want 404", got)
	}
}

// TestStalledUnauthenticatedClientsLeaveSubmitsAlone: bodies that were declared large and do not come hold no
// memory of submits, little of their own, and only a few may be under way.
func TestStalledUnauthenticatedClientsLeaveSubmitsAlone(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage, o.BodyMemory = 2<<20, 1 })
	before := w.bodies.public.Free()
	for range publicOfSender {
		unfinished(t, w, "/webhooks/provider", "x", provider.MaxBody, strings.Repeat("x", freeBytes+1))
	}
	until(t, "they are under way", func() bool {
		return before-w.bodies.public.Free() >= publicOfSender*memoryStep
	})
	if got := statusOf(t, unfinished(t, w, "/webhooks/provider", "x", 1, "")); got != 503 {
		t.Errorf("one more: %d, want 503", got)
	}
	if held := before - w.bodies.public.Free(); held > publicOfSender*(4*freeBytes+memoryStep) {
		t.Errorf("%d bytes are held for bodies that did not come", held)
	}
	w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	large := api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: strings.Repeat("x", 2<<20)}
	if _, err := api.Submit.Do(t.Context(), w.client, large); err != nil {
		t.Errorf("a large submit: %v", err)
	}
}

// TestANeighbourCannotTakeAllMemory: an account whose bodies stall leaves as much as it holds.
func TestANeighbourCannotTakeAllMemory(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage, o.BodyMemory = 2<<20, 16<<20 })
	w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	neighbour, all := w.parts.secret(boundToken), w.bodies.submits.Free()
	half := `{"text":"` + strings.Repeat("x", 1<<20)
	for range 20 {
		conn := unfinished(t, w, "/v1/account/acme/submit", neighbour, 2<<20, "")
		go io.WriteString(conn, half)
	}
	until(t, "it holds all that it may", func() bool { return w.bodies.submits.Free() < all*6/10 })
	large := api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: strings.Repeat("x", 2<<20)}
	if _, err := api.Submit.Do(t.Context(), w.client, large); err != nil {
		t.Errorf("the submit of another: %v", err)
	}
	if left := w.bodies.submits.Free(); left < all/2-memoryStep {
		t.Errorf("%d of %d bytes are left", left, all)
	}
}

// TestSlowSendersAreCut: a client that sends nothing within the time of a window gets 408.
func TestSlowSendersAreCut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bodies.pace = peers.Pace{Bytes: 1 << 20, Every: 50 * time.Millisecond}
	half := `{"text":"` + strings.Repeat("x", 64<<10)
	conn := unfinished(t, w, "/v1/submit", w.parts.secret(adminToken), 2<<20, half)
	if got := statusOf(t, conn); got != http.StatusRequestTimeout {
		t.Errorf("got %d, want 408", got)
	}
}

// TestSilentConnectionsMakeRoom: however many are open, a client that sends a token gets in and stays.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.Connections = 4 })
	if got := w.do(t, "GET", "/v1/outbox", adminToken, ""); got.status != 200 {
		t.Fatalf("got %d", got.status)
	}
	for range 20 {
		unfinished(t, w, "/v1/submit", "wrong", 100, "")
	}
	if got := w.do(t, "GET", "/v1/outbox", adminToken, ""); got.status != 200 {
		t.Errorf("got %d beside silent connections", got.status)
	}
	if open := w.limiter.Open(); open > 4 {
		t.Errorf("%d are open", open)
	}
}

// TestWrongLinksAreLimited, and a valid one is accepted anyway.
func TestWrongLinksAreLimited(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	h.proofs.Proofs = peers.NewProofs(2)
	for i, want := range []int{404, 404, 429, 429} {
		resp, _ := h.visit(t, http.MethodGet, "/c/wrong")
		if resp.StatusCode != want || want == 429 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("link %d: %d, want %d", i, resp.StatusCode, want)
		}
	}
	if resp, _ := h.visit(t, http.MethodGet, "/unsubscribe?t=wrong"); resp.StatusCode != 429 {
		t.Errorf("an unsubscribe: %d", resp.StatusCode)
	}
	click := h.token(t, signedtoken.Click, "https://shop.example.com/")
	if resp, _ := h.visit(t, http.MethodGet, "/c/"+click); resp.StatusCode != http.StatusFound {
		t.Errorf("a right link: %d", resp.StatusCode)
	}
}
