package feedback_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Messages that the log of these tests remembers.
const (
	toOne  = "01JD3Z6Q3N8X4T5V6W7Y8Z9A00" // to ann
	toTwo  = "01JD3Z6Q3N8X4T5V6W7Y8Z9A10" // to ann and bob, of the list news
	gone   = "01JD3Z6Q3N8X4T5V6W7Y8Z9A20" // nobody remembers it
	rawID  = "<own-id@app.example>"       // Message-ID of toTwo, made by the application
	ann    = "Ann@receiver.example"
	bob    = "bob@receiver.example"
	domain = "bounce.example.com"
)

// stampsOf are the keys of these tests.
func stampsOf() *signedtoken.Ring {
	stamps, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(strings.Repeat("k", 32)))})
	if err != nil {
		panic(err)
	}
	return stamps
}

// proofOf is the proof of a message of shop to ann.
func proofOf(id string) string {
	proof, err := stampsOf().Proof(signedtoken.Token{MessageID: id, Account: "shop", Address: ann})
	if err != nil {
		panic(err)
	}
	return proof
}

// idOfOne is the Message-ID of toOne.
var idOfOne = "<" + proofOf(toOne) + "@app.example>"

// remembered is the log, which keeps what is learnt, and the list of those not to be mailed.
type remembered struct {
	mu    sync.Mutex
	away  bool
	facts []outbox.Fact
	added []suppression.Entry
	soft  []suppression.Entry
	said  map[string]bool // of Confirmed: reason, account, address and message
}

func (r *remembered) Recipients(_ context.Context, ids []string) ([]outbox.Addressed, error) {
	out := make([]outbox.Addressed, len(ids))
	for i, id := range ids {
		switch id {
		case toOne:
			out[i] = outbox.Addressed{Known: true, Account: "shop", MessageID: idOfOne,
				To: []string{ann}}
		case toTwo:
			out[i] = outbox.Addressed{Known: true, Account: "shop", MessageID: rawID, ListID: "news",
				To: []string{ann, bob}}
		}
	}
	return out, r.present()
}

func (r *remembered) Lookup(_ context.Context, refs []string) ([]string, error) {
	out := make([]string, len(refs))
	for i, ref := range refs {
		if ref == rawID {
			out[i] = toTwo
		}
	}
	return out, r.present()
}

func (r *remembered) present() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return fault.New(fault.Unavailable, "", "Redis is away")
	}
	return nil
}

func (r *remembered) RecordFacts(_ context.Context, facts []outbox.Fact) ([]outbox.FactResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	results := make([]outbox.FactResult, len(facts))
	for i, f := range facts {
		for _, known := range r.facts {
			if known.Key == f.Key {
				results[i] = outbox.FactKnown
			}
		}
		if results[i] == outbox.FactRecorded {
			r.facts = append(r.facts, f)
		}
	}
	return results, nil
}

func (r *remembered) Add(_ context.Context, entries ...suppression.Entry) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = append(r.added, entries...)
	return len(entries), nil
}

func (r *remembered) Soft(_ context.Context, e suppression.Entry, _ time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.soft {
		if known.Address == e.Address && known.MessageID == e.MessageID {
			return false, nil
		}
	}
	r.soft = append(r.soft, e)
	return false, nil
}

func (r *remembered) Confirmed(_ context.Context, e suppression.Entry, _ time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	about := fmt.Sprintf("%s %s %s ", e.Reason, e.Account, strings.ToLower(e.Address))
	if r.said == nil {
		r.said = map[string]bool{}
	}
	r.said[about+e.MessageID] = true
	n := 0
	for one := range r.said {
		if strings.HasPrefix(one, about) {
			n++
		}
	}
	return n > 1, nil
}

// WithDefaults gives bounces and complaints the scope of the whole instance.
func (r *remembered) WithDefaults(e suppression.Entry) suppression.Entry {
	e.Account = ""
	return e
}

// postbox is where mail comes back to in a test.
type postbox struct {
	*feedback.Bounces
	*remembered
	stamps *signedtoken.Ring
	f      *feedback.Feedback
	t      *testing.T
}

func openPostbox(t *testing.T) *postbox {
	t.Helper()
	log := &remembered{}
	stamps := stampsOf()
	f, err := feedback.New(feedback.Parts{DB: testredis.New(t), Outbox: log, Suppression: log, Tokens: stamps,
		Account: accounts("shop", "other")},
		feedback.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := feedback.NewBounces(f, feedback.BounceOptions{Domain: domain, Address: "returns@example.com"})
	return &postbox{Bounces: r, remembered: log, stamps: stamps, f: f, t: t}
}

// accounts are those that exist.
func accounts(ids ...string) func(context.Context, func(string) bool) (string, error) {
	return func(_ context.Context, is func(string) bool) (string, error) {
		i := slices.IndexFunc(ids, is)
		if i < 0 {
			return "", nil
		}
		return ids[i], nil
	}
}

// returnPath returns the return path of a message to an address; "" means several.
func (p *postbox) returnPath(id, to string) string {
	p.t.Helper()
	address, err := p.stamps.ReturnPath(signedtoken.Token{MessageID: id, Account: "shop", Address: to}, domain)
	if err != nil {
		p.t.Fatal(err)
	}
	return address
}

// apply runs the worker until so many facts were applied.
func (p *postbox) apply(facts int) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(2 * time.Millisecond) {
		s, err := p.f.Status(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		n := int64(0)
		for _, source := range s.Sources {
			n += source.Applied + source.Duplicates + source.Unknown + source.Failed
		}
		if n >= int64(facts) {
			return
		}
	}
	p.t.Fatalf("%d facts were not applied", facts)
}

// dsn is a delivery status notification about one address.
func dsn(action, status, diagnostic, recipient, messageID string) string {
	return strings.NewReplacer("\n", "\r\n").Replace(fmt.Sprintf(`From: MAILER-DAEMON@mx.receiver.example
To: sender@example.com
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b

The mail system has news.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.receiver.example

Final-Recipient: rfc822; %s
Action: %s
Status: %s
Diagnostic-Code: smtp; %s

--b
Content-Type: text/rfc822-headers

Message-ID: %s
To: somebody@receiver.example

--b--
`, recipient, action, status, diagnostic, messageID))
}

// arf is a feedback report.
func arf(kind, messageID string) string {
	return strings.NewReplacer("\n", "\r\n").Replace(fmt.Sprintf(`From: fbl@mx.receiver.example
Subject: complaint
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: message/feedback-report

Feedback-Type: %s
User-Agent: FBL/1.0
Version: 1

--b
Content-Type: message/rfc822

Message-ID: %s
To: redacted@hidden.example

x
--b--
`, kind, messageID))
}

const noSuchUser = "550 5.1.1 <x>: Recipient address rejected: User unknown"

func TestReturned(t *testing.T) {
	failed := func(id, to, kind, status string, code int, said string) outbox.Fact {
		return outbox.Fact{Type: event.MessageBounce, Account: "shop", MessageID: id, Recipient: to, Index: -1,
			Details: event.Later{
				Source: "bounce", Action: "failed", BounceType: kind, Status: status, Code: code, Diagnostic: said,
				MTA: "mx.receiver.example",
			}}
	}
	blocked := func(f outbox.Fact) outbox.Fact { f.Details.Reason = "blocked"; return f }
	unproven := func(f outbox.Fact) outbox.Fact { f.Details.Reason = "unproven"; return f }
	alone := func(f outbox.Fact) outbox.Fact { f.Details.Reason = "unconfirmed"; return f }
	complained := func(kind string) outbox.Fact {
		return outbox.Fact{Type: event.MessageComplaint, Account: "shop", MessageID: toOne, Recipient: ann,
			Index: -1, Details: event.Later{Source: "bounce", FeedbackType: kind}}
	}
	ofBob := func(kind string) outbox.Fact {
		f := unproven(complained(kind))
		f.MessageID, f.Recipient = toTwo, bob
		return f
	}
	objects := func(id, to string) []suppression.Entry { // as far as one mail proves it
		return []suppression.Entry{{Address: to, Reason: suppression.Unsubscribe, Account: "shop", Source: "bounce",
			MessageID: id, Response: "a complaint by mail, which nothing confirms yet"}}
	}
	proofOfGone := proofOf(gone)
	rows := []struct {
		name    string
		mail    string
		id      string // whose return path it came to; empty: to returns@example.com
		to      string // whom the return path is for
		outcome feedback.Outcome
		facts   []outbox.Fact
		added   []suppression.Entry
		soft    []string
	}{
		{
			name: "dead, by token", mail: dsn("failed", "5.1.1", noSuchUser, "ann@receiver.example", "<lost@x>"),
			id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{alone(failed(toOne, ann, "soft", "5.1.1", 550, noSuchUser))}, soft: []string{ann},
		},
		{
			name: "dead, by a Message-ID of ours", mail: dsn("failed", "5.1.1", noSuchUser, "ann@receiver.example",
				idOfOne),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{alone(failed(toOne, ann, "soft", "5.1.1", 550, noSuchUser))}, soft: []string{ann},
		},
		{
			name: "dead, by a Message-ID of the application's", mail: dsn("failed", "5.1.1", noSuchUser, bob, rawID),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{unproven(failed(toTwo, bob, "soft", "5.1.1", 550, noSuchUser))},
		},
		{
			name: "forged: a Message-ID that was sent to somebody else", mail: dsn("failed", "5.1.1", noSuchUser,
				"victim@receiver.example", rawID),
			outcome: feedback.Outcome{Result: feedback.Disproven, MessageID: toTwo},
		},
		{
			name: "dead is whom it was forwarded to, by the Message-ID alone", mail: dsn("failed", "5.1.1", noSuchUser,
				"ann@elsewhere.example", idOfOne),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{unproven(failed(toOne, ann, "soft", "5.1.1", 550, noSuchUser))},
		},
		{
			name: "forged: an id of ours in another's Message-ID", mail: dsn("failed", "5.1.1", noSuchUser, ann,
				"<"+toOne+"@evil.example>"),
			outcome: feedback.Outcome{Result: feedback.Disproven},
		},
		{
			name: "forged: nothing of ours in it", mail: dsn("failed", "5.1.1", noSuchUser, ann, "<made-up@x>"),
			outcome: feedback.Outcome{Result: feedback.Disproven},
		},
		{
			name: "by the token of one recipient, about the other", mail: dsn("failed", "5.1.1", noSuchUser, ann,
				"<lost@x>"), id: toTwo, to: bob,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{failed(toTwo, bob, "soft", "5.1.1", 550, noSuchUser)}, soft: []string{bob},
		},
		{
			name: "by the token of the whole message, which each recipient knows",
			mail: dsn("failed", "5.2.2", "552 5.2.2 mailbox full", bob, "<lost@x>"), id: toTwo,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{unproven(failed(toTwo, bob, "soft", "5.2.2", 552, "552 5.2.2 mailbox full"))},
		},
		{
			name: "by the token of the whole message, about nobody it was sent to",
			mail: dsn("failed", "5.1.1", noSuchUser, "victim@receiver.example", "<lost@x>"), id: toTwo,
			outcome: feedback.Outcome{Result: feedback.Disproven, MessageID: toTwo},
		},
		{
			name: "dead is whom it was forwarded to", mail: dsn("failed", "5.1.1", noSuchUser, "ann@elsewhere.example",
				"<lost@x>"), id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{failed(toOne, ann, "soft", "5.1.1", 550, noSuchUser)}, soft: []string{ann},
		},
		{
			name: "full", mail: dsn("failed", "5.2.2", "552 5.2.2 mailbox full", ann, "<lost@x>"), id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{failed(toOne, ann, "soft", "5.2.2", 552, "552 5.2.2 mailbox full")},
			soft:  []string{ann},
		},
		{
			name: "the sender is not wanted", mail: dsn("failed", "5.7.1", "554 5.7.1 rejected as spam", ann,
				"<lost@x>"), id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{blocked(failed(toOne, ann, "soft", "5.7.1", 554, "554 5.7.1 rejected as spam"))},
		},
		{
			name: "delayed", mail: dsn("delayed", "4.4.1", "451 4.4.1 connection timed out", ann, "<lost@x>"),
			id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{{Type: event.MessageDeferred, Account: "shop", MessageID: toOne, Recipient: ann,
				Index: -1, Details: event.Later{
					Source: "bounce", Action: "delayed", Status: "4.4.1", Code: 451,
					Diagnostic: "451 4.4.1 connection timed out", MTA: "mx.receiver.example",
				}}},
		},
		{
			name: "delivered", mail: dsn("delivered", "2.0.0", "250 2.0.0 ok", ann, "<lost@x>"), id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{{Type: event.MessageDelivered, Account: "shop", MessageID: toOne, Recipient: ann,
				Index: -1, Details: event.Later{
					Source: "bounce", Action: "delivered", Status: "2.0.0", Code: 250, Diagnostic: "250 2.0.0 ok",
					MTA: "mx.receiver.example",
				}}},
		},
		{
			name: "the log has forgotten, and the mail names somebody else",
			mail: dsn("failed", "5.1.1", noSuchUser, bob, "<lost@x>"), id: gone, to: ann,
			outcome: feedback.Outcome{Result: feedback.Forgotten, Proof: feedback.ByToken, MessageID: gone},
		},
		{
			name: "the log has forgotten, by token", mail: dsn("failed", "5.1.1", noSuchUser, "ann@receiver.example",
				"<lost@x>"), id: gone, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: gone,
				Recipients: []string{"ann@receiver.example"}},
			facts: []outbox.Fact{alone(failed(gone, "ann@receiver.example", "soft", "5.1.1", 550, noSuchUser))},
			soft:  []string{"ann@receiver.example"},
		},
		{
			name: "the log has forgotten, by a Message-ID of ours", mail: dsn("failed", "5.1.1", noSuchUser,
				"ann@receiver.example", "<"+proofOfGone+"@app.example>"),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: gone,
				Recipients: []string{"ann@receiver.example"}},
			facts: []outbox.Fact{alone(failed(gone, "ann@receiver.example", "soft", "5.1.1", 550, noSuchUser))},
			soft:  []string{"ann@receiver.example"},
		},
		{
			name: "the log has forgotten, a complaint that hides nobody",
			mail: strings.Replace(arf("abuse", "<"+proofOfGone+"@app.example>"), "redacted@hidden.example",
				"Ann <ann@receiver.example>", 1),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: gone,
				Recipients: []string{"ann@receiver.example"}},
			facts: []outbox.Fact{{Type: event.MessageComplaint, Account: "shop", MessageID: gone,
				Recipient: "ann@receiver.example", Index: -1, Details: event.Later{Source: "bounce",
					FeedbackType: "abuse", Reason: "unconfirmed"}}},
			added: objects(gone, "ann@receiver.example"),
		},
		{
			name:    "forged: the Message-ID of a forgotten message to somebody else",
			mail:    dsn("failed", "5.1.1", noSuchUser, "victim@receiver.example", "<"+proofOfGone+"@app.example>"),
			outcome: feedback.Outcome{Result: feedback.Disproven},
		},
		{
			name:    "forged: an unsigned Message-ID of a forgotten message",
			mail:    dsn("failed", "5.1.1", noSuchUser, "ann@receiver.example", "<"+gone+"@app.example>"),
			outcome: feedback.Outcome{Result: feedback.Disproven},
		},
		{
			name: "complained, whoever it was", mail: arf("abuse", idOfOne),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{alone(complained("abuse"))}, added: objects(toOne, ann),
		},
		{
			name: "complained of a message to two, hidden which", mail: arf("abuse", rawID), outcome: feedback.Outcome{
				Result: feedback.Disproven, MessageID: toTwo},
		},
		{
			name: "complained, with the token of one of two", mail: arf("fraud", "<lost@x>"), id: toTwo, to: ann,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toTwo,
				Recipients: []string{ann}},
			facts: []outbox.Fact{{Type: event.MessageComplaint, Account: "shop", MessageID: toTwo, Recipient: ann,
				Index: -1, Details: event.Later{
					Source: "bounce", FeedbackType: "fraud", Reason: "unconfirmed",
				}}},
			added: objects(toTwo, ann),
		},
		{
			name: "complained, by the Message-ID that both recipients know", mail: strings.Replace(arf("abuse", rawID),
				"redacted@hidden.example", bob, 1),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{ofBob("abuse")},
		},
		{
			name: "opted out, by the Message-ID that both recipients know", mail: strings.Replace(arf("opt-out", rawID),
				"redacted@hidden.example", bob, 1),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{ofBob("opt-out")},
		},
		{
			name: "took a complaint back", mail: arf("not-spam", idOfOne),
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByMessageID, MessageID: toOne,
				Recipients: []string{ann}},
			facts: []outbox.Fact{complained("not-spam")},
		},
		{
			name: "opted out", mail: arf("opt-out", "<lost@x>"), id: toTwo, to: bob,
			outcome: feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: toTwo,
				Recipients: []string{bob}},
			facts: []outbox.Fact{{Type: event.ListUnsubscribe, Account: "shop", MessageID: toTwo, Recipient: bob,
				Index: -1, Details: event.Later{
					Source: "bounce", FeedbackType: "opt-out", ListID: "news",
				}}},
			added: []suppression.Entry{{Address: bob, Reason: suppression.Unsubscribe, Account: "shop", List: "news",
				Source:    "bounce",
				MessageID: toTwo}},
		},
		{
			name: "a report about authentication", mail: arf("auth-failure", idOfOne),
			outcome: feedback.Outcome{Result: feedback.Ignored},
		},
		{
			name: "on holiday", mail: "From: ann@receiver.example\r\nAuto-Submitted: auto-replied\r\nSubject: Out of office\r\n\r\nBack on Monday.\r\n", id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Ignored},
		},
		{name: "a letter", mail: "From: ann@receiver.example\r\nSubject: Hello\r\n\r\nHow are you?\r\n", id: toOne, to: ann,
			outcome: feedback.Outcome{Result: feedback.Ignored}},
		{name: "nothing", mail: "", id: toOne, to: ann, outcome: feedback.Outcome{Result: feedback.Ignored}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := openPostbox(t)
			to := "returns@example.com"
			if row.id != "" {
				to = p.returnPath(row.id, row.to)
			}
			for range 2 { // an email that comes twice says nothing more
				_, out, err := p.Receive(t.Context(), strings.NewReader(row.mail), to)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(row.outcome, out); diff != "" {
					t.Error(diff)
				}
			}
			p.apply(2 * len(row.facts))
			if diff := cmp.Diff(row.facts, p.facts, cmpopts.IgnoreFields(outbox.Fact{}, "Key", "At")); diff != "" {
				t.Errorf("facts: %s", diff)
			}
			once := map[string]suppression.Entry{}
			for _, e := range p.added {
				e.Created = time.Time{}
				once[fmt.Sprint(e)] = e
			}
			var added []suppression.Entry
			for _, e := range once {
				added = append(added, e)
			}
			if diff := cmp.Diff(row.added, added); diff != "" {
				t.Errorf("suppressed: %s", diff)
			}
			var soft []string
			for _, e := range p.soft {
				soft = append(soft, e.Address)
			}
			if diff := cmp.Diff(row.soft, soft); diff != "" {
				t.Errorf("counted: %s", diff)
			}
		})
	}
}

// TestTokenInTheMail: a pipe that doesn't tell the recipient, and a complaint, have the token somewhere in
// the mail.
func TestTokenInTheMail(t *testing.T) {
	p := openPostbox(t)
	path := p.returnPath(toOne, ann)
	for name, mail := range map[string]string{
		"the recipient of the notice": "Delivered-To: " + path + "\r\n" + dsn("failed", "5.1.1", noSuchUser, ann,
			"<lost@x>"),
		"the case was changed": "Delivered-To: " + strings.ToUpper(path) + "\r\n" + dsn("failed", "5.1.1",
			noSuchUser, ann, "<lost@x>"),
		"the returned message": strings.Replace(arf("abuse", "<lost@x>"), "To: redacted",
			"Return-Path: <"+path+">\r\nTo: redacted", 1),
	} {
		_, out, err := p.Receive(t.Context(), strings.NewReader(mail), "")
		if err != nil || out.Result != feedback.Taken || out.Proof != feedback.ByToken {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// TestNothingIsTakenWhileRedisIsAway: whoever brings the mail keeps it.
func TestNothingIsTakenWhileRedisIsAway(t *testing.T) {
	p := openPostbox(t)
	p.away = true
	report, _, err := p.Receive(t.Context(),
		strings.NewReader(dsn("failed", "5.1.1", noSuchUser, ann, "<lost@x>")), p.returnPath(toOne, ann))
	if !fault.Is(err, fault.Unavailable) || report.Kind != bounce.Bounced {
		t.Errorf("%v, %v", report.Kind, err)
	}
	broken := errors.New("broken pipe")
	if _, _, err := p.Receive(t.Context(), iotest.ErrReader(broken), ""); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestExpected(t *testing.T) {
	p := openPostbox(t)
	path := p.returnPath(toOne, ann)
	local, _, _ := strings.Cut(path, "@")
	for _, row := range []struct {
		name, address string
		want          fault.Kind // empty: expected
	}{
		{"a return path", path, ""},
		{"in capitals", strings.ToUpper(path), ""},
		{"the address for those without token", "Returns@example.com", ""},
		{"forged", strings.Replace(path, local[len(local)-4:], "aaaa", 1), fault.NotFound},
		{"made up", "bounces+abc@" + domain, fault.NotFound},
		{"at another domain", local + "@example.com", fault.Forbidden},
		{"another address of the domain", "postmaster@" + domain, fault.Forbidden},
		{"anybody", "ann@receiver.example", fault.Forbidden},
		{"nothing", "", fault.Forbidden},
	} {
		err := p.Expected(row.address)
		if fault.KindOf(err) != row.want {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
