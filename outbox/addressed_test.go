package outbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/suppression"
)

// mailTo returns the ids of the messages to an address, newest first.
func (b *bundle) mailTo(t *testing.T, account, address string, most int) (ids []string) {
	t.Helper()
	traces, err := message.NewTraces(address)
	if err != nil {
		t.Fatal(err)
	}
	found, partial, err := b.Reader.To(t.Context(), Whom{Traces: traces, Account: account}, most)
	if err != nil || partial {
		t.Fatal(partial, err)
	}
	for _, m := range found {
		ids = append(ids, m.QueueID)
	}
	return ids
}

func newestFirst(ids ...string) []string {
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

// TestFoundByAddress: messages are found by the address of any recipient, however it is spelt, in all
// partitions: those that wait, and those in the log.
func TestFoundByAddress(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	both := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "Ann@X.test"}, {Address: "bob@x.test"}}})
	other := b.submit(t, api.SubmitRequest{Account: "other", To: for1("ann@x.test")})
	b.deliver(t, both)
	for _, c := range []struct {
		account, address string
		want             []string
	}{
		{"", "ann@x.test", newestFirst(both, other)},
		{"", "ANN@x.TEST", newestFirst(both, other)},
		{"other", "ann@x.test", []string{other}},
		{"", "bob@x.test", []string{both}},
		{"", "joann@x.test", nil},
	} {
		if got := b.mailTo(t, c.account, c.address, 10); !slices.Equal(got, c.want) {
			t.Errorf("%s in account %q: %v, want %v", c.address, c.account, got, c.want)
		}
	}
	if got := b.mailTo(t, "", "ann@x.test", 1); !slices.Equal(got, newestFirst(both, other)[:1]) {
		t.Errorf("the newest: %v", got)
	}
}

// A message that is not sent, because its recipient is suppressed, and one that was given another recipient,
// are found, too.
func TestSkippedAndCorrectedAreFoundByAddress(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.HardBounce})
	skipped := b.submit(t, api.SubmitRequest{To: for1("dead@x.test")})
	if got := b.mailTo(t, "", "dead@x.test", 10); !slices.Equal(got, []string{skipped}) {
		t.Errorf("what was skipped: %v", got)
	}
	b.sender.replies["amn@x.test"] = "550 5.1.1 no such user"
	failed := b.submit(t, api.SubmitRequest{To: for1("amn@x.test")})
	b.deliver(t, failed)
	if _, err := b.Operations.Replay(t.Context(), failed,
		api.Corrections{To: api.Emails{"ann@x.test"}}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"amn@x.test", "ann@x.test"} {
		if got := b.mailTo(t, "", to, 10); !slices.Equal(got, []string{failed}) {
			t.Errorf("%s, of a message that was corrected: %v", to, got)
		}
	}
}

// The notes do not grow with deleted messages: their notes go as others come. Notes of messages that wait for
// long stay.
func TestNotesOfAddressesDoNotPileUp(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: time.Minute})
	req := api.SubmitRequest{To: for1("ann@x.test")}
	waits := b.submit(t, req)
	for range 20 {
		for range 16 {
			b.deliver(t, b.submit(t, req))
		}
		b.clock.Advance(2 * time.Minute)
		must(t, b.sweep(t.Context()))
	}
	key := b.store.keys.addressed(b.store.partition(waits), notedOf("ann@x.test").bucket)
	notes, err := b.store.DB.Client().LLen(t.Context(), key).Result()
	if err != nil || notes < 17 || notes > 100 {
		t.Errorf("%d notes of 320 messages that are gone: %v", notes, err)
	}
	if got := b.mailTo(t, "", "ann@x.test", 10); !slices.Contains(got, waits) {
		t.Errorf("found: %v, without %s, which waits", got, waits)
	}
	if ttl := b.store.DB.Client().TTL(t.Context(), key).Val(); ttl < addressedFor-time.Hour {
		t.Errorf("the notes go after %s", ttl)
	}
}

// An erased address leads to nothing, and no note of it is left.
func TestErasedIsNotFoundByAddress(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	both := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}})
	for i := range 3 {
		b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Subject: fmt.Sprint(i)})
	}
	b.erase(t, "", "ann@x.test")
	at := notedOf("ann@x.test")
	for p := range b.store.DB.Partitions() {
		if n := b.store.DB.Client().LLen(t.Context(), b.store.keys.addressed(p, at.bucket)).Val(); n != 0 {
			t.Errorf("%d notes of the address are left", n)
		}
	}
	if got := b.mailTo(t, "", "bob@x.test", 10); !slices.Equal(got, []string{both}) {
		t.Errorf("of the other recipient: %v", got)
	}
}
