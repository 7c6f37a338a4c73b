package outbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
)

// under gives an outbox other secrets, the current one first, and says whether it seals.
func (b *bundle) under(t *testing.T, sealing bool, secrets ...string) *seal.Ring {
	t.Helper()
	older := make([][]byte, 0, len(secrets))
	for _, s := range secrets {
		older = append(older, []byte(strings.Repeat(s, 32)))
	}
	ring, err := seal.New(older[0], older[1:]...)
	must(t, err)
	b.store.codec.sealer, err = newSealer(ring, sealing)
	must(t, err)
	b.store.shared.cache = newSharedContents(b.store).cache // another process has not read anything yet
	clear(b.store.shared.stored)
	return ring
}

// boxes returns the keys with a sealed value, and the ids of key id that their boxes have.
func (b *bundle) boxes(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(key, value string) {
		if seal.IsBox([]byte(value)) {
			all[key] = fmt.Sprintf("%x", value[1:5])
		}
	}
	for _, key := range b.store.DB.Client().Keys(t.Context(), "*").Val() {
		note(key, b.store.DB.Client().Get(t.Context(), key).Val()) // nothing if it isn't a string
		if strings.Contains(key, ":dialogues:") {
			for field, box := range b.store.DB.Client().HGetAll(t.Context(), key).Val() {
				note(key+" "+field, box)
			}
		}
	}
	for p := range b.store.DB.Partitions() {
		for id, text := range b.store.DB.Client().HGetAll(t.Context(), b.store.keys.texts(p)).Val() {
			note("text of "+id, strings.TrimPrefix(text, keptText))
		}
	}
	return all
}

// mixed submits one message of each kind to an address: short, long, with a large file, and two of a merge
// with a large file.
func (b *bundle) mixed(t *testing.T, to string) (ids []string) {
	t.Helper()
	for _, req := range []api.SubmitRequest{{Text: "short"}, {Text: strings.Repeat("long ", 100_000)},
		{Attachments: []api.Attachment{{Content: noise(t, 1<<20)}}, Text: "large"}} {
		req.To = for1(to)
		answer, err := b.Intake.Submit(t.Context(), req)
		must(t, err)
		ids = append(ids, answer.QueueID)
	}
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "Dear {{params.name}}",
		Attachments: []api.Attachment{{Content: noise(t, 1<<20)}}, MailMerge: []api.MailMergeEntry{
			{To: api.Address{Address: to}, Params: []byte(`{"name":"Ann"}`)},
			{To: api.Address{Address: to}, Params: []byte(`{"name":"Bob"}`)}}})
	must(t, err)
	for _, one := range answer.MailMerge {
		ids = append(ids, one.QueueID)
	}
	return ids
}

// TestSealedAndUnsealedMailTogether: processes that seal and others that do not read each other's mail, know
// each other's idempotency keys, and may be changed while mail is queued.
func TestSealedAndUnsealedMailTogether(t *testing.T) {
	t.Parallel()
	db := spread(t)
	on, off := setupOn(t, db, Options{Seal: true, KeepText: 100}), setupOn(t, db, Options{KeepText: 100})
	other := map[*bundle]*bundle{on: off, off: on}
	for _, b := range []*bundle{on, off} {
		got := other[b].inbox(t)
		for i, id := range b.mixed(t, "ann@x.test") {
			want := mustContent(t, b, id)
			if read := mustContent(t, other[b], id); !bytes.Equal(read, want) {
				t.Errorf("message %d: read as %d bytes of %d", i, len(read), len(want))
			}
			other[b].deliver(t, id)
			if sent := got["ann@x.test"]; len(sent) != i+1 || !bytes.Equal(sent[i], want) {
				t.Errorf("message %d was not sent as it was accepted", i)
			}
			for _, reader := range []*bundle{on, off} {
				docs, err := reader.Reader.Documents(t.Context(), []string{id})
				if err != nil || len(docs) != 1 || !docs[0].TextKnown {
					t.Errorf("message %d: its text is not kept: %+v, %v", i, docs, err)
				}
			}
		}
		for kind, req := range map[string]api.SubmitRequest{
			"one":   {To: for1("ann@x.test"), Text: "a", IdempotencyKey: fmt.Sprint("one", b == on)},
			"merge": {MailMerge: entries(2), Text: "a", IdempotencyKey: fmt.Sprint("merge", b == on)},
		} {
			_, err := b.Intake.Submit(t.Context(), req)
			must(t, err)
			again, err := other[b].Intake.Submit(t.Context(), req)
			if err != nil || again.Idempotency == nil || again.Idempotency.Status != keyHit {
				t.Errorf("%s, repeated: %+v, %v", kind, again.Idempotency, err)
			}
			req.Text = "b"
			if _, err := other[b].Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
				t.Errorf("%s, another body: %v", kind, err)
			}
		}
	}
}

// TestHashesOfSealedMailNeedTheSecret: who reads Redis can't try what an email may say.
func TestHashesOfSealedMailNeedTheSecret(t *testing.T) {
	t.Parallel()
	names := map[bool]string{}
	for _, sealing := range []bool{false, true} {
		b := setup(t, Options{Seal: sealing})
		_, err := b.Intake.Submit(t.Context(), api.SubmitRequest{IdempotencyKey: "k", Text: "Your code is 123456",
			MailMerge: entries(1)})
		must(t, err)
		key := b.store.DB.Client().Get(t.Context(), b.store.keys.idempotency(0, keyHash("default", "k"))).Val()
		names[sealing] = key + strings.Join(slices.Collect(maps.Keys(b.sharedIn(t))), " ")
	}
	if plain := strings.Fields(names[false]); strings.Contains(names[true], plain[0]) ||
		strings.Contains(names[true], plain[1]) || len(names[true]) != len(names[false]) {
		t.Errorf("sealed %q, not sealed %q", names[true], names[false])
	}
}

// TestMailUnderALostSecretWaits: it is neither sent nor lost, spends no attempt, and goes when the secret is
// back.
func TestMailUnderALostSecretWaits(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{})
	b.under(t, true, "a")
	got, ids := b.inbox(t), b.mixed(t, "ann@x.test")
	want := map[string][]byte{}
	for _, id := range ids {
		want[id] = mustContent(t, b, id)
	}
	ring := b.under(t, true, "b")
	for range 30 { // more than there are attempts, or workers that may die over a message
		for _, id := range ids {
			b.deliver(t, id)
		}
		b.clock.Advance(2 * time.Minute)
	}
	if len(got) > 0 {
		t.Fatalf("sent: %v", slices.Collect(maps.Keys(got)))
	}
	for _, id := range ids {
		m, err := b.Reader.Get(t.Context(), id)
		if err != nil || m.State != api.Delayed || m.AttemptsMade != 0 ||
			!strings.Contains(m.Reason, "secretPrevious") {
			t.Errorf("%s is %s after %d attempts, for %q, %v", id, m.State, m.AttemptsMade, m.Reason, err)
		}
		if _, err := b.Reader.Content(t.Context(), id); fault.CodeOf(err) != notOpened {
			t.Errorf("its content: %v", err)
		}
	}
	if refused := strings.Join(ring.Refused(), " "); !strings.Contains(refused, contentName(ids[0])) ||
		!strings.Contains(refused, contentName(ids[2])) {
		t.Errorf("the alert names %s", refused)
	}
	b.under(t, false, "b", "a")
	for i, id := range ids {
		b.deliver(t, id)
		if sent := got["ann@x.test"]; len(sent) != i+1 || !bytes.Equal(sent[i], want[id]) {
			t.Errorf("message %d did not go when the secret was back", i)
		}
	}
}

// TestAContentMovedToAnotherMessage does not open: its message becomes a dead letter, and the alert names it.
func TestAContentMovedToAnotherMessage(t *testing.T) {
	t.Parallel()
	b, _, server := connected(t, testredis.New(t))
	ring := b.under(t, true, "a")
	for _, size := range []int{100, 1 << 20} {
		from, to := b.attach(t, size), b.attach(t, size)
		foreign := b.store.DB.Client().Get(t.Context(), b.store.keys.content(0, from)).Val()
		must(t, b.store.DB.Client().Set(t.Context(), b.store.keys.content(0, to), foreign, 0).Err())
		b.deliver(t, to)
		if _, err := b.Reader.Get(t.Context(), to); fault.CodeOf(err) != "MessageFailed" || server.Count() > 0 {
			t.Errorf("%d bytes: %v, and %d arrived", size, err, server.Count())
		}
		if refused := ring.Refused(); !slices.Equal(refused, []string{contentName(to)}) {
			t.Errorf("%d bytes: the alert names %v", size, refused)
		}
	}
}

// TestRotationSealsContentsAgain: without the older secret everything is readable afterwards. Lifetimes stay.
func TestRotationSealsContentsAgain(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepText: 100})
	b.under(t, true, "a")
	b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
	got := b.inbox(t)
	ids := b.mixed(t, "ann@x.test")
	dead := b.mixed(t, "dead@x.test")
	ended := b.mixed(t, "ended@x.test")
	for _, id := range append(dead, ended...) {
		b.deliver(t, id)
	}
	unused := b.mixed(t, "unused@x.test")
	for _, id := range unused {
		if _, err := b.Operations.Cancel(t.Context(), id, ReasonAPI); err != nil {
			t.Fatal(err)
		}
	}
	before, lives := b.boxes(t), map[string]time.Duration{}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(key string) bool {
		return strings.Contains(key, ":dialogues:")
	}) {
		t.Error("no dialogue is sealed")
	}
	for key := range before {
		lives[key] = b.store.DB.Client().TTL(t.Context(), key).Val()
	}
	want := map[string][]byte{}
	for _, id := range append(ids, dead...) {
		want[id] = contentAnyway(t, b, id)
	}

	b.under(t, true, "b", "a")
	body, _ := b.Delivery.body(b.store.partition(ids[2]), ids[2], "", len(want[ids[2]])) // sent in the meantime
	sending, err := body.Open(t.Context())
	must(t, err)
	begun := make([]byte, 200<<10)
	_, err = io.ReadFull(sending, begun)
	must(t, err)

	b.interrupt(t)
	done := 0
	n, err := b.Operations.Reseal(t.Context(), func(_, sealed int) { done = sealed })
	if err != nil || n == 0 || n >= len(before) || done != n {
		t.Errorf("sealed %d, told %d, of %d, %v", n, done, len(before), err)
	}
	if n, err := b.Operations.Reseal(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("once more: %d, %v", n, err)
	}
	rest, err := io.ReadAll(sending)
	if err != nil || !bytes.Equal(append(begun, rest...), want[ids[2]]) {
		t.Errorf("what was being sent: %d bytes, %v", len(begun)+len(rest), err)
	}
	after := b.boxes(t)
	if len(after) != len(before) {
		t.Errorf("%d boxes of %d", len(after), len(before))
	}
	for key, id := range after {
		left := b.store.DB.Client().TTL(t.Context(), key).Val()
		if id == before[key] || left > lives[key] || (left > 0) != (lives[key] > 0) {
			t.Errorf("%s: under %s, before %s; lives for %s, before %s", key, id, before[key], left, lives[key])
		}
	}
	b.under(t, true, "b")
	for i, id := range ids {
		b.deliver(t, id)
		if sent := got["ann@x.test"]; len(sent) != i+1 || !bytes.Equal(sent[i], want[id]) {
			t.Errorf("message %d was not sent as it was accepted", i)
		}
	}
	for _, id := range dead {
		if !bytes.Equal(contentAnyway(t, b, id), want[id]) {
			t.Errorf("a dead letter changed")
		}
	}
	docs, err := b.Reader.Documents(t.Context(), ended)
	must(t, err)
	for _, d := range docs {
		if !d.TextKnown {
			t.Errorf("%s: its text is lost", d.QueueID)
		}
	}
}

// contentAnyway is the content of a message or dead letter.
func contentAnyway(t *testing.T, b *bundle, id string) []byte {
	t.Helper()
	r, err := b.Reader.read(t.Context(), id)
	must(t, err)
	content, err := b.store.contentOf(t.Context(), r)
	must(t, err)
	return content
}

// interrupt begins a rotation and ends it in the middle: between two contents, and after a large one was
// stored to be renamed.
func (b *bundle) interrupt(t *testing.T) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	r := &resealing{Operations: b.Operations, told: func(int, int) {}}
	must(t, b.store.DB.Scan(ctx, b.store.keys.all("content"), func(keys []string) error {
		if r.done == 0 {
			must(t, r.values(ctx, keys[:min(2, len(keys))]))
		}
		return nil
	}))
	kill()
	if _, err := b.Operations.Reseal(ctx, nil); err == nil {
		t.Error("a killed rotation succeeded")
	}
	for _, key := range b.store.DB.Client().Keys(t.Context(), b.store.keys.all("content")).Val() {
		incoming := strings.Replace(key, ":content:", ":incoming:", 1)
		must(t, b.store.DB.Client().Set(t.Context(), incoming, "left behind", incomingFor).Err())
	}
}

// TestRotationLosesNoMail: messages come and end, and two rotations run, at the same time.
func TestRotationLosesNoMail(t *testing.T) {
	t.Parallel()
	db := spread(t)
	b := setupOn(t, db, Options{})
	b.under(t, true, "a")
	var mu sync.Mutex
	old := make([]string, 0, 100)
	want := map[string][]byte{}
	for i := range 60 {
		size := 100
		if i%10 == 0 {
			size = small + 1000
		}
		id := b.attach(t, size)
		old, want[id] = append(old, id), mustContent(t, b, id)
	}
	b.under(t, true, "b", "a")
	got := b.inbox(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if _, err := b.Operations.Reseal(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for _, id := range old[:30] {
			b.deliver(t, id)
		}
	})
	wg.Go(func() {
		for range 30 {
			id := b.attach(t, 100)
			mu.Lock()
			want[id] = mustContent(t, b, id)
			mu.Unlock()
		}
	})
	wg.Wait()
	b.under(t, true, "b")
	for id := range want {
		b.deliver(t, id)
	}
	arrived := map[string]int{}
	for _, raw := range got["ann@x.test"] {
		arrived[string(raw)]++
	}
	for id, raw := range want {
		if arrived[string(raw)] != 1 {
			t.Errorf("%s arrived %d times", id, arrived[string(raw)])
		}
	}
	if left := b.store.DB.Client().Keys(t.Context(), "*content*").Val(); len(left) > 0 {
		t.Errorf("contents are left: %v", left)
	}
}

// TestRotationNamesWhatDoesNotOpen, and does the rest.
func TestRotationNamesWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{})
	b.under(t, true, "lost")
	var lost []string
	for range resealNamed + 3 {
		lost = append(lost, b.attach(t, 10))
	}
	b.under(t, true, "a")
	b.attach(t, 10)
	b.under(t, true, "b", "a")
	n, err := b.Operations.Reseal(t.Context(), nil)
	if n != 1 || err == nil || strings.Count(err.Error(), "content:") != resealNamed ||
		!strings.Contains(err.Error(), "and 3 more") {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := b.Operations.Cancel(t.Context(), lost[0], ReasonAPI); err != nil {
		t.Errorf("a message that does not open can't be cancelled: %v", err)
	}
}

// TestSealingNeedsARing: otherwise bodies would be stored readable.
func TestSealingNeedsARing(t *testing.T) {
	if _, err := newSealer(nil, true); err == nil {
		t.Error("it was made without a ring")
	}
}

// TestRotationOnACluster visits every master.
func TestRotationOnACluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Topology{})
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: cluster.URL(), Partitions: 6})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	b := setupOn(t, db, Options{KeepText: 100})
	b.under(t, true, "a")
	ids := b.mixed(t, "ann@x.test")
	for range 4 {
		ids = append(ids, b.mixed(t, "ann@x.test")...)
	}
	want := map[string][]byte{}
	for _, id := range ids {
		want[id] = mustContent(t, b, id)
	}
	b.under(t, true, "b", "a")
	if n, err := b.Operations.Reseal(t.Context(), nil); n < len(ids)+5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	b.under(t, true, "b")
	for _, id := range ids {
		if !bytes.Equal(mustContent(t, b, id), want[id]) {
			t.Errorf("%s changed", id)
		}
	}
}
