package outbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// naming returns the keys that have a text in their name or value, whatever form the value is packed in.
// Suppressions have a separate test.
func (b *bundle) naming(t *testing.T, text string) (keys []string) {
	t.Helper()
	c, ctx := b.store.DB.Client(), t.Context()
	has := func(value string) bool {
		plain, _ := b.store.jsons.raw([]byte(value))
		unpacked, _ := b.store.codec.unpackAll([]byte(strings.TrimLeft(value, keptText+keptContent)), "", 1<<20)
		return strings.Contains(strings.ToLower(value+string(plain)+string(unpacked)), text)
	}
	look := func(key string) bool {
		switch kind := c.Type(ctx, key).Val(); kind {
		case "string":
			return has(c.Get(ctx, key).Val())
		case "hash":
			for field, value := range c.HGetAll(ctx, key).Val() {
				if has(field) || has(value) {
					return true
				}
			}
		case "zset":
			return slices.ContainsFunc(c.ZRange(ctx, key, 0, -1).Val(), has)
		case "set":
			return slices.ContainsFunc(c.SMembers(ctx, key).Val(), has)
		case "list":
			return slices.ContainsFunc(c.LRange(ctx, key, 0, -1).Val(), has)
		case "stream":
			for _, one := range c.XRange(ctx, key, "-", "+").Val() {
				for _, value := range one.Values {
					if has(value.(string)) {
						return true
					}
				}
			}
		}
		return false
	}
	if err := b.store.DB.Scan(ctx, "*", func(some []string) error {
		for _, key := range some {
			if !strings.Contains(key, "}:suppression:") && (strings.Contains(strings.ToLower(key), text) ||
				look(key)) {
				keys = append(keys, key)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

func (b *bundle) erase(t *testing.T, account, address string) map[string]int {
	t.Helper()
	traces, err := message.NewTraces(address)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	tally := func(place string, n int) error { found[place] += n; return nil }
	w := Whom{Traces: traces, Account: account}
	if err := b.Operations.Erase(t.Context(), w, tally); err != nil {
		t.Fatal(err)
	}
	if err := b.Operations.EraseEvents(t.Context(), w, tally); err != nil {
		t.Fatal(err)
	}
	return found
}

func toEach(addresses ...string) (all api.Addresses) {
	for _, one := range addresses {
		all = append(all, api.Address{Address: one})
	}
	return all
}

func TestErasedPersonIsNowhereInTheOutbox(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"": {KeepText: 1000},
		"contents are kept": {KeepText: 1000, KeepContent: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			erasesAPerson(t, setupSifted(t, o))
		})
	}
}

func erasesAPerson(t *testing.T, b *bundle) {
	t.Helper()
	const ann, bob = "ann.quux@x.test", "bob@x.test"
	submit := func(to ...string) string {
		return b.submit(t, api.SubmitRequest{To: toEach(to...), Subject: "Hello", Text: "Dear " + to[0]})
	}
	b.sender.replies[ann] = "550 5.1.1 <" + ann + "> unknown"
	dead, deadOfTwo := submit(ann), submit(ann, bob)
	b.deliver(t, dead)
	b.deliver(t, deadOfTwo)
	b.sender.replies[ann] = ""
	sent, sentToTwo, other := submit("Ann.QUUX@x.test"), submit(bob, ann), submit(bob)
	merge, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "Dear {{params.name}}",
		MailMerge: []api.MailMergeEntry{{To: api.Address{Address: ann}, Params: []byte(`{"name":"Quux"}`)},
			{To: api.Address{Address: bob}}}})
	must(t, err)
	personal, ofOther := merge.MailMerge[0].QueueID, merge.MailMerge[1].QueueID
	for _, id := range []string{sent, sentToTwo, other, personal, ofOther} {
		b.deliver(t, id)
	}
	if b.store.opts.KeepContent > 0 {
		for _, id := range []string{sent, sentToTwo, other, personal, ofOther} {
			if !b.isKept(t, id) {
				t.Errorf("%s is not kept", id)
			}
		}
	}
	b.learn(t, Fact{Type: event.MessageBounce, MessageID: sent, Recipient: ann, Key: "1"},
		Fact{Type: event.MessageBounce, MessageID: sentToTwo, Recipient: ann, Key: "2"},
		Fact{Type: event.MessageBounce, MessageID: sentToTwo, Recipient: bob, Key: "3"},
		Fact{Type: event.MessageBounce, Recipient: ann, Key: "4", Account: "default"})
	live, liveToTwo := submit(ann), submit(ann, bob)

	if own := len(b.personal(t, ann)); own != 7 {
		t.Errorf("%d messages to the person, want 7", own)
	}
	found := b.erase(t, "", ann)
	for place, want := range map[string]int{PlaceOutbox: 2, PlaceDeadLetters: 2, PlaceMessages: 3} {
		if found[place] != want {
			t.Errorf("%s: %d, want %d", place, found[place], want)
		}
	}
	if found[PlaceEvents] == 0 {
		t.Error("no event was deleted")
	}
	for place, n := range b.erase(t, "", ann) {
		t.Errorf("again: %d of %s", n, place)
	}
	// the content of what somebody else is still to get stays until it ends
	if left := b.naming(t, "quux"); len(left) != 1 || !strings.HasSuffix(left[0], "content:"+liveToTwo) {
		t.Errorf("left: %v", left)
	}
	to := b.sentTo()
	b.deliver(t, liveToTwo)
	if !slices.Equal(*to, []string{bob}) {
		t.Errorf("mailed %v", *to)
	}
	if err := b.Reader.Indexed(t.Context(), []string{liveToTwo}); err != nil {
		t.Fatal(err)
	}
	if left := b.naming(t, "quux"); len(left) > 0 {
		t.Errorf("left at the end: %v", left)
	}
	for _, id := range []string{dead, sent, live, personal} {
		if _, err := b.Reader.Message(t.Context(), id); err == nil {
			t.Errorf("message %s is in the log", id)
		}
	}
	for _, id := range []string{deadOfTwo, sentToTwo, liveToTwo, other} {
		m, err := b.Reader.Message(t.Context(), id)
		if err != nil || !slices.Contains(m.Envelope.To, bob) || id != other && !slices.Contains(m.Envelope.To,
			message.Erased) {
			t.Errorf("message %s: %+v, %v", id, m.Envelope, err)
		}
	}
	for _, id := range []string{other, ofOther} {
		if b.store.opts.KeepContent > 0 && !b.isKept(t, id) {
			t.Errorf("the content of %s, to others alone, is gone", id)
		}
	}
	story, err := b.Reader.MessageEvents(t.Context(), sentToTwo)
	if err != nil || !slices.ContainsFunc(story.Events, func(e api.MessageEvent) bool {
		return e.Event == string(event.MessageBounce) && slices.Equal(e.Recipients, []string{bob})
	}) {
		t.Errorf("the bounce of the other: %+v, %v", story, err)
	}
}

func (b *bundle) personal(t *testing.T, address string) (ids []string) {
	t.Helper()
	traces, err := message.NewTraces(address)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Operations.Personal(t.Context(), Whom{Traces: traces}, func(m api.LoggedMessage) error {
		ids = append(ids, m.QueueID)
		if len(m.Envelope.To) != 1 || len(m.Recipients) != 1 || !traces.Is(m.Envelope.To[0]) {
			t.Errorf("others are named: %+v", m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestErasureStaysWithinItsAccount(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	mine := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Text: "x", Account: "shop"})
	others := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Text: "x"})
	b.deliver(t, others)
	if found := b.erase(t, "shop", "ann@x.test"); found[PlaceOutbox] != 1 || found[PlaceMessages] != 0 {
		t.Errorf("erased %v", found)
	}
	if _, err := b.Reader.Message(t.Context(), mine); err == nil {
		t.Error("the message of the account is still there")
	}
	if m, err := b.Reader.Message(t.Context(), others); err != nil || m.Envelope.To[0] != "ann@x.test" {
		t.Errorf("the message of another account: %+v, %v", m.Envelope, err)
	}
	if left := b.eventsOf(t, event.MessageSent); len(left) != 1 {
		t.Errorf("events of the other account: %v", left)
	}
}

// TestAStalledWorkerBringsNobodyBack: the lease of an attempt ends, one of its recipients is erased, and then
// the result of the attempt comes. The reply that it wants to note names the recipient.
func TestAStalledWorkerBringsNobodyBack(t *testing.T) {
	t.Parallel()
	const ann, bob = "ann.quux@x.test", "bob@x.test"
	b := setup(t, Options{})
	id := b.submit(t, api.SubmitRequest{To: toEach(ann, bob), Text: "x"})
	b.sender.replies[ann], b.sender.replies[bob] = "451 4.7.1 <"+ann+"> later", "451 4.7.1 later"
	b.sender.got = func(smtpsend.Message) {
		b.sender.got = nil
		b.clock.Advance(time.Minute)
		sweep(t, b)
		b.erase(t, "", ann)
	}
	b.deliver(t, id)
	b.sender.replies[bob] = ""
	to := b.sentTo()
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "2")})
	if !slices.Equal(*to, []string{bob}) {
		t.Errorf("mailed %v", *to)
	}
	if left := b.naming(t, "quux"); len(left) > 0 {
		t.Errorf("stored again: %v", left)
	}
}

// Who reads events late gets them before they go.
func TestEventsWaitForTheirReaders(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Text: "x"})
	c, key := b.store.DB.Client(), b.store.keys.events(0)
	if err := c.XGroupCreate(t.Context(), key, "reader", "0").Err(); err != nil {
		t.Fatal(err)
	}
	e := &eventErasing{Operations: b.Operations, key: key}
	if until, err := e.read(t.Context()); until != "" || err != nil {
		t.Errorf("unread: up to %q, %v", until, err)
	}
	read, err := c.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "reader", Consumer: "c",
		Streams: []string{key, ">"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	id := read[0].Messages[0].ID
	if until, err := e.read(t.Context()); !before(until, id) || err != nil {
		t.Errorf("being read: up to %q, %v", until, err)
	}
	c.XAck(t.Context(), key, "reader", id)
	if until, err := e.read(t.Context()); until != id || err != nil {
		t.Errorf("read: up to %q, %v", until, err)
	}
}

// What a program submits later does not bring the address back.
func TestSubmitsDoNotStoreErasedAddresses(t *testing.T) {
	t.Parallel()
	db := spread(t)
	b := setupOn(t, db, Options{})
	b.sifts(t, suppression.Options{Ring: b.store.Ring})
	if err := b.store.Suppressions.Erase(t.Context(), "", "ann.quux@x.test",
		func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	to := b.sentTo()
	for range 2 { // before this process looked for anybody, and after
		a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann.quux@x.test"), Subject: "Hello",
			Text: "x"})
		if err != nil || !a.NoneQueued() || a.Skipped.Reason != "erased" {
			t.Fatalf("answered %+v, %v", a, err)
		}
		a, err = b.Intake.Submit(t.Context(), api.SubmitRequest{To: toEach("bob@x.test", "ann.quux@x.test"),
			Text: "x"})
		if err != nil || a.Skipped == nil || a.NoneQueued() {
			t.Fatalf("answered %+v, %v", a, err)
		}
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, firstEpoch)})
	}
	if !slices.Equal(*to, []string{"bob@x.test", "bob@x.test"}) {
		t.Errorf("mailed %v", *to)
	}
	if got := b.learn(t, Fact{Type: event.MessageBounce, Recipient: "ann.quux@x.test", Key: "1",
		Account: "default"},
		Fact{Type: event.MessageBounce, Recipient: "bob@x.test", Key: "2", Account: "default"}); got[0] !=
		FactUnmatched || got[1] != FactRecorded {
		t.Errorf("facts: %v", got)
	}
	if left := b.naming(t, "quux"); len(left) > 0 {
		t.Errorf("stored again: %v", left)
	}
}
