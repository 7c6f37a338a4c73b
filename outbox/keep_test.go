package outbox

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/outbox/suppression"
)

// contentTTL is the time to live of a message's content: -2 if there is none, -1 if it does not expire.
func (b *bundle) contentTTL(t *testing.T, id string) time.Duration {
	t.Helper()
	p, err := b.store.place(id)
	must(t, err)
	ttl, err := b.store.DB.Client().PTTL(t.Context(), b.store.keys.content(p, id)).Result()
	must(t, err)
	return ttl
}

// isKept reports whether the content of an ended message can be read, and checks that all agree on it.
func (b *bundle) isKept(t *testing.T, id string) bool {
	t.Helper()
	m, err := b.Reader.Message(t.Context(), id)
	must(t, err)
	_, err = b.Reader.Mail(t.Context(), id)
	if err != nil && fault.CodeOf(err) != ContentNotKept {
		t.Fatal(err)
	}
	ttl := b.contentTTL(t, id)
	if kept := err == nil; kept != (m.ContentUntil != nil) || kept != (ttl > 0) {
		t.Fatalf("kept until %v, expires after %s, and reading it says %v", m.ContentUntil, ttl, err)
	}
	return err == nil
}

// TestContentOfASentMessageIsKept: it reads as before it was sent, whatever it was made from, sealed or not,
// and says until when.
func TestContentOfASentMessageIsKept(t *testing.T) {
	t.Parallel()
	yes := true
	for name, req := range map[string]api.SubmitRequest{
		"its own words":   {Subject: "Hello", Text: "Hello Ann", HTML: "<p>Hello Ann"},
		"a template":      {Template: "invoice", Render: &api.Render{Params: []byte(`{"total":7}`)}},
		"tracked links":   {HTML: `<a href="https://x.test/a">a</a>`, TrackOpens: &yes, TrackClicks: &yes},
		"additions, raw":  {Raw: []byte("From: a@x.test\r\nTo: ann@x.test\r\nSubject: s\r\n\r\nx\r\n"), ListID: "news"},
		"a large file":    {Text: "x", Attachments: []api.Attachment{{Filename: "a", Content: noisy(1 << 20)}}},
		"a merge":         {Subject: "{{params.name}}", Text: "Dear {{params.name}}", MailMerge: entries(1)},
		"no words at all": {Subject: "s"},
	} {
		for _, sealing := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", sealed"}[sealing], func(t *testing.T) {
				t.Parallel()
				b, req := setupMarked(t, Options{KeepContent: time.Hour, Seal: sealing}), req
				if req.MailMerge == nil {
					req.To = for1("ann@x.test")
				}
				a, err := b.Intake.Submit(t.Context(), req)
				must(t, err)
				id := a.QueueID
				if len(a.MailMerge) > 0 {
					id = a.MailMerge[0].QueueID
				}
				before := mustContent(t, b, id)
				b.deliver(t, id)
				after, err := b.Reader.Mail(t.Context(), id)
				must(t, err)
				if !bytes.Equal(before, after) {
					t.Errorf("before\n%.500s\nafter\n%.500s", before, after)
				}
				if !b.isKept(t, id) {
					t.Error("it is not kept")
				}
				m, err := b.Reader.Message(t.Context(), id)
				must(t, err)
				if left := m.ContentUntil.Sub(b.clock.Now()); left < 59*time.Minute || left > time.Hour+time.Second {
					t.Errorf("kept until %s, which is %s from now", m.ContentUntil, left)
				}
				p, _ := partitionOf(id, b.store.DB.Partitions())
				box, err := b.store.DB.Client().Get(t.Context(), b.store.keys.content(p, id)).Bytes()
				if err != nil || seal.IsBox(box) != sealing {
					t.Errorf("sealed: %v, %v", seal.IsBox(box), err)
				}
				if n := b.store.DB.Client().HLen(t.Context(), b.store.keys.quota(p)).Val(); n != 0 {
					t.Errorf("%d numbers of quotas count what was sent", n)
				}
			})
		}
	}
}

func noisy(n int) []byte {
	var all strings.Builder
	for all.Len() < n {
		all.WriteString(newID(storyBegin, 1))
	}
	return []byte(all.String())
}

// TestContentIsNotKept of what was not sent, of what has no entry in the log, and of what names an erased
// person.
func TestContentIsNotKept(t *testing.T) {
	t.Parallel()
	on := Options{KeepContent: time.Hour}
	deliver := func(t *testing.T, b *bundle, id string) { b.deliver(t, id) }
	for name, c := range map[string]struct {
		o    Options
		to   []string
		end  func(t *testing.T, b *bundle, id string)
		says string // "" if there is no entry in the log
	}{
		"the setting is off": {Options{}, nil, deliver, "not kept after sending (outbox.keepcontent)"},
		"it was cancelled": {on, nil, func(t *testing.T, b *bundle, id string) {
			_, err := b.Operations.Cancel(t.Context(), id, ReasonAPI)
			must(t, err)
		}, "cancelled is not kept"},
		"it failed, without dead letters": {Options{KeepContent: time.Hour, KeepDeadLetters: -1},
			[]string{"dead@x.test", "ann@x.test"}, deliver, "was not sent"},
		"its dead letter was deleted": {on, []string{"dead@x.test", "ann@x.test"},
			func(t *testing.T, b *bundle, id string) {
				b.deliver(t, id)
				_, err := b.Operations.DeleteDeadLetter(t.Context(), id)
				must(t, err)
			}, "was not sent"},
		"all are suppressed": {on, nil, func(t *testing.T, b *bundle, id string) {
			b.suppress(t, suppression.Entry{Address: "ann@x.test", Reason: suppression.Manual})
			b.deliver(t, id)
		}, "was not sent"},
		"there is no log": {Options{KeepContent: time.Hour, KeepEnded: -1}, nil, deliver, ""},
		"one of two was erased": {on, []string{"ann@x.test", "bob@x.test"},
			func(t *testing.T, b *bundle, id string) {
				b.erase(t, "", "ann@x.test")
				b.deliver(t, id)
			}, "is over"},
		"one of two was erased after": {on, []string{"ann@x.test", "bob@x.test"},
			func(t *testing.T, b *bundle, id string) {
				b.deliver(t, id)
				if !b.isKept(t, id) {
					t.Error("it was not kept before")
				}
				b.erase(t, "", "ann@x.test")
			}, "is over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSifted(t, c.o)
			b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
			if c.to == nil {
				c.to = []string{"ann@x.test"}
			}
			for _, template := range []string{"", "welcome"} { // welcome has shared content
				a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: toEach(c.to...), Template: template})
				must(t, err)
				c.end(t, b, a.QueueID)
				if ttl := b.contentTTL(t, a.QueueID); ttl != -2 {
					t.Errorf("its content expires after %s", ttl)
				}
				_, err = b.Reader.Mail(t.Context(), a.QueueID)
				if c.says == "" {
					c.says = "no message"
				}
				if !fault.Is(err, fault.NotFound) || !strings.Contains(strings.ToLower(err.Error()), c.says) {
					t.Errorf("reading it says %v", err)
				}
				if _, err := b.store.Suppressions.Remove(t.Context(), suppression.Entry{Address: "ann@x.test",
					Reason: suppression.Manual}); err != nil && !fault.Is(err, fault.NotFound) {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestKeptContentGoesByItself when its time is over, without any process.
func TestKeptContentGoesByItself(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepContent: 300 * time.Millisecond})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	if ttl := b.contentTTL(t, id); ttl <= 0 || ttl > time.Second {
		t.Errorf("expires after %s", ttl)
	}
	for began := time.Now(); b.contentTTL(t, id) != -2; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("it is still there")
		}
	}
	if b.isKept(t, id) {
		t.Error("it is said to be kept")
	}
	if m, err := b.Reader.Message(t.Context(), id); err != nil || m.Status != api.StatusSent {
		t.Errorf("its entry in the log: %+v, %v", m, err)
	}
}

// TestKeptContentGoesWithTheLog, even if the log is trimmed before its time is over.
func TestKeptContentGoesWithTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepContent: 100 * time.Hour, KeepEnded: time.Hour})
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Template: "welcome"})
	must(t, err)
	id := a.QueueID
	b.deliver(t, id)
	if ttl := b.contentTTL(t, id); ttl <= 0 || ttl > time.Hour {
		t.Errorf("expires after %s, and the log is kept for an hour", ttl)
	}
	b.clock.Advance(2 * time.Hour)
	must(t, b.Outbox.sweep(t.Context()))
	if ttl := b.contentTTL(t, id); ttl != -2 {
		t.Errorf("its entry is gone, and its content expires after %s", ttl)
	}
}

// TestSharedContentIsKeptAsLongAsItsMessages: for the longest of them, whatever ends last and however.
func TestSharedContentIsKeptAsLongAsItsMessages(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepContent: time.Hour})
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "Dear {{params.name}}",
		MailMerge: entries(3)})
	must(t, err)
	sent, sentLater, cancelled := a.MailMerge[0].QueueID, a.MailMerge[1].QueueID, a.MailMerge[2].QueueID
	ttls := func() (shared, kept time.Duration) {
		t.Helper()
		keys := b.store.DB.Client().Keys(t.Context(), redisdb.Key(0, "shared")+":*").Val()
		if len(keys) != 1 {
			t.Fatalf("shared contents: %v", keys)
		}
		pipe := b.store.DB.Client().TxPipeline() // at one time
		own, mark := pipe.PTTL(t.Context(), keys[0]),
			pipe.PTTL(t.Context(), strings.Replace(keys[0], "shared:", "sharedKept:", 1))
		_, err := pipe.Exec(t.Context())
		must(t, err)
		return own.Val(), mark.Val()
	}
	b.deliver(t, sent)
	if shared, kept := ttls(); shared != -1 || kept <= 59*time.Minute {
		t.Errorf("while a message waits: %s, %s", shared, kept)
	}
	b.store.opts.KeepContent = time.Minute // by another process
	b.deliver(t, sentLater)
	_, err = b.Operations.Cancel(t.Context(), cancelled, ReasonAPI)
	must(t, err)
	if shared, kept := ttls(); shared < kept || kept <= 59*time.Minute {
		t.Errorf("after all have ended it lives for %s, and the message for %s", shared, kept)
	}
	if !b.isKept(t, sent) || !b.isKept(t, sentLater) || b.isKept(t, cancelled) {
		t.Error("not those that were sent are kept")
	}
	again, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "Dear {{params.name}}",
		MailMerge: entries(1)})
	must(t, err)
	_, err = b.Operations.Cancel(t.Context(), again.MailMerge[0].QueueID, ReasonAPI)
	must(t, err)
	if shared, kept := ttls(); shared < kept {
		t.Errorf("after another message of it: %s, %s", shared, kept)
	}
	shared := b.store.DB.Client().Keys(t.Context(), redisdb.Key(0, "shared")+":*").Val()
	must(t, b.store.DB.Client().Del(t.Context(), shared...).Err())
	if _, err := b.Reader.Mail(t.Context(), sent); fault.CodeOf(err) != ContentNotKept {
		t.Errorf("without its shared content: %v", err)
	}
}

// TestIndexingLeavesKeptContent: the search index takes the text, which outlives the content.
func TestIndexingLeavesKeptContent(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepContent: time.Hour, KeepText: 1000})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	must(t, b.store.DB.Client().Del(t.Context(), b.store.keys.content(0, id)).Err())
	if docs, err := b.Reader.Documents(t.Context(), []string{id}); err != nil || docs[0].Text != "x" {
		t.Errorf("without the content the text is %+v, %v", docs, err)
	}
	id = b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	must(t, b.Reader.Indexed(t.Context(), []string{id}))
	if !b.isKept(t, id) {
		t.Error("the content went with the text")
	}
}

// TestKeptContentOfAReplay names the recipients that got it.
func TestKeptContentOfAReplay(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepContent: time.Hour})
	b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
	id := b.submit(t, api.SubmitRequest{To: for1("dead@x.test")})
	b.deliver(t, id)
	_, err := b.Operations.Replay(t.Context(), id, api.Corrections{To: api.Emails{"instead@x.test"}})
	must(t, err)
	before := mustContent(t, b, id)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "2")})
	if after, err := b.Reader.Mail(t.Context(), id); err != nil || !bytes.Equal(before, after) ||
		!bytes.Contains(after, []byte("instead@x.test")) {
		t.Errorf("%s\n%v", after, err)
	}
}
