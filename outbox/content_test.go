package outbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

// direct always sends to one relay, without routes.
type direct struct {
	sender *smtpsend.Sender
	relay  smtpsend.Relay
	body   smtpsend.Body // the last message's
}

// ExpectWaiting implements outbox.Router.
func (*direct) ExpectWaiting(string, int) {}

// Answers implements outbox.Router.
func (*direct) Answers(string) bool { return true }

// Instead implements outbox.Router.
func (*direct) Instead(accounts.Sender, api.Lane, string) string { return "" }

// Slots implements outbox.Router.
func (*direct) Slots(string, api.Lane) int { return 1 }

func (d *direct) Send(ctx context.Context, in routing.Dispatch) routing.Sent {
	d.body = in.Message.Body
	began := time.Now()
	result, err := d.sender.Send(ctx, d.relay, in.Message)
	return routing.Sent{Tries: []routing.Try{{Start: began, End: time.Now(), Result: result, Err: err}},
		Result: result, Err: err}
}

// connected is an outbox that sends to a real relay.
func connected(t *testing.T, db *redisdb.DB) (*bundle, *direct, *testsmtp.Server) {
	t.Helper()
	server := testsmtp.Start(t, testsmtp.Options{})
	sender, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close() })
	b := setupOn(t, db, Options{})
	d := &direct{sender: sender, relay: smtpsend.Relay{Host: server.Host(), Port: server.Port(),
		TLS: smtpsend.TLSNone}}
	b.Outbox.store.Router = d
	return b, d, server
}

// attach submits a message with a file that can't be compressed.
func (b *bundle) attach(t *testing.T, size int) string {
	t.Helper()
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{
		To: api.Addresses{{Address: "ann@x.test"}}, Text: "x", Attachments: []api.Attachment{
			{Filename: "x.bin", Content: noise(t, size)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer.QueueID
}

// TestContentsOfAllSizesArrive: what is sent is what was accepted, fetched with the claim or in pieces,
// unpacked in one piece or in several.
func TestContentsOfAllSizesArrive(t *testing.T) {
	t.Parallel()
	for _, sealing := range []bool{false, true} {
		b, d, server := connected(t, testredis.New(t))
		b.under(t, sealing, "a")
		b.contentsArrive(t, d, server)
	}
}

func (b *bundle) contentsArrive(t *testing.T, d *direct, server *testsmtp.Server) {
	t.Helper()
	for n, row := range []struct {
		name  string
		size  int
		whole bool
	}{
		{"no file to speak of", 1, true},
		{"just one piece", small / 2, true},
		{"with the claim, and large when unpacked", small - 20<<10, false},
		{"in two pieces", small + small/2, false},
		{"large", 5 << 20, false},
	} {
		id := b.attach(t, row.size)
		want, err := b.Reader.Content(t.Context(), id)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		b.deliver(t, id)
		if got := server.Wait(n + 1)[n].Data; !bytes.Equal(got, want) {
			t.Errorf("%s: %d octets arrived, and %d were accepted", row.name, len(got), len(want))
		}
		if _, whole := d.body.(smtpsend.Bytes); whole != row.whole {
			t.Errorf("%s: held as %T", row.name, d.body)
		}
	}
}

// TestContentThatIsNotWhatWasAccepted: a content that changed in Redis is not sent, and the dead letter says
// why.
func TestContentThatIsNotWhatWasAccepted(t *testing.T) {
	t.Parallel()
	for _, sealing := range []bool{false, true} {
		b, _, server := connected(t, testredis.New(t))
		b.under(t, sealing, "a")
		b.changedContents(t, server)
	}
}

func (b *bundle) changedContents(t *testing.T, server *testsmtp.Server) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := encoder.EncodeAll(bytes.Repeat([]byte("0123456789\r\n"), 20<<20/12), nil)
	for _, size := range []int{100, 2 << 20} {
		for _, row := range []struct {
			name   string
			change func(packed []byte) []byte
		}{
			{"gone", func([]byte) []byte { return nil }},
			{"without its end", func(p []byte) []byte { return p[:len(p)-10] }},
			{"without its checksum", func(p []byte) []byte { return p[:len(p)-4] }},
			{"a bit of it turned", func(p []byte) []byte { p[len(p)/2] ^= 1; return p }},
			{"no content at all", func([]byte) []byte { return []byte("hello") }},
			{"less than there was", func([]byte) []byte {
				return encoder.EncodeAll([]byte("Subject: x\r\n\r\nhello\r\n"), nil)
			}},
			{"far more than there was", func([]byte) []byte { return bomb }},
			{"more of it behind", func(p []byte) []byte {
				return append(p, encoder.EncodeAll([]byte("more\r\n"), nil)...)
			}},
		} {
			id := b.attach(t, size)
			key, packed := b.store.keys.content(0, id), []byte(b.store.DB.Client().Get(t.Context(),
				b.store.keys.content(0, id)).Val())
			if changed := row.change(packed); changed != nil {
				b.store.DB.Client().Set(t.Context(), key, changed, 0)
			} else {
				b.store.DB.Client().Del(t.Context(), key)
			}
			b.deliver(t, id)
			page, err := b.Reader.DeadLetters(t.Context(), api.OutboxQuery{})
			if err != nil || len(page.DeadLetters) != 1 {
				t.Fatalf("%d octets, %s: %d dead letters, %v", size, row.name, len(page.DeadLetters), err)
			}
			if why := page.DeadLetters[0].Progress.Error; why == nil ||
				!strings.Contains(why.Message, "the content of the message can't be read") {
				t.Errorf("%d octets, %s: %+v", size, row.name, why)
			}
			if _, err := b.Operations.DeleteDeadLetter(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if server.Count() > 0 {
		t.Errorf("%d messages arrived", server.Count())
	}
}

// TestRedisGoesAwayInTheMiddleOfAContent: nothing is delivered, and the message is tried again.
func TestRedisGoesAwayInTheMiddleOfAContent(t *testing.T) {
	t.Parallel()
	process := testredis.Server(t)
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: process.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b, d, server := connected(t, db)
	id := b.attach(t, 3<<20)
	size := len(mustContent(t, b, id))
	body, _ := b.Delivery.body(0, id, "", size)
	content, err := body.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if _, err := io.CopyN(io.Discard, content, 1<<20); err != nil {
		t.Fatal(err)
	}
	process.Kill()
	if _, err = io.Copy(io.Discard, content); !fault.Is(err, fault.Unavailable) {
		t.Errorf("read on: %v", err)
	}
	_, err = d.sender.Send(t.Context(), d.relay, smtpsend.Message{To: []string{"ann@x.test"}, Body: body})
	if e, ok := errors.AsType[*smtpsend.Error](err); !ok || e.Permanent() || e.InDoubt || server.Count() > 0 {
		t.Errorf("sent: %v", err)
	}
	process.Restart(t)
	if content, err = body.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if n, err := io.Copy(io.Discard, content); err != nil || n != int64(size) {
		t.Errorf("read anew: %d octets of %d, %v", n, size, err)
	}
}

func mustContent(t *testing.T, b *bundle, id string) []byte {
	t.Helper()
	content, err := b.Reader.Content(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestUnpackingStopsAtTheSize: no more is unpacked than the size in the record.
func TestUnpackingStopsAtTheSize(t *testing.T) {
	c, err := newCodec(sealer{})
	if err != nil {
		t.Fatal(err)
	}
	packed := c.pack(make([]byte, 100<<20), "", false)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if content, err := c.unpack(packed, "", 1000); err == nil {
		t.Errorf("%d octets unpacked", len(content))
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}

// TestOneDecoderServesOneContentAfterTheOther, whether it was read to its end or not.
func TestOneDecoderServesOneContentAfterTheOther(t *testing.T) {
	t.Parallel()
	c, err := newCodec(sealer{})
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789\r\n"), 100_000)
	packed := c.pack(content, "", false)
	broken := errors.New("broken")
	for i := range 20 {
		source := io.Reader(bytes.NewReader(packed))
		if i%3 == 1 {
			source = io.MultiReader(bytes.NewReader(packed[:len(packed)/2]), iotest.ErrReader(broken))
		}
		r, err := c.stream(source)
		if err != nil {
			t.Fatal(err)
		}
		switch got, err := io.ReadAll(io.LimitReader(r, int64(len(content)/(1+i%3)))); {
		case i%3 == 0 && (err != nil || !bytes.Equal(got, content)):
			t.Fatalf("content %d: %d octets, %v", i, len(got), err)
		case i%3 == 1 && !errors.Is(err, broken):
			t.Fatalf("content %d: %d octets, %v", i, len(got), err)
		case i%3 == 2 && (err != nil || !bytes.HasPrefix(content, got)):
			t.Fatalf("content %d: %d octets, %v", i, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPreparedContentsAreTheSame: only an equal content gets what was prepared before.
func TestPreparedContentsAreTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	content := render.Content{Source: render.Source{Text: "Hello {{params.a}}"}, Locale: "en"}
	first, err := b.Intake.shared.prepare(t.Context(), content)
	must(t, err)
	again, err := b.Intake.shared.prepare(t.Context(), content)
	must(t, err)
	content.Locale = "de"
	other, err := b.Intake.shared.prepare(t.Context(), content)
	must(t, err)
	if again != first || other.name == first.name || other.renderer.Content().Locale != "de" {
		t.Errorf("prepared %s, again %s, in another language %s", first.name, again.name, other.name)
	}
}

// TestFingerprintsTellRequestsApart: a file counts with its bytes and its position, and takes no memory.
func TestFingerprintsTellRequestsApart(t *testing.T) {
	file := func(text string) api.Attachment { return api.Attachment{Filename: "f", Content: []byte(text)} }
	seen := map[string]int{}
	for i, req := range []api.SubmitRequest{
		{Text: "x"},
		{Raw: []byte("ab")},
		{Raw: []byte("ac")},
		{Attachments: []api.Attachment{file("ab")}},
		{Attachments: []api.Attachment{file("ac")}},
		{Attachments: []api.Attachment{file("a"), file("b")}},
		{Attachments: []api.Attachment{file("b"), file("a")}},
		{Attachments: []api.Attachment{file(""), file("ab")}},
		{Attachments: []api.Attachment{{Filename: "g", Content: []byte("ab")}}},
		{HTML: "x"}, {HTML: "y"}, {HTML: "x", Text: "x"}, {HTML: "x", Render: &api.Render{}},
		{HTML: "x", Render: &api.Render{Params: []byte(`{"a":1}`)}},
		{HTML: "x", Render: &api.Render{Params: []byte(`{"a":2}`)}},
		{HTML: "x", Render: &api.Render{Params: []byte(`{"a":1}`), Missing: "error"}},
	} {
		req.IdempotencyKey = "k"
		print := fingerprint(req)
		if before, ok := seen[print]; ok {
			t.Errorf("requests %d and %d have the same", before, i)
		}
		seen[print] = i
		if req.IdempotencyKey = "l"; fingerprint(req) != print || req.Attachments != nil &&
			req.Attachments[0].Content == nil {
			t.Errorf("request %d: the key counts, or the request was changed", i)
		}
	}
	spaced := api.SubmitRequest{HTML: "x", Render: &api.Render{Params: []byte(` {"a": 1}`)}}
	if _, ok := seen[fingerprint(spaced)]; !ok || spaced.HTML == "" || spaced.Render.Params == nil {
		t.Error("the blanks of params count, or the request was changed")
	}
	large := api.SubmitRequest{IdempotencyKey: "k", Raw: make([]byte, 8<<20), Attachments: []api.Attachment{
		{Content: make([]byte, 8<<20)}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fingerprint(large)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}

// TestLargeContentsLeaveNothingBehind: the stored content of a message that is refused or a HIT is deleted.
func TestLargeContentsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{MaxLive: 1})
	req := api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Attachments: []api.Attachment{
		{Content: noise(t, 1<<20)}}, IdempotencyKey: "k"}
	first, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Intake.Submit(t.Context(), req)
	if err != nil || again.QueueID != first.QueueID || again.Idempotency.Status != "HIT" {
		t.Errorf("once more: %+v, %v", again, err)
	}
	req.Attachments = []api.Attachment{{Content: noise(t, 1<<20)}}
	if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
		t.Errorf("another under the same key: %v", err)
	}
	req.IdempotencyKey = "l"
	if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "OutboxFull" {
		t.Errorf("one too many: %v", err)
	}
	large := b.store.keys.content(0, first.QueueID)
	for _, key := range b.store.DB.Client().Keys(t.Context(), "*").Val() {
		if key != large && b.store.DB.Client().MemoryUsage(t.Context(), key).Val() > 100<<10 {
			t.Errorf("%s is left", key)
		}
	}
	if ttl := b.store.DB.Client().TTL(t.Context(), large).Val(); ttl != -1 {
		t.Errorf("the content is kept for %s", ttl)
	}
}

// TestAContentLostOnItsWayIn: if Redis lost the incoming content, as after a failover, the message is not
// accepted, and the client may retry.
func TestAContentLostOnItsWayIn(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{})
	m := &newMessage{id: newID(b.clock.Now(), 0),
		envelope: envelope{Account: "default", MessageID: "<1@x.test>", From: "shop@x.test",
			To: []string{"ann@x.test"}, Size: 1 << 20},
		content: noise(t, 1<<20), lane: api.Transactional, attempts: 10,
	}
	if err := b.Intake.encode(m); err != nil {
		t.Fatal(err)
	}
	if in := b.Intake.bringIn(t.Context(), []*newMessage{m}); len(in) != 1 {
		t.Fatal(m.result.Err)
	}
	b.store.DB.Client().FlushDB(t.Context())
	answer, err := acceptScript.Run(t.Context(), b.store.DB.Client(), m.keys, m.args)
	if err := b.Intake.refusal(t.Context(), m, answer, err); !fault.Is(err, fault.Unavailable) {
		t.Errorf("accepted with %v", err)
	}
	if left := b.store.DB.Client().DBSize(t.Context()).Val(); left > 0 {
		t.Errorf("%d keys are left", left)
	}
}

func noise(t *testing.T, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}
