package outbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// entries returns n entries of a merge, each with a name.
func entries(n int) []api.MailMergeEntry {
	list := make([]api.MailMergeEntry, n)
	for i := range list {
		list[i] = api.MailMergeEntry{To: api.Address{Address: fmt.Sprintf("r%d@x.test", i)},
			Params: fmt.Appendf(nil, `{"name":"N%d"}`, i)}
	}
	return list
}

// inbox is the mail that the relay got, by recipient.
func (b *bundle) inbox(t *testing.T) map[string][][]byte {
	t.Helper()
	got := make(map[string][][]byte)
	b.sender.got = func(m smtpsend.Message) {
		body, err := m.Body.Open(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		raw, err := io.ReadAll(body)
		if err != nil || body.Close() != nil {
			t.Error(err)
		}
		for _, to := range m.To {
			got[to] = append(got[to], raw)
		}
	}
	return got
}

// sharedIn lists the shared contents in Redis, and how many messages there are of each.
func (b *bundle) sharedIn(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for p := range b.store.DB.Partitions() {
		keys, err := b.store.DB.Client().Keys(t.Context(), redisdb.Key(p, "shared")+":*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			name := key[strings.LastIndexByte(key, ':')+1:]
			users, _ := b.store.DB.Client().HGet(t.Context(), redisdb.Key(p, "sharedUsers"),
				name).Result() // none: nobody
			all[fmt.Sprint(p, " ", name)] = users
		}
	}
	return all
}

func TestMergeKeepsOneSharedContent(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	got := b.inbox(t)
	file := make([]byte, 1<<20)
	_, _ = rand.Read(file) // never fails
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{
		Subject:     "Hello {{params.name}}",
		HTML:        "<p>Dear {{params.name}}, {{account.email}} writes to {{rcpt.address}}</p>",
		MailMerge:   entries(600),
		Attachments: []api.Attachment{{Filename: "a.bin", Content: file}}, Tags: []string{"all"},
	})
	if err != nil || len(answer.MailMerge) != 600 {
		t.Fatalf("%d results, %v", len(answer.MailMerge), err)
	}
	contents := b.sharedIn(t)
	if len(contents) != 1 {
		t.Errorf("shared contents %v, want one", contents)
	}
	for _, users := range contents {
		if users != "600" {
			t.Errorf("%s messages need the content, want 600", users)
		}
	}
	for i, r := range answer.MailMerge {
		if !r.Success || r.To.Address != fmt.Sprintf("r%d@x.test", i) {
			t.Fatalf("result %d is %+v", i, r)
		}
	}
	for _, i := range []int{0, 17, 599} {
		b.deliver(t, answer.MailMerge[i].QueueID)
		mails := got[fmt.Sprintf("r%d@x.test", i)]
		if len(mails) != 1 {
			t.Fatalf("message %d was sent %d times", i, len(mails))
		}
		m, err := mail.ReadMessage(bytes.NewReader(mails[0]))
		if err != nil || m.Header.Get("Subject") != fmt.Sprintf("Hello N%d", i) ||
			m.Header.Get("Message-Id") != answer.MailMerge[i].MessageID {
			t.Errorf("message %d: %v, %v", i, m.Header, err)
		}
		if !bytes.Contains(mails[0], fmt.Appendf(nil, "r%d@x.test", i)) || len(mails[0]) < 1<<20 {
			t.Errorf("message %d has %d bytes, or lacks its recipient", i, len(mails[0]))
		}
	}
	if _, err := b.Operations.CancelAll(t.Context(), api.OutboxQuery{Tag: "all"}, ReasonAPI); err != nil {
		t.Fatal(err)
	}
	for where, users := range b.sharedIn(t) {
		if users != "" {
			t.Errorf("content %s is needed by %s messages that are gone", where, users)
		}
		ttl, err := b.store.DB.Client().TTL(t.Context(), redisdb.Key(0, "shared",
			strings.Fields(where)[1])).Result()
		if err != nil || ttl <= 0 {
			t.Errorf("a content that nobody needs stays for %s, %v", ttl, err)
		}
	}
}

func TestMergeAnswersEachEntry(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	later := storyBegin.Add(time.Hour)
	list := entries(6)
	list[1].To.Address = "nobody"
	list[2].Params = nil
	list[3].SendAt, list[3].MessageID, list[3].Metadata = &later, "<own@x.test>", []byte(`{"order":7}`)
	list[4].Metadata = []byte(`{"a":"` + strings.Repeat("b", 5000) + `"}`)
	list[5].To.Name = "Eve\r\nBcc: all@x.test"
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Template: "strict", MailMerge: list,
		Metadata: []byte(`{"campaign":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		Success bool
		Status  int
		Code    string
		Keys    string
	}
	var results []result
	for _, r := range answer.MailMerge {
		one := result{Success: r.Success, Status: r.StatusCode, Code: r.Code}
		for _, f := range r.Fields {
			one.Keys += f.Key + " "
		}
		results = append(results, one)
	}
	want := []result{
		{Success: true}, {Status: 400, Keys: "to.address "}, {Status: 422, Code: "TemplateVariablesMissing",
			Keys: "text "}, {Success: true},
		{Status: 400, Keys: "metadata "}, {Status: 400, Keys: "to.name "},
	}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	own := answer.MailMerge[3]
	m, err := b.Reader.Get(t.Context(), own.QueueID)
	if err != nil || own.MessageID != "<own@x.test>" || !own.SendAt.Equal(later) || m.State != api.Scheduled ||
		string(m.Metadata) != `{"order":7}` {
		t.Errorf("%+v, %+v, %v", own, m, err)
	}
	m, err = b.Reader.Get(t.Context(), answer.MailMerge[0].QueueID)
	if err != nil || string(m.Metadata) != `{"campaign":1}` || m.Template == nil ||
		*m.Template != (api.TemplateRef{ID: "strict", Version: 2}) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestMergeEntryTooLarge has an entry whose params make its message too large, at each place.
func TestMergeEntryTooLarge(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxSize: 20_000})
	for at := range 3 {
		list := entries(3)
		list[at].Params = []byte(`{"name":"` + strings.Repeat("x", 15_000) + `"}`)
		answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "{{params.name}}", MailMerge: list,
			Attachments: []api.Attachment{{Content: make([]byte, 5000)}}})
		if err != nil {
			t.Fatalf("entry %d: %v", at, err)
		}
		for i, r := range answer.MailMerge {
			if r.Success != (i != at) || i == at && r.Code != "MessageTooLarge" {
				t.Errorf("entry %d is too large, and entry %d was answered %+v", at, i, r)
			}
		}
	}
}

func TestMergeRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxSize: 20_000})
	for name, c := range map[string]struct {
		req  api.SubmitRequest
		kind fault.Kind
		keys string
	}{
		"recipients beside it": {api.SubmitRequest{To: for1("ann@x.test"), BCC: for1("ann@x.test"), Text: "x"},
			fault.Invalid, "to bcc "},
		"params beside it": {api.SubmitRequest{Text: "x", Render: &api.Render{Params: []byte(`{}`)}},
			fault.Invalid, "render.params "},
		"a header of lines": {
			api.SubmitRequest{Text: "x", Headers: api.Headers{"X-A": {"b\r\nBcc: eve@x.test"}}}, fault.Invalid,
			"headers.X-A "},
		"words with a fault": {api.SubmitRequest{Text: "{{#if x}}"}, fault.Unprocessable, "text "},
		"no such template":   {api.SubmitRequest{Template: "nowhere"}, fault.NotFound, ""},
		"template and text":  {api.SubmitRequest{Template: "welcome", Text: "x"}, fault.Invalid, "text "},
		"no such time zone":  {api.SubmitRequest{Text: "x", TZ: "Mars/Olympus"}, fault.Invalid, "tz "},
		"a file too large": {
			api.SubmitRequest{Text: "x", Attachments: []api.Attachment{{Content: make([]byte, 20_000)}}},
			fault.TooLarge, ""},
		"no such gateway": {api.SubmitRequest{Text: "x", Gateway: "nowhere"}, fault.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.MailMerge = entries(2)
			answer, err := b.Intake.Submit(t.Context(), c.req)
			var keys string
			if f := (*fault.Error)(nil); err != nil {
				f, _ = err.(*fault.Error)
				for _, field := range f.Fields {
					keys += field.Key + " "
				}
			}
			if fault.KindOf(err) != c.kind || keys != c.keys {
				t.Errorf("%+v, %v (%s), want %s %s", answer, err, keys, c.kind, c.keys)
			}
		})
	}
	if n, err := b.store.DB.Client().DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("refusals left %d keys behind, %v", n, err)
	}
}

func TestMergeUnderOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	ids := func(a api.SubmitAnswer) (all []string) {
		for _, r := range a.MailMerge {
			all = append(all, r.QueueID)
		}
		return all
	}
	req := api.SubmitRequest{Template: "welcome", MailMerge: entries(300), IdempotencyKey: "march"}
	req.MailMerge[5].IdempotencyKey = "five"

	// A process that died in the middle had claimed the key and accepted some.
	cut, _, err := b.Intake.open(t.Context(), sharedOf(req, SourceAPI), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut.claim(t.Context(), req.IdempotencyKey, req); err != nil {
		t.Fatal(err)
	}
	accepted, err := cut.Accept(t.Context(), cut.mergeEntries(req, req)[:100])
	if err != nil {
		t.Fatal(err)
	}

	first, err := b.Intake.Submit(t.Context(), req)
	if err != nil || first.Idempotency == nil || first.Idempotency.Status != "HIT" ||
		first.Idempotency.Key != "march" {
		t.Fatalf("%+v, %v", first.Idempotency, err)
	}
	for i, r := range first.MailMerge {
		known := i < 100
		if !r.Success || (r.Idempotency.Status == "HIT") != known || known && r.QueueID != accepted[i].ID {
			t.Fatalf("entry %d: %+v", i, r)
		}
	}
	again, err := b.Intake.Submit(t.Context(), req)
	if diff := cmp.Diff(ids(first), ids(again)); err != nil || diff != "" {
		t.Errorf("another answer: %v\n%s", err, diff)
	}

	other := req
	other.MailMerge = append(entries(300), api.MailMergeEntry{To: api.Address{Address: "new@x.test"}})
	if _, err := b.Intake.Submit(t.Context(), other); fault.CodeOf(err) != "IdempotencyKeyReused" {
		t.Errorf("another merge under the same key: %v", err)
	}
	if _, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x",
		IdempotencyKey: "march"}); fault.CodeOf(err) != "IdempotencyKeyReused" {
		t.Errorf("another message under the same key: %v", err)
	}
	single := api.SubmitRequest{Template: "welcome", MailMerge: entries(1)}
	single.MailMerge[0].IdempotencyKey = "five"
	reused, err := b.Intake.Submit(t.Context(), single)
	if err != nil || reused.MailMerge[0].Code != "IdempotencyKeyReused" ||
		reused.MailMerge[0].StatusCode != 422 {
		t.Errorf("an entry with the key of another one: %+v, %v", reused.MailMerge, err)
	}
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{})
	if err != nil || page.Total != 300 {
		t.Errorf("%d messages, want 300, %v", page.Total, err)
	}
}

func TestMergeIntoAFullOutbox(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxLive: 100})
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "x", MailMerge: entries(2000)})
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for _, r := range answer.MailMerge {
		switch {
		case r.Success:
			accepted++
		case r.StatusCode == 503 && r.Code == "OutboxFull":
			refused++
		default:
			t.Fatalf("%+v", r)
		}
	}
	if accepted != 100 || refused != 1900 {
		t.Errorf("%d accepted and %d refused, want 100 and 1900", accepted, refused)
	}
	if _, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "x",
		MailMerge: entries(10)}); fault.CodeOf(
		err) != "OutboxFull" {
		t.Errorf("a merge of which nothing was taken: %v", err)
	}
}

func TestMergeDryRun(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	list := entries(20)
	list[3].To.Address = "nobody"
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Template: "welcome", MailMerge: list,
		DryRun: true})
	if err != nil || len(answer.MailMerge) != 20 {
		t.Fatalf("%+v, %v", answer, err)
	}
	shown := 0
	for i, r := range answer.MailMerge {
		if r.QueueID != "" || r.Success != (i != 3) {
			t.Errorf("entry %d: %+v", i, r)
		}
		if len(r.Preview) > 0 {
			shown++
			if !bytes.Contains(r.Preview, fmt.Appendf(nil, "Subject: Welcome N%d\r\n", i)) {
				t.Errorf("preview %d is\n%s", i, r.Preview)
			}
		}
	}
	if n, err := b.store.DB.Client().DBSize(t.Context()).Result(); shown != 10 || err != nil || n != 0 {
		t.Errorf("%d previews; a dry run left %d keys behind, %v", shown, n, err)
	}
}

// TestTemplateIsFilledInWhenSent: a message has the text that its template had when it was accepted, at every
// attempt. Its content over the API is the same.
func TestTemplateIsFilledInWhenSent(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	got := b.inbox(t)
	b.sender.replies["ann@x.test"] = "451 4.7.1 later"
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{
		To: api.Addresses{{Name: "Ann", Address: "ann@x.test"}}, BCC: for1("boss@x.test"), Template: "welcome",
		Render: &api.Render{Params: []byte(`{"name":"Ann & Co"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.store.DB.Client().StrLen(t.Context(), b.store.keys.content(0, a.QueueID)).Result()
	if err != nil || stored > 200 {
		t.Errorf("the message keeps %d bytes of its own, %v", stored, err)
	}
	content, err := b.Reader.Content(t.Context(), a.QueueID)
	if err != nil {
		t.Fatal(err)
	}
	for epoch := 1; epoch <= 3; epoch++ {
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, fmt.Sprint(epoch))})
		b.clock.Advance(time.Hour)
	}
	if len(got["ann@x.test"]) != 3 || len(got["boss@x.test"]) != 1 {
		t.Fatalf("%d and %d attempts, want 3 and 1", len(got["ann@x.test"]), len(got["boss@x.test"]))
	}
	for n, one := range got["ann@x.test"] {
		if !bytes.Equal(one, content) {
			t.Errorf("attempt %d differs from the content:\n%s\n%s", n+1, one, content)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil || m.Header.Get("Subject") != "Welcome Ann & Co" || m.Header.Get("Bcc") != "" {
		t.Errorf("%v, %v", m.Header, err)
	}
	if body, err := io.ReadAll(m.Body); err != nil || !bytes.Contains(body, []byte("Hello Ann &amp; Co")) ||
		!bytes.Contains(body, []byte("Hello Ann & Co")) {
		t.Errorf("%s, %v", body, err)
	}

	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	b.clock.Advance(time.Hour)
	b.deliver(t, a.QueueID)
	dead, err := b.Reader.DeadLetter(t.Context(), a.QueueID)
	if err != nil || !bytes.Equal(dead.Content, content) || dead.Template == nil ||
		dead.Template.ID != "welcome" {
		t.Errorf("dead letter %+v, %v", dead, err)
	}
	b.sender.replies["ann@x.test"] = ""
	if _, err := b.Operations.Replay(t.Context(), a.QueueID, api.Corrections{}); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, a.QueueID)
	if last := got["ann@x.test"]; !bytes.Equal(last[len(last)-1], content) {
		t.Error("the replay said something else")
	}
	logged, err := b.Reader.Message(t.Context(), a.QueueID)
	if err != nil || logged.Status != api.StatusSent || logged.Size != len(content) || logged.Template == nil {
		t.Errorf("%+v, %v", logged, err)
	}
}

// TestSharedContentTakenAway deletes shared contents in Redis.
func TestSharedContentTakenAway(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	req := api.SubmitRequest{To: for1("ann@x.test"), Template: "welcome"}
	flush := func() {
		keys, err := b.store.DB.Client().Keys(t.Context(), redisdb.Key(0, "shared")+":*").Result()
		if err != nil || len(keys) != 1 {
			t.Fatalf("%v, %v", keys, err)
		}
		if err := b.store.DB.Client().Del(t.Context(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
		b.store.shared.cache = newSharedContents(b.store).cache // as another process
	}
	first, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	flush()
	if _, err := b.Reader.Content(t.Context(), first.QueueID); fault.CodeOf(err) != "ContentGone" {
		t.Errorf("the content of a message without its shared content: %v", err)
	}
	b.deliver(t, first.QueueID)
	dead, err := b.Reader.read(t.Context(), first.QueueID)
	if err != nil || dead.state != stateFailed || dead.status.Last.Code != "EMESSAGE" {
		t.Errorf("%+v, %v", dead, err)
	}
	second, err := b.Intake.Submit(t.Context(), req) // this process believes the content to be there
	if err != nil {
		t.Fatal(err)
	}
	b.deliver(t, second.QueueID)
	if m, err := b.Reader.Message(t.Context(), second.QueueID); err != nil || m.Status != api.StatusSent {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestWordsOfTheRequestFilledIn(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for name, c := range map[string]struct {
		req  api.SubmitRequest
		want []string
	}{
		"html": {api.SubmitRequest{Subject: "Hi {{params.n}}", HTML: "<b>{{params.n}}</b>",
			Render: &api.Render{Params: []byte(`{"n":"<A>"}`)}}, []string{"Subject: Hi <A>\r\n", "<b>&lt;A&gt;</b>"}},
		"Markdown": {api.SubmitRequest{HTML: "# {{params.n}}", Render: &api.Render{Format: "markdown",
			Params: []byte(`{"n":"A"}`)}}, []string{"<h1>A</h1>"}},
		"big numbers": {api.SubmitRequest{Text: "{{params.n}}", Render: &api.Render{
			Params: []byte(`{"n":9007199254740993}`)}}, []string{"9007199254740993"}},
		"a locale": {api.SubmitRequest{Text: "{{number params.n decimals=2}}", Locale: "de",
			Render: &api.Render{Params: []byte(`{"n":1234.5}`)}}, []string{"1.234,50"}},
		"a zone": {api.SubmitRequest{Text: `{{formatDate params.d "HH:mm"}}`, TZ: "Asia/Tokyo",
			Render: &api.Render{Params: []byte(`{"d":"2030-01-01T00:00:00Z"}`)}}, []string{"09:00"}},
		"the account's": {api.SubmitRequest{Account: "german",
			Text: `{{number params.n decimals=2}} {{formatDate params.d "HH:mm"}}`, Render: &api.Render{
				Params: []byte(`{"n":1234.5,"d":"2030-01-01T00:00:00Z"}`)}}, []string{"1.234,50 01:00"}},
		"as they are": {api.SubmitRequest{Text: "{{params.n}}"}, []string{"{{params.n}}"}},
		"a template's too": {api.SubmitRequest{Template: "welcome", Render: &api.Render{Off: true}},
			[]string{"Subject: Welcome {{params.name}}\r\n"}},
		"a subject instead": {api.SubmitRequest{Template: "welcome", Subject: "Own {{params.name}}",
			Render: &api.Render{Params: []byte(`{"name":"A"}`)}}, []string{"Subject: Own A\r\n", "Hello A"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.To, c.req.DryRun = for1("ann@x.test"), true
			a, err := b.Intake.Submit(t.Context(), c.req)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(a.Preview), want) {
					t.Errorf("%q is not in\n%s", want, a.Preview)
				}
			}
		})
	}
	_, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"),
		Text:   "{{params.a}} {{params.b}}",
		Render: &api.Render{Missing: "error"}})
	if fault.CodeOf(err) != "TemplateVariablesMissing" || !strings.Contains(err.Error(), "params.a") ||
		!strings.Contains(err.Error(), "params.b") {
		t.Errorf("two variables are missing: %v", err)
	}
}

// slowSubmits delays the answer to each round trip that queues a task. It sleeps because it plays a slow
// Redis.
type slowSubmits time.Duration

func (slowSubmits) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slowSubmits) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		s.delay(cmd)
		return err
	}
}

func (s slowSubmits) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		s.delay(cmds...)
		return err
	}
}

func (s slowSubmits) delay(cmds ...redis.Cmder) {
	if strings.Contains(fmt.Sprint(cmds), "asynq:{submit") {
		time.Sleep(time.Duration(s))
	}
}

// TestMergeWithSuppressedOnASlowRedis: the first step of a mail merge takes three fifths of the time that it
// has. The entry that is looked up in the second step has as much time again, and is not refused.
func TestMergeWithSuppressedOnASlowRedis(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	b := setupSiftedOn(t, testredis.New(t), Options{}, suppression.Options{})
	b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.Manual})
	b.store.DB.Client().AddHook(slowSubmits(timeout * 3 / 5))
	var all []*newMessage
	for _, to := range [][]string{{"ann@x.test"}, {"dead@x.test", "bob@x.test"}} {
		all = append(all, &newMessage{id: newID(b.clock.Now(), 0), lane: api.Transactional, attempts: 10,
			envelope: envelope{Account: "default", MessageID: "<1@x.test>", From: "shop@x.test", To: to, Size: 1},
			content:  []byte("x")})
	}
	began := time.Now()
	b.Intake.accept(t.Context(), all, timeout)
	if all[0].result.Err != nil || all[1].result.Err != nil || all[1].result.Skipped == nil {
		t.Errorf("%+v, %+v", all[0].result, all[1].result)
	}
	if time.Since(began) < timeout {
		t.Error("the steps took less than the time that one of them has")
	}
}
