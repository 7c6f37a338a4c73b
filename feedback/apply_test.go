package feedback

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// said is an event of the generic provider.
func said(kind, recipient string, more ...string) string {
	fields := append([]string{fmt.Sprintf(`"type":%q,"recipient":%q`, kind, recipient)}, more...)
	return "{" + strings.Join(fields, ",") + "}"
}

const (
	byEcho      = `"metadata":{"postroom_id":"` + ann + `"}`
	byMessageID = `"messageId":"<01arz3ndektsv4rrffq69g5f00@shop.example>"`
	byHeader    = `"messageId":"own@shop.example"`
	byProvider  = `"providerMessageId":"4XdR2s1Q"`
	hardBounce  = `"bounce":"hard","diagnostic":"550 5.1.1 no such user"`
)

func TestFactsFindTheirMessage(t *testing.T) {
	for _, row := range []struct{ name, ref string }{
		{"our id told back", byEcho}, {"a Message-ID of ours", byMessageID}, {"the sender's Message-ID", byHeader},
		{"the provider's id", byProvider},
		{"a wrong id told back, and the provider's", `"metadata":{"postroom_id":"01ARZ3NDEKTSV4RRFFQ69G5ZZZ"},` +
			byProvider},
		{"nonsense told back, and the provider's", `"metadata":{"postroom_id":"\u0000../x"},` + byProvider},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if err := b.tell(said("bounced", "Ann@EXAMPLE.net", hardBounce, row.ref)); err != nil {
				t.Fatal(err)
			}
			if err := b.applyAll(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"messageBounce " + ann + " ann@example.net"}, b.box.all()); diff != "" {
				t.Error(diff)
			}
			if got := b.suppressed("ann@example.net", "other", ""); got != "hard_bounce generic" {
				t.Errorf("suppressed: %q", got)
			}
			if diff := cmp.Diff(map[string]int64{"received": 1, "applied": 1}, b.counts("generic")); diff != "" {
				t.Error(diff)
			}
			if left := b.entries(urgent); len(left) != 0 {
				t.Errorf("%d entries are left", len(left))
			}
		})
	}
}

func TestWhoIsSuppressed(t *testing.T) {
	const toCrowd = `"metadata":{"postroom_id":"` + crowd + `"}`
	for _, row := range []struct {
		name, body          string
		again               string // told after it
		whom, account, list string
		want                string
		learnt              int
	}{
		{name: "dead address", body: said("bounced", "ann@example.net", hardBounce, byEcho),
			whom: "ann@example.net", want: "hard_bounce generic", learnt: 1},
		{name: "complaint", body: said("complained", "ann@example.net", byEcho), whom: "ann@example.net",
			want: "spam_report generic", learnt: 1},
		{name: "not spam", body: said("complained", "ann@example.net", byEcho, `"diagnostic":"not-spam"`),
			whom: "ann@example.net", want: "", learnt: 1},
		{name: "unsubscribed from the account", body: said("unsubscribed", "ann@example.net", byEcho),
			whom: "ann@example.net", account: "shop", want: "unsubscribe generic", learnt: 1},
		{name: "and not from another one", body: said("unsubscribed", "ann@example.net", byEcho),
			whom: "ann@example.net", account: "other", want: "", learnt: 1},
		{name: "unsubscribed from the list", body: said("unsubscribed", "bob@example.net", toCrowd),
			whom: "bob@example.net", account: "shop", list: "news", want: "unsubscribe generic", learnt: 1},
		{name: "and not from such a list of another account",
			body: said("unsubscribed", "bob@example.net", toCrowd),
			whom: "bob@example.net", account: "other", list: "news", want: "", learnt: 1},
		{name: "and not from the account", body: said("unsubscribed", "bob@example.net", toCrowd),
			whom: "bob@example.net", account: "shop", want: "", learnt: 1},
		{name: "on the provider's list for a bounce", body: said("dropped", "ann@example.net", byEcho,
			`"reason":"bounced"`), whom: "ann@example.net", want: "hard_bounce generic", learnt: 1},
		{name: "on the provider's list for a complaint", body: said("dropped", "ann@example.net", byEcho,
			`"reason":"spam"`), whom: "ann@example.net", want: "spam_report generic", learnt: 1},
		{name: "one soft bounce", body: said("bounced", "ann@example.net", byEcho, `"bounce":"soft"`),
			whom: "ann@example.net", want: "", learnt: 1},
		{name: "the same soft bounce twice", body: said("bounced", "ann@example.net", byEcho, `"bounce":"soft"`),
			again: said("bounced", "ann@example.net", byEcho, `"bounce":"soft"`), whom: "ann@example.net", want: "",
			learnt: 1},
		{name: "blocked", body: said("bounced", "ann@example.net", byEcho, `"bounce":"hard","reason":"blocked"`),
			whom: "ann@example.net", want: "", learnt: 1},
		{name: "policy", body: said("bounced", "ann@example.net", byEcho, `"bounce":"hard","enhanced":"5.7.26"`),
			whom: "ann@example.net", want: "", learnt: 1},
		{name: "delivered", body: said("delivered", "ann@example.net", byEcho), whom: "ann@example.net", want: "",
			learnt: 1},
		{name: "somebody it was not sent to", body: said("complained", "victim@example.org", byEcho),
			whom: "victim@example.org", want: "", learnt: 1},
		{name: "a message nobody knows", body: said("complained", "victim@example.org",
			`"metadata":{"postroom_id":"01ARZ3NDEKTSV4RRFFQ69G5ZZZ"}`), whom: "victim@example.org", want: "",
			learnt: 0},
		{name: "no message at all", body: said("complained", "victim@example.org"), whom: "victim@example.org",
			want: "", learnt: 0},
		{name: "what is no address", body: said("bounced", "ann at example", byEcho, hardBounce),
			whom: "ann@example.net", want: "", learnt: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, body := range []string{row.body, row.again} {
				if body == "" {
					continue
				}
				if err := b.tell(body); err != nil {
					t.Fatal(err)
				}
				if err := b.applyAll(); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.suppressed(row.whom, row.account, row.list); got != row.want {
				t.Errorf("suppressed: %q, want %q", got, row.want)
			}
			if got := len(b.box.all()); got != row.learnt {
				t.Errorf("%d learnt, want %d: %v", got, row.learnt, b.box.all())
			}
		})
	}
}

// Two messages that bounced softly count as two.
func TestSoftBouncesAddUp(t *testing.T) {
	b := setup(t)
	b.box.messages["01ARZ3NDEKTSV4RRFFQ69G5H00"] = b.box.messages[ann]
	for _, id := range []string{ann, "01ARZ3NDEKTSV4RRFFQ69G5H00"} {
		if got := b.suppressed("ann@example.net", "", ""); got != "" {
			t.Errorf("suppressed too early: %s", got)
		}
		if err := b.tell(said("bounced", "ann@example.net", `"bounce":"soft","metadata":{"postroom_id":"`+id+
			`"}`)); err != nil {
			t.Fatal(err)
		}
		if err := b.applyAll(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.suppressed("ann@example.net", "", ""); got != "hard_bounce generic" {
		t.Errorf("suppressed: %q", got)
	}
}

// One that is broken, one that is unknown and one of no use cost the others of their batch nothing.
func TestBatchWithBrokenAndUnknown(t *testing.T) {
	b := setup(t)
	body := "[" + strings.Join([]string{
		said("bounced", "ann@example.net", byEcho, `"bounce":"neither"`), `17`, said("accepted", "ann@example.net",
			byEcho), said("snored", "ann@example.net", byEcho),
		said("complained", "x@example.org", `"metadata":{"postroom_id":"01ARZ3NDEKTSV4RRFFQ69G5ZZZ"}`),
		said("delivered", "ann@example.net", byEcho), said("opened", "ann@example.net", byEcho),
	}, ",") + "]"
	receipt, err := b.Provider(t.Context(), Origin{Provider: provider.Generic}, b.request(body), b.now())
	if err != nil || receipt.Accepted != 5 || receipt.Ignored != 0 || receipt.Broken != 2 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	reported := "messageReported " + ann + " ann@example.net" // accepted, and snored
	want := []string{"messageDelivered " + ann + " ann@example.net", reported, reported,
		"trackOpen " + ann + " ann@example.net"}
	if diff := cmp.Diff(want, b.box.all()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"received": 5, "applied": 4, "unknown": 1},
		b.counts("generic")); diff != "" {
		t.Error(diff)
	}
}

func TestFactsInAnyOrderAndTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.run()
	for _, kind := range []string{"opened", "complained", "delivered", "deferred", "opened", "complained",
		"delivered"} {
		if err := b.tell(said(kind, "ann@example.net", byEcho, `"time":"2026-11-21T11:00:00Z"`)); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("all is applied", func() bool {
		c := b.counts("generic")
		return c["applied"]+
			c["duplicates"] == 7
	})
	want := []string{
		"messageComplaint " + ann + " ann@example.net", "messageDeferred " + ann + " ann@example.net",
		"messageDelivered " + ann + " ann@example.net",
		"trackOpen " + ann + " ann@example.net",
	}
	if diff := cmp.Diff(want, b.box.all()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"received": 7, "applied": 4, "duplicates": 3},
		b.counts("generic")); diff != "" {
		t.Error(diff)
	}
}

// A process that dies between the timeline and the suppression leaves the fact to another one, which does
// both again.
func TestDeathBetweenLearningAndSuppressing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list.fail = 1
	if err := b.tell(said("bounced", "ann@example.net", hardBounce, byEcho)); err != nil {
		t.Fatal(err)
	}
	if err := b.applyAll(); !errors.Is(err, errFlaky) {
		t.Fatalf("applied: %v", err)
	}
	if got := b.suppressed("ann@example.net", "", ""); got != "" || len(b.box.all()) != 1 ||
		len(b.entries(urgent)) != 1 {
		t.Fatalf("suppressed %q, learnt %v, %d entries", got, b.box.all(), len(b.entries(urgent)))
	}
	other := setupOn(t, b.db)
	other.box = b.box
	other.Feedback.Outbox = b.box
	other.run()
	b.eventually("the other process suppresses",
		func() bool { return b.suppressed("ann@example.net", "", "") == "hard_bounce generic" })
	b.eventually("the entry goes", func() bool { return len(b.entries(urgent)) == 0 })
	if got := b.box.all(); len(got) != 1 {
		t.Errorf("learnt %v", got)
	}
}

// The provider may be faster than our own record of its reply.
func TestFactBeforeItsReferenceIsKnown(t *testing.T) {
	b := setup(t)
	if err := b.tell(said("complained", "ann@example.net", `"providerMessageId":"too-fast"`)); err != nil {
		t.Fatal(err)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Inbox.Waiting != 1 || s.Inbox.Urgent != 0 || len(b.box.all()) != 0 {
		t.Fatalf("%+v, %v, learnt %v", s.Inbox, err, b.box.all())
	}
	b.advance(4 * time.Second)
	b.look(0)
	b.box.know("generic:too-fast", ann)
	b.advance(time.Second)
	b.look(1)
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if got := b.suppressed("ann@example.net", "", ""); got != "spam_report generic" {
		t.Errorf("suppressed: %q", got)
	}
	if diff := cmp.Diff(map[string]int64{"received": 1, "applied": 1}, b.counts("generic")); diff != "" {
		t.Error(diff)
	}
}

// look puts back what is due, and checks how much stands in the inbox then.
func (b *bundle) look(want int) {
	b.t.Helper()
	if _, err := b.keys.again(b.t.Context(), b.now(), workBatch); err != nil {
		b.t.Fatal(err)
	}
	got := 0
	for _, stream := range streams() {
		got += len(b.entries(stream))
	}
	if got != want {
		b.t.Fatalf("%d entries, want %d", got, want)
	}
}

func TestUnknownAfterThreeLooks(t *testing.T) {
	b := setup(t)
	if err := b.tell(said("opened", "ann@example.net", `"providerMessageId":"never"`)); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute} {
		if err := b.applyAll(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]int64{"received": 1}, b.counts("generic")); diff != "" {
			t.Fatal(diff)
		}
		b.advance(wait - time.Millisecond)
		b.look(0)
		b.advance(time.Millisecond)
		b.look(1)
		if got := b.entries(hits); len(got) != 1 {
			t.Fatal("it came back into another stream")
		}
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"received": 1, "unknown": 1}, b.counts("generic")); diff != "" {
		t.Error(diff)
	}
	b.advance(time.Hour)
	b.look(0)
}

// The log has forgotten a message. What the message carried, or a reference that Postroom stored, proves whom
// it went to and whose it was.
func TestFactsAboutAForgottenMessage(t *testing.T) {
	const gone = "01ARZ3NDEKTSV4RRFFQ69G5Y00"
	for _, row := range []struct {
		name, account, address string // that the message was signed with; empty: several recipients
		whom                   string // that the provider names
		want, unsubscribed     string
	}{
		{"of shop, to ann", "shop", "ann@example.net", "Ann@EXAMPLE.net", "spam_report generic",
			"unsubscribe generic"},
		{"of an account that was deleted", "former", "ann@example.net", "ann@example.net", "spam_report generic",
			""},
		{"to somebody else", "shop", "eve@example.net", "ann@example.net", "", ""},
		{"to several", "shop", "", "ann@example.net", "", ""},
	} {
		for _, way := range []string{`"metadata":{"postroom_id":"%s"}`, `"messageId":"<%s@shop.example>"`,
			`"providerMessageId":"long-ago"`} {
			t.Run(row.name+", "+way, func(t *testing.T) {
				b := setup(t)
				proof, err := b.Tokens.Proof(signedtoken.Token{MessageID: gone, Account: row.account,
					Address: row.address})
				if err != nil {
					t.Fatal(err)
				}
				if b.box.know("generic:long-ago", proof); strings.Contains(way, "%s") {
					way = fmt.Sprintf(way, proof)
				}
				for _, kind := range []string{"unsubscribed", "complained"} {
					if err := b.tell(said(kind, row.whom, way)); err != nil {
						t.Fatal(err)
					}
					if err := b.applyAll(); err != nil {
						t.Fatal(err)
					}
					want := row.unsubscribed
					if kind == "complained" {
						want = row.want
					}
					if got := b.suppressed("ann@example.net", "shop", ""); got != want {
						t.Errorf("%s: suppressed: %q", kind, got)
					}
				}
				if got := b.suppressed("ann@example.net", "other", ""); got != row.want {
					t.Errorf("for another account: %q", got)
				}
			})
		}
	}
}

// The log deletes a message between the reading of its recipients and the recording of a fact.
func TestAFactWhileItsMessageIsForgotten(t *testing.T) {
	b := setup(t)
	b.box.failWith(func([]outbox.Fact) error {
		delete(b.box.messages, ann)
		return nil
	})
	if err := b.tell(said("bounced", "ann@example.net", `"bounce":"hard","messageId":"`+ann+`"`)); err != nil {
		t.Fatal(err)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"messageBounce " + ann + " ann@example.net"}, b.box.all()); diff != "" {
		t.Error(diff)
	}
	if got := b.suppressed("ann@example.net", "shop", ""); got != "hard_bounce generic" {
		t.Errorf("suppressed: %q", got)
	}
}

// A proof counts for the account that it was made for, and for its address: account other has a proof of its
// mail, and one that it got from shop.
func TestProofsOfOneAccountSayNothingOfAnother(t *testing.T) {
	b := setup(t)
	b.Suppression = perAccountOnly{b.list}
	const gone, mine = "01ARZ3NDEKTSV4RRFFQ69G5Y00", "01ARZ3NDEKTSV4RRFFQ69G5Z00"
	got, _ := b.Tokens.Proof(signedtoken.Token{MessageID: gone, Account: "shop", Address: "mallory@example.org"})
	own, _ := b.Tokens.Proof(signedtoken.Token{MessageID: mine, Account: "former", Address: "ann@example.net"})
	for _, proof := range []string{
		got, own, strings.ToLower(gone) + own[26:], // the signature of one under the id of the other
		strings.ToLower(gone), gone + "-", own[:len(own)-16] + got[len(got)-16:],
	} {
		err := b.tell(said("complained", "ann@example.net", `"metadata":{"postroom_id":"`+proof+`"}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if got := b.suppressed("ann@example.net", "shop", ""); got != "" {
		t.Errorf("suppressed: %q", got)
	}
}

// An account sends mail through the provider that it shares with shop. The mail has the metadata of an email
// that it got from shop. What the provider reports about it is about the account's own mail.
func TestForgedMetadata(t *testing.T) {
	t.Parallel()
	const own = "01ARZ3NDEKTSV4RRFFQ69G5X00"
	for _, said := range []string{
		said("complained", "eve@example.net", `"metadata":{"postroom_id":"`+crowd+`"}`,
			`"providerMessageId":"r-1"`),
		said("bounced", "eve@example.net", hardBounce,
			`"messageId":"<`+crowd+`@shop.example>","providerMessageId":"r-1"`),
	} {
		b := setup(t)
		b.Suppression = perAccountOnly{b.list}
		b.box.messages[own] = outbox.Addressed{Known: true, Account: "rival", To: []string{"eve@example.net"}}
		b.box.know("generic:r-1", own)
		if err := b.tell(said); err != nil {
			t.Fatal(err)
		}
		if err := b.applyAll(); err != nil {
			t.Fatal(err)
		}
		if got := b.suppressed("eve@example.net", "shop", "news"); got != "" {
			t.Errorf("shop is stopped by %q", got)
		}
		if got := b.suppressed("eve@example.net", "rival", ""); got == "" {
			t.Error("the account's own mail is not stopped")
		}
	}
}

// perAccountOnly suppresses within the account, as suppression.scope account does.
type perAccountOnly struct{ *flaky }

func (perAccountOnly) WithDefaults(e suppression.Entry) suppression.Entry { return e }

func TestPoisonIsDroppedAfterSomeTries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	poison := func(facts []outbox.Fact) error {
		for _, f := range facts {
			if f.Recipient == "poison@example.net" {
				panic("no such thing was ever seen")
			}
		}
		return nil
	}
	b.box.failWith(poison)
	if err := b.db.Client().XAdd(t.Context(), redisXAdd(urgent, "{not json")).Err(); err != nil {
		t.Fatal(err)
	}
	for _, recipient := range []string{"ann@example.net", "poison@example.net", "ann@example.net"} {
		if err := b.tell(said("complained", recipient, byEcho, fmt.Sprintf(`"id":"%s-%d"`, recipient,
			len(b.entries(urgent))))); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	b.eventually("the others are applied", func() bool { return len(b.box.all()) == 2 })
	b.eventually("the poison is dropped", func() bool { return b.counts("generic")["failed"] == 1 })
	b.eventually("nothing is left", func() bool { return len(b.entries(urgent)) == 0 })
	if diff := cmp.Diff(map[string]int64{"received": 3, "applied": 2, "failed": 1},
		b.counts("generic")); diff != "" {
		t.Error(diff)
	}
}

// While the outbox can't be reached, nothing is lost and nothing is dropped.
func TestNothingIsDroppedWhileRedisIsAway(t *testing.T) {
	b := setup(t)
	var tries atomic.Int64
	b.box.failWith(func([]outbox.Fact) error {
		if tries.Add(1) > 2*maxTries {
			return nil
		}
		return fault.New(fault.Unavailable, "RedisAway", "away")
	})
	if err := b.tell(said("complained", "ann@example.net", byEcho)); err != nil {
		t.Fatal(err)
	}
	for range 2 * maxTries {
		if err := b.applyAll(); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"received": 1, "applied": 1}, b.counts("generic")); diff != "" {
		t.Error(diff)
	}
}
