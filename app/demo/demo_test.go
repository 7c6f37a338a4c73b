package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/smtp"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is the demo's output so far.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced with every line
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) look() (text string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

// wait waits until the output matches pattern, and returns the match of its last group.
func (s *screen) wait(t *testing.T, pattern string) string {
	t.Helper()
	p, late := regexp.MustCompile(pattern), time.After(5*time.Minute)
	for {
		text, changed := s.look()
		if m := p.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("nothing like %q was told:\n%s", pattern, text)
		}
	}
}

// TestDemo runs the tour, repeats its first command, and ends the demo as users do.
func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // only held
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newScreen()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Listen: taken.Addr().String(), Out: out, Program: "bin/postroom"}) }()

	out.wait(t, `Ctrl-C ends the demo`)
	text, _ := out.look()
	for _, want := range []string{
		"messageSent to ada@example.net: 250", "idempotency status HIT",
		"messageDeliveryError, attempt 1 of 10: 451", "messageSent to busy@example.net",
		"messageFailed to nobody@example.net: 550", "messageSent to grace@example.net",
		"messageCancelled to ada@example.net",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tour does not tell of %q", want)
		}
	}
	if strings.Contains(text, taken.Addr().String()) {
		t.Error("the demo listens at an address that was taken")
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > 130 && !strings.Contains(line, "webhook  ") {
			t.Errorf("a line is too long for a terminal: %s", line)
		}
	}
	if _, last, _ := strings.Cut(text, "Now look around"); !strings.Contains(last, "/demo?t=") ||
		!strings.Contains(last, "bin/postroom outbox") || strings.Contains(last, "webhook") {
		t.Errorf("the last screen is %s", last)
	}
	typeAlong(t, out)
	lookIntoInbox(t, out.wait(t, `which logs in once:\n\s+(\S+)`))
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended by Ctrl-C: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the demo does not end")
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "postroom-demo-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// lookIntoInbox opens the link of the demo and reads the mail that was caught.
func lookIntoInbox(t *testing.T, link string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport}
	get := func(url string) string {
		resp, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // only read from
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v: %s", url, resp.StatusCode, err, body)
		}
		return string(body)
	}
	inbox := get(link)
	for _, want := range []string{"Welcome", "Your invoice", "Your reminder"} {
		if !strings.Contains(inbox, want) {
			t.Errorf("the inbox lacks %q: %s", want, inbox)
		}
	}
	mail := regexp.MustCompile(`href="(/inbox/\d+)">Your invoice`).FindStringSubmatch(inbox)
	if mail == nil {
		t.Fatal("the inbox has no link to the invoice")
	}
	at, _, _ := strings.Cut(link, "/demo")
	if html := get(at + mail[1] + "/html"); !strings.Contains(html, "<p>Please find it <b>here</b>.</p>") {
		t.Errorf("the invoice is %s", html)
	}
}

// typeAlong runs the first command of the tour in a shell, as its readers do: same key, same message.
func typeAlong(t *testing.T, out *screen) {
	t.Helper()
	env := out.wait(t, `export (URL=\S+ TOKEN=\S+)`)
	command := out.wait(t, `(?s)(curl -s "\$URL/v1/submit".*?}')`)
	shell := exec.CommandContext(t.Context(), "sh", "-c", "export "+env+"\n"+command)
	answer, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var a api.SubmitAnswer
	if err := json.Unmarshal(answer, &a); err != nil || a.Idempotency == nil || a.Idempotency.Status != "HIT" {
		t.Errorf("the command of the tour answers %s", answer)
	}
}

// TestInterruptedTour: with Exit, an unfinished tour is an error.
func TestInterruptedTour(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := newScreen()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Listen: "127.0.0.1:0", Exit: true, Out: out}) }()
	out.wait(t, `Sent`)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestCommandsSurviveTheShell: a printed command, run by the shell, makes the original request.
func TestCommandsSurviveTheShell(t *testing.T) {
	req := api.SubmitRequest{To: to("O'Brien", "o@example.net"), Subject: `a "quoted" $HOME \ <b>`,
		Text: "it's\nfine"}
	command := strings.Replace(curl("POST", "/v1/submit", req), "curl -s", "printf '%s\\n'", 1)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, object, _ := strings.Cut(string(out), "\n{")
	var got api.SubmitRequest
	if err := json.Unmarshal([]byte("{"+object), &got); err != nil || got.Subject != req.Subject ||
		got.Text != req.Text || got.To[0] != req.To[0] {
		t.Errorf("the shell makes %s of it: %v", out, err)
	}
}

// TestReceiverRefusesForgeries: a receiver that accepts every signature would prove nothing.
func TestReceiverRefusesForgeries(t *testing.T) {
	news := make(chan happening, 10)
	secret := newSecret()
	r, err := openReceiver(secret, news)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	body := `{"event":"messageSent","data":{"queueId":"q1","envelope":{"from":"","to":["a@example.com"]}}}`
	for _, tc := range []struct {
		name, secret, body string
		want               int
	}{
		{"signed", secret, body, http.StatusNoContent},
		{"signed by somebody else", newSecret(), body, http.StatusUnauthorized},
		{"signed, but no event", secret, "[]", http.StatusBadRequest},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := post(t, r.url(), tc.secret, tc.body); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	if len(news) != 1 {
		t.Fatalf("%d happenings were told, want the signed one", len(news))
	}
	if h := <-news; h.hook.Event != event.MessageSent || h.hook.Data.QueueID != "q1" {
		t.Errorf("got %+v", h.hook)
	}
}

// post sends a signed webhook and returns the status of the answer.
func post(t *testing.T, url, secret, body string) int {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign("msg_1", now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(standardwebhooks.HeaderWebhookID, "msg_1")
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, fmtUnix(now))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is read
	return resp.StatusCode
}

func fmtUnix(t time.Time) string {
	text, _ := json.Marshal(t.Unix())
	return string(text)
}

// TestCatcher checks the catcher against what the tour and its last lines say about it.
func TestCatcher(t *testing.T) {
	news := make(chan happening, 10)
	c, err := openCatcher(news)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	address := strings.TrimPrefix(c.url(), "smtp://")
	mail := []byte("Message-ID: <1@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHello\r\n")
	for _, tc := range []struct {
		name, to string
		code     int // 0: accepted
	}{
		{"anybody", "ada@example.net", 0}, {"nobody", "Nobody@example.net", 550},
		{"busy, the first time", "busy@example.net", 451}, {"busy, again", "busy@example.net", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := smtp.SendMail(address, nil, "shop@example.com", []string{tc.to}, mail)
			reply, _ := errors.AsType[*textproto.Error](err)
			if tc.code == 0 && err != nil || tc.code != 0 && (reply == nil || reply.Code != tc.code) {
				t.Errorf("got %v, want %d", err, tc.code)
			}
		})
	}
	if got := c.inbox("ada@example.net"); len(got) != 1 || got[0] != "Grüße" {
		t.Errorf("ada's inbox holds %q", got)
	}
	if len(news) != 2 {
		t.Errorf("%d mails were told of, want 2", len(news))
	}
}

// TestCatcherForgets: a demo that is left running does not fill the memory.
func TestCatcherForgets(t *testing.T) {
	c := &catcher{news: make(chan happening, 2*maxMails), closed: make(chan struct{}), known: map[string]bool{}}
	for range maxMails + 10 {
		if err := c.take([]string{"a@example.net"}, []byte("Subject: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.mails) != maxMails {
		t.Errorf("%d mails are kept, want %d", len(c.mails), maxMails)
	}
}

// TestDemoNeedsItsDirectory: without a directory for its data the demo fails before anything runs.
func TestDemoNeedsItsDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if err := Run(t.Context(), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
