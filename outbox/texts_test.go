package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testredis"
)

// No shown text of a message has a link that proves anything. That includes its content when some recipients
// got it, and the text that is kept for the search when it was refused or sent.
func TestWhatIsShownProvesNothing(t *testing.T) {
	t.Parallel()
	yes := true
	b := setupMarked(t, Options{KeepText: 20_000})
	b.store.Templates = listTemplates{}
	b.sender.replies["dead@x.test"] = "550 5.1.1 no such user"
	b.sender.replies["full@x.test"] = "452 4.2.2 mailbox full"
	submit := func(to ...string) string {
		req := api.SubmitRequest{Template: "foot", TrackOpens: &yes, TrackClicks: &yes}
		if len(to) == 1 {
			req.ListID = "news"
		}
		for _, address := range to {
			req.To = append(req.To, api.Address{Address: address})
		}
		a, err := b.Intake.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		b.deliver(t, a.QueueID)
		return a.QueueID
	}
	onlyPreviews(t, b, mustContent(t, b, submit("ann@x.test", "full@x.test")))
	docs, err := b.Reader.Documents(t.Context(), []string{submit("dead@x.test"), submit("ann@x.test")})
	if err != nil || len(docs) != 2 {
		t.Fatal(docs, err)
	}
	for _, d := range docs {
		for _, link := range signedLink.FindAllStringSubmatch(d.Text, -1) {
			if _, err := b.store.Tokens.Read(signedtoken.Unsubscribe, link[2]); !errors.Is(err,
				signedtoken.ErrPreview) {
				t.Errorf("%s: the text of the search has %s: %v", d.Status, link[0], err)
			}
		}
		if !strings.Contains(d.Text, "/unsubscribe?t=") {
			t.Errorf("%s: the text is %q", d.Status, d.Text)
		}
	}
}

// TestTextsForTheIndex asks for messages in every state: those that wait are read, of those that ended the
// text is kept until it is indexed.
func TestTextsForTheIndex(t *testing.T) {
	t.Parallel()
	for _, sealing := range []bool{false, true} {
		b := setupOn(t, spread(t), Options{KeepText: 20, Seal: sealing})
		b.textsForTheIndex(t)
	}
}

func (b *bundle) textsForTheIndex(t *testing.T) {
	t.Helper()
	b.sender.replies["dead@x.test"] = "550 5.1.1 no such user"
	submit := func(req api.SubmitRequest) string {
		a, err := b.Intake.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return a.QueueID
	}
	words := "Hello Ann, this is more than is kept of it"
	waits := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: words})
	large := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: words, Attachments: []api.Attachment{
		{Content: []byte(strings.Repeat("a", 1<<20))}}})
	shared := submit(api.SubmitRequest{To: for1("ann@x.test"), Template: "invoice"})
	sent := submit(api.SubmitRequest{To: for1("ann@x.test"), HTML: "<p>Hello <b>Bob</b></p>"})
	words = strings.Repeat("long ", 4000)
	sentLong := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: words})
	sentLetter := submit(api.SubmitRequest{To: for1("ann@x.test"), Template: "invoice", Render: &api.Render{
		Params: []byte(`{"total":7}`)}})
	forgotten := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: "not indexed in time"})
	dead := submit(api.SubmitRequest{To: for1("dead@x.test"), Text: "dead"})
	cancelled := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: "cancelled"})
	for _, id := range []string{sent, sentLong, sentLetter, forgotten, dead} {
		b.deliver(t, id)
	}
	if _, err := b.Operations.Cancel(t.Context(), cancelled, ReasonAPI); err != nil {
		t.Fatal(err)
	}

	ask := func() map[string]string {
		docs, err := b.Reader.Documents(t.Context(), []string{waits, large, shared, sent, sentLong, sentLetter,
			dead,
			cancelled, "nothing", newID(storyBegin, 1)})
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for _, d := range docs {
			all[d.QueueID] = string(d.Status) + ": " + d.Text
			if !d.TextKnown {
				all[d.QueueID] = string(d.Status) + ", text unknown"
			}
		}
		return all
	}
	want := map[string]string{
		waits: "queued: Hello Ann, this is m", large: "queued: Hello Ann, this is m", shared: "queued: Total: 0",
		sent: "sent: Hello Bob", sentLong: "sent: " + strings.TrimSpace(words[:20]), sentLetter: "sent: Total: 7",
		dead: "dead: dead", cancelled: "cancelled, text unknown",
	}
	if diff := cmp.Diff(want, ask()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := b.Reader.Indexed(t.Context(), []string{sent, dead, "nothing"}); err != nil {
		t.Fatal(err)
	}
	want[sent] = "sent, text unknown"
	if p, _ := partitionOf(forgotten, b.store.DB.Partitions()); b.store.DB.Client().Exists(t.Context(),
		b.store.keys.content(p, forgotten)).Val() != 1 {
		t.Error("the content of a mail that is not indexed is gone")
	}
	p, _ := partitionOf(sent, b.store.DB.Partitions())
	if n, err := b.store.DB.Client().Exists(t.Context(), b.store.keys.content(p, sent)).Result(); n != 0 ||
		err != nil {
		t.Errorf("the content that told the text is still there, %v", err)
	}
	if p, _ = partitionOf(dead, b.store.DB.Partitions()); b.store.DB.Client().Exists(t.Context(),
		b.store.keys.content(p, dead)).Val() != 1 {
		t.Error("a dead letter lost its content")
	}
	if diff := cmp.Diff(want, ask()); diff != "" {
		t.Errorf("after it was indexed (-want +got)\n%s", diff)
	}

	b.store.opts.KeepEnded = 1 // what the log forgets has no text either
	b.clock.Advance(1e9)
	if _, err := (&retention{d: b.Operations}).tidy(t.Context(), b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if p, _ = partitionOf(forgotten, b.store.DB.Partitions()); b.store.DB.Client().Exists(t.Context(),
		b.store.keys.content(p, forgotten)).Val() != 0 {
		t.Error("a content is left of a message that the log forgot")
	}
	for p := range b.store.DB.Partitions() {
		if n, err := b.store.DB.Client().HLen(t.Context(), b.store.keys.texts(p)).Result(); n != 0 || err != nil {
			t.Errorf("partition %d keeps %d texts, %v", p, n, err)
		}
	}
}

func TestNoTextsWithoutAnIndex(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	docs, err := b.Reader.Documents(t.Context(), []string{id})
	if err != nil || len(docs) != 1 || docs[0].TextKnown {
		t.Errorf("%+v, %v", docs, err)
	}
	b.deliver(t, id)
	if n, err := b.store.DB.Client().Exists(t.Context(), b.store.keys.texts(0)).Result(); n != 0 || err != nil {
		t.Errorf("a text is kept for nobody, %v", err)
	}
}

// TestTextsAreBounded: while the index is behind, some texts go instead of being kept without end, with the
// contents that stayed for them.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.Open(t, redisdb.Options{}), Options{KeepText: 100})
	const most = 100_000
	ctx, rdb, texts := t.Context(), b.store.DB.Client(), b.store.keys.texts(0)
	for first := 0; first < most; first += 1000 { // other tests use this server
		pipe := rdb.Pipeline()
		for i := range 1000 {
			id := fmt.Sprint("id", first+i)
			pipe.HSet(ctx, texts, id, keptContent)
			pipe.Set(ctx, b.store.keys.content(0, id), "content", 0)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	const ended = 200
	var last string
	for range ended {
		last = b.submit(t, text("default", "ann@x.test"))
		b.deliver(t, last)
		b.clock.Advance(time.Millisecond)
	}
	kept, contents := rdb.HLen(ctx, texts).Val(), 0
	err := b.store.DB.Scan(ctx, b.store.keys.all("content"), func(keys []string) error {
		contents += len(keys)
		return nil
	})
	if err != nil || kept > most+ended/2 || kept < most-ended*2 || int(kept) != contents {
		t.Errorf("%d texts, %d contents, %v", kept, contents, err)
	}
	if rdb.HGet(ctx, texts, last).Val() == "" {
		t.Error("the last text is gone")
	}
}
