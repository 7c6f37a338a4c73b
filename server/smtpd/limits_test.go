package smtpd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/smtpd"
)

// TestRefusals: the outbox's errors, as SMTP replies.
func TestRefusals(t *testing.T) {
	limited := fault.New(fault.Limited, "", "Slow down")
	limited.RetryAfter = 90 * time.Second
	rows := []struct {
		name string
		err  error
		want string
	}{
		{"content", fault.InvalidFields([]fault.Field{{Key: "raw", Message: "contains a NUL byte"}}),
			"550 5.6.0 Message refused: it contains a NUL byte"},
		{"control header", fault.InvalidFields([]fault.Field{
			{Key: "raw", Message: "its X-EE-Send-At must be a time"}}),
			"550 5.6.0 Message refused: its X-EE-Send-At must be a time"},
		{"several", fault.InvalidFields([]fault.Field{{Key: "raw", Message: "is empty"},
			{Key: "deliverBy", Message: "must be\r\n250 in the future"}}),
			"550 5.6.0 Message refused: it is empty; deliverBy must be  250 in the future"},
		{"recipient", fault.InvalidFields([]fault.Field{{Key: "envelope.to[0]", Message: "is bad"}}),
			`550 5.1.3 Message refused: envelope.to\[0\] is bad`},
		{"sender", fault.InvalidFields([]fault.Field{{Key: "envelope.from", Message: "is bad"}}), `550 5.1.7 .*`},
		{"without fields", fault.New(fault.Invalid, "", "Invalid input"),
			"550 5.6.0 Message refused: Invalid input"},
		{"too large", fault.New(fault.TooLarge, "", "Too large"), "552 5.3.4 Too large"},
		{"key used before", fault.New(fault.Unprocessable, "IdempotencyKeyReused",
			"Key was used with another body"), "550 5.5.0 Key was used with another body"},
		{"no gateway can carry it", fault.New(fault.Unprocessable, "MessageNotCarried",
			"No gateway of the account can carry the message"),
			"550 5.5.0 No gateway of the account can carry the message"},
		{"gateway", fault.New(fault.NotFound, "GatewayNotFound", "There is no gateway with ID %q", "jörg"),
			`550 5.5.4 There is no gateway with ID "j\?rg"`},
		{"account deleted", fault.New(fault.NotFound, "AccountNotFound", "x"),
			"550 5.7.1 The account you send as does not exist any more"},
		{"limited", limited, "451 4.7.1 Slow down; try again in 90 seconds"},
		{"Redis away", fmt.Errorf("submit: %w", fault.Wrap(errors.New("dial 10.0.0.1"), fault.Unavailable,
			"RedisAway", "The message store is not available")), "451 4.3.0 The message store is not available"},
		{"full", fault.New(fault.Unavailable, "OutboxFull", "The outbox is full"), "452 4.3.1 The outbox is full"},
		{"internal", errors.New("secret internals"),
			"451 4.3.0 An internal server error occurred; try again later"},
		{"internal fault", fault.New(fault.Internal, "", "secret internals"),
			"451 4.3.0 An internal server error occurred; try again later"},
		{"long", fault.New(fault.TooLarge, "", "%s", strings.Repeat("long ", 200)), `552 5.3.4 (long )+\.\.\.`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := setup(t, settings{})
			w.outbox.answer = func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error) {
				return api.SubmitAnswer{}, row.err
			}
			c := w.loggedIn()
			c.begin()
			if got := c.say(mailText+".", row.want); len(got) > 510 {
				t.Errorf("the reply has %d octets", len(got))
			}
			c.say("NOOP", "250 .*") // the conversation continues
		})
	}
}

// TestPanicEndsOneConversation and tells the client to come back.
func TestPanicEndsOneConversation(t *testing.T) {
	w := setup(t, settings{})
	w.outbox.answer = func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error) {
		panic("a fault of ours")
	}
	other := w.loggedIn()
	c := w.loggedIn()
	c.begin()
	c.say(mailText+".", "421 4.3.0 An internal server error occurred")
	c.closed()
	other.say("NOOP", "250 .*")
}

func TestRepeatedMessageIsAnsweredWithTheFirstID(t *testing.T) {
	w := setup(t, settings{})
	w.outbox.answer = func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error) {
		return api.SubmitAnswer{QueueID: "Q7", Idempotency: &api.IdempotencyStatus{Status: "HIT"}}, nil
	}
	c := w.loggedIn()
	c.begin()
	c.say(mailText+".", "250 2.0.0 Ok: queued as Q7")
	want := `
# HELP postroom_smtpd_messages_total Messages received over SMTP by result: queued, repeated (idempotency key), refused (5xx), deferred (4xx), broken_off (connection lost, or far too large).
# TYPE postroom_smtpd_messages_total counter
postroom_smtpd_messages_total{result="broken_off"} 0
postroom_smtpd_messages_total{result="deferred"} 0
postroom_smtpd_messages_total{result="queued"} 0
postroom_smtpd_messages_total{result="refused"} 0
postroom_smtpd_messages_total{result="repeated"} 1
`
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(want),
		"postroom_smtpd_messages_total"); err != nil {
		t.Error(err)
	}
}

func TestTooManyRecipients(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxRecipients: 2}})
	c := w.loggedIn()
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<a@x.example>", "250 .*")
	c.say("RCPT TO:<b@x.example>", "250 .*")
	c.say("RCPT TO:<c@x.example>", "452 4.5.3 .*")
	c.say("DATA", "354 .*")
	c.say(mailText+".", "250 .*")
	if got := w.outbox.all()[0].Envelope.To; len(got) != 2 {
		t.Errorf("%d recipients", len(got))
	}
}

// TestTooLarge: a message beyond the limit is read to its end and refused; one far beyond it is not worth
// reading.
func TestTooLarge(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxMessage: 10000}})
	c := w.loggedIn()
	c.begin()
	c.say(strings.Repeat(strings.Repeat("x", 98)+"\r\n", 100)+".", "250 .*") // 10000 to the octet
	c.begin()
	c.say(strings.Repeat(strings.Repeat("x", 98)+"\r\n", 100)+"\r\n.",
		"552 5.3.4 The message is too large; the limit is 10000 octets")
	c.begin()
	c.send(strings.Repeat(strings.Repeat("x", 98)+"\r\n", 300))
	c.expect("552 5.3.4 .*")
	c.closed()
	if got := len(w.outbox.all()); got != 1 {
		t.Errorf("%d messages came in, want 1", got)
	}
}

// TestMemoryIsShared: large messages that come in together must wait when there is no memory left, and fit
// again afterwards.
func TestMemoryIsShared(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxMessage: 4 << 20, BodyMemory: 4 << 20}})
	large := strings.Repeat(strings.Repeat("x", 998)+"\r\n", 3000)
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	w.outbox.answer = func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error) {
		entered <- struct{}{}
		<-leave
		return api.SubmitAnswer{QueueID: "Q1"}, nil
	}
	first, second := w.loggedIn(), w.loggedIn()
	first.begin()
	first.send(large + ".\r\n")
	<-entered // all of it is held
	second.begin()
	second.say(large+".", "452 4.3.1 .*")
	close(leave)
	first.expect("250 .*")
	second.begin()
	second.say(large+".", "250 .*")
}

// TestLargeMessagesAreWorkedOnAFewAtATime: however many come in together, no more of them are processed than
// there are processors, small ones pass by, and all are accepted in the end.
func TestLargeMessagesAreWorkedOnAFewAtATime(t *testing.T) {
	w := setup(t, settings{})
	processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	entered, leave := make(chan struct{}, 2*processors), make(chan struct{})
	w.outbox.answer = func(_ context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
		if len(req.Raw) > 1<<20 {
			entered <- struct{}{}
			<-leave
		}
		return api.SubmitAnswer{QueueID: "Q1"}, nil
	}
	large := strings.Repeat(strings.Repeat("x", 998)+"\r\n", 2000)
	clients := make([]*client, 2*processors)
	for i := range clients {
		clients[i] = w.loggedIn()
		clients[i].begin()
		clients[i].send(large + ".\r\n")
	}
	for range processors {
		<-entered
	}
	small := w.loggedIn()
	small.begin()
	small.say(mailText+".", "250 .*")
	select {
	case <-entered:
		t.Errorf("more than %d were in hand at once", processors)
	default:
	}
	close(leave)
	for _, c := range clients {
		c.expect("250 .*")
	}
}

func TestTooManyConnections(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxConnections: 2}})
	first := w.loggedIn() // and so none makes room
	w.loggedIn()
	c := dial(t, w.inlet.Addr())
	c.expect("421 4.7.0 Too many connections; try again later")
	c.closed()
	first.say("QUIT", "221 .*")
	first.closed()
	waitFor(t, func() bool {
		c := dial(t, w.inlet.Addr())
		defer c.conn.Close()
		got, err := c.read()
		return err == nil && strings.HasPrefix(got, "220")
	}, "there is room again")
}

// TestSilentConnectionsMakeRoom: however many are open, who wants to log in gets in, and those who have stay.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxConnections: 3}})
	member := w.loggedIn()
	silent := []*client{w.connect(), w.connect()}
	another := w.loggedIn()
	silent[0].closed()
	silent[1].say("NOOP", "250 .*")
	for _, c := range []*client{member, another} {
		c.say("NOOP", "250 .*")
	}
}

// TestOneAddressHasItsShare: its further connections without a login are refused, and those with one are not
// counted.
func TestOneAddressHasItsShare(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{MaxConnectionsPerAddress: 2}})
	for range 3 {
		w.loggedIn()
	}
	w.connect()
	w.connect()
	c := dial(t, w.inlet.Addr())
	c.expect("421 4.7.0 Too many connections; try again later")
	c.closed()
}

func TestSilence(t *testing.T) {
	t.Run("without a login", func(t *testing.T) {
		w := setup(t, settings{Options: smtpd.Options{LoginTimeout: 50 * time.Millisecond}})
		c := w.connect()
		c.expect("421 4.7.0 Nobody logged in for too long")
		c.closed()
	})
	t.Run("between commands", func(t *testing.T) {
		t.Parallel()
		c := silentAfter(t, "")
		c.expect("421 4.4.2 Nothing was said for too long")
		c.closed()
	})
	t.Run("within a message", func(t *testing.T) {
		t.Parallel()
		c := silentAfter(t, "MAIL FROM:<shop@example.com>\r\nRCPT TO:<ann@example.net>\r\nDATA\r\nSubject: x\r\n")
		for _, want := range []string{"250 .*", "250 .*", "354 .*", "421 4.4.2 .*"} {
			c.expect(want)
		}
		c.closed()
	})
}

// silentAfter gives a client that has logged in and sent everything before an inlet hears any of it. However
// slow the machine is, the test waits only for the end of its silence.
func silentAfter(t *testing.T, said string) *client {
	t.Helper()
	w := setup(t, settings{Options: smtpd.Options{IdleTimeout: time.Second}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := dial(t, listener.Addr().String())
	c.send("EHLO app.example.com\r\nAUTH PLAIN " + plain("acme", token) + "\r\n" + said)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w.inlet.ServeFrom(conn, netip.IPv6Loopback())
	for _, want := range []string{"220 .*", "(?s)250-.*", "235 .*"} {
		c.expect(want)
	}
	return c
}

// TestCommandsThatLeadToNothing come to an end.
func TestCommandsThatLeadToNothing(t *testing.T) {
	w := setup(t, settings{})
	c := w.connect()
	sent := make(chan struct{})
	go func() { defer close(sent); c.send(strings.Repeat("NOOP\r\n", 250)) }()
	for range 201 {
		c.expect("250 .*")
	}
	c.expect("421 4.7.0 Too many errors")
	<-sent
	c.closed()
}

// TestLoop: a message that has gone round in circles is refused.
func TestLoop(t *testing.T) {
	w := setup(t, settings{})
	c := w.loggedIn()
	c.begin()
	c.say(strings.Repeat("received: from x\r\n\tby y\r\n", 50)+"\r\nReceived: in the text\r\n.", "250 .*")
	c.begin()
	c.say(strings.Repeat("Received: from x\r\n\tby y\r\n", 51)+"\r\n.", "554 5.4.6 .*")
}

// TestBrokenOffMessageIsNotTaken: data before the connection ends isn't a message.
func TestBrokenOffMessageIsNotTaken(t *testing.T) {
	w := setup(t, settings{})
	c := w.loggedIn()
	c.begin()
	c.send(mailText + ".")
	c.conn.Close()
	c = w.loggedIn()
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<a@x.example>", "250 .*")
	c.send("BDAT 10 LAST\r\n12345")
	c.conn.Close()
	w.stop()
	if got := len(w.outbox.all()); got != 0 {
		t.Errorf("%d messages came in, want none", got)
	}
}

// TestStop: an incoming message is accepted, everybody else must go, and no one new is let in.
func TestStop(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{Grace: timeout}})
	anonymous, between, inside, within := w.connect(), w.loggedIn(), w.loggedIn(), w.loggedIn()
	inside.begin()
	inside.send("Subject: x\r\n")
	within.say("MAIL FROM:<>", "250 .*")
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.stop() }()
	for _, c := range []*client{anonymous, between, within} {
		c.expect("421 4.3.2 Service is stopping; try again later")
		c.closed()
	}
	inside.send("\r\nbody\r\n.\r\n")
	inside.expect("250 2.0.0 Ok: queued as Q1")
	inside.expect("421 4.3.2 .*")
	inside.conn.Close()
	<-stopped
	if got := len(w.outbox.all()); got != 1 {
		t.Errorf("%d messages came in, want 1", got)
	}
}

// TestStopDoesNotWaitForEver for a message that does not come to its end.
func TestStopDoesNotWaitForEver(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{Grace: 50 * time.Millisecond}})
	c := w.loggedIn()
	c.begin()
	var submits atomic.Int32
	w.outbox.answer = func(ctx context.Context, _ api.SubmitRequest) (api.SubmitAnswer, error) {
		submits.Add(1)
		<-ctx.Done() // an outbox whose Redis does not answer
		return api.SubmitAnswer{}, ctx.Err()
	}
	slow := w.loggedIn()
	slow.begin()
	slow.send(mailText + ".\r\n")
	waitFor(t, func() bool { return submits.Load() == 1 }, "the outbox is asked")
	w.stop()
	c.closed()
}

func waitFor(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(timeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

// TestLogKeepsSecrets: neither tokens nor addresses are written, even at debug, whatever goes wrong.
func TestLogKeepsSecrets(t *testing.T) {
	var log bytes.Buffer
	w := setup(t, settings{log: &log})
	c := w.loggedIn()
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<ann@example.net>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(mailText+".", "250 .*")
	c.begin()
	c.say("x\n.\r\n.", "550 .*")
	other := w.connect()
	other.say("EHLO x", "(?s)250.*")
	other.say("AUTH PLAIN "+plain("ann@example.net", token), "535 .*")
	other.say("AUTH PLAIN "+plain("acme", "a-token-that-is-wrong"), "535 .*")
	w.stop()
	for _, secret := range []string{token, plain("acme", token), "a-token-that-is-wrong", "ann@example.net",
		"shop@example.com", "Hi there"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, log.String())
		}
	}
	if !strings.Contains(log.String(), "message_id=Q1") {
		t.Errorf("the log does not name the message:\n%s", log.String())
	}
}
