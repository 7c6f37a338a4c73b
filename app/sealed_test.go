package app_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestNoBodyIsReadableInRedis takes sealed mail through acceptance, delivery, retry, dead letters and merge,
// and then searches Redis for its text, packed or not. The same story without storage.seal shows that the
// search finds it.
func TestNoBodyIsReadableInRedis(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprint("sealed ", sealed), func(t *testing.T) {
			t.Parallel()
			relay := testsmtp.Start(t, testsmtp.Options{})
			server := testredis.Server(t, "--rdbcompression", "no")
			set := map[string]string{"redis.url": server.URL(), "smtp": relay.URL(), "from": "shop@example.com",
				"storage.seal": fmt.Sprint(sealed), "smtpd.listen": "127.0.0.1:0"}
			s := &bodies{planted: planted{t: t, secrets: map[string]string{}}, subject: rand.Text()}
			s.app = apptest.RunLogging(t, set, apptest.Logger(t))
			s.client = api.NewClient(s.app.URL(), s.app.Token(), nil)
			s.story()
			all := unpacked(t, dump(t, server.URL()))
			if !strings.Contains(all, s.subject) {
				t.Fatal("Redis does not even hold a subject: the search would find nothing")
			}
			for name, word := range s.secrets {
				found := false
				for _, form := range forms(word) {
					found = found || strings.Contains(all, form)
				}
				if found == sealed {
					t.Errorf("the %s is readable: %t", name, found)
				}
			}
		})
	}
}

// bodies submits mail with unique texts in its bodies, which are the planted secrets.
type bodies struct {
	planted
	app     *app.App
	client  *api.Client
	subject string // all messages'; it is not sealed
}

func (s *bodies) story() {
	s.t.Helper()
	paused := true
	if _, err := api.PutQueue.Do(s.t.Context(), s.client, api.QueuePatch{Paused: &paused},
		"documents"); err != nil { // so the texts stay
		s.t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	template, err := api.CreateTemplate.Do(s.t.Context(), s.client, api.TemplateRequest{ID: "code", Name: "Code",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Subject: "Code",
			Text: "Your code is {{params.code}}"}}})
	if err != nil {
		s.t.Fatal(err)
	}
	params := func(name string) *api.Render {
		return &api.Render{Params: fmt.Appendf(nil, `{"code":%q}`, s.secret(name))}
	}
	sent := s.submit(
		api.SubmitRequest{To: apptest.To("ann"), Text: s.secret("text of a short mail that was sent")},
		api.SubmitRequest{To: apptest.To("ann"), Text: s.secret("text of a long mail that was sent") +
			strings.Repeat("\nmore and more", 2000)},
		api.SubmitRequest{To: apptest.To("ann"), Template: template.ID,
			Render: params("param of a mail that was sent")},
	)
	s.submit(
		api.SubmitRequest{To: apptest.To("ann"), HTML: "<p>" + s.secret("html of a scheduled mail"),
			SendAt: &later},
		api.SubmitRequest{To: apptest.To("ann"), Text: s.secret("text beside a large file"), SendAt: &later,
			Attachments: []api.Attachment{{Filename: "a.bin",
				Content: append([]byte(s.note("large file", rand.Text())), incompressible(1<<20)...)}}},
		api.SubmitRequest{To: apptest.To("ann"), Template: template.ID, Render: params("param of a scheduled mail"),
			SendAt: &later, IdempotencyKey: "key"},
	)
	s.submit(api.SubmitRequest{Text: s.secret("text of a merge"), SendAt: &later, IdempotencyKey: "merge",
		Attachments: []api.Attachment{{Filename: "b.txt", Content: []byte(s.secret("file of a merge"))}},
		MailMerge: []api.MailMergeEntry{{To: apptest.To("bob")[0], Params: params("param of a merge").Params},
			{To: apptest.To("ann")[0]}}})
	dead := s.submit(api.SubmitRequest{To: apptest.To("rcpt-550"), Text: s.secret("text of a dead letter")},
		api.SubmitRequest{To: api.Addresses{{Address: "rcpt-550@example.org"}}, Template: template.ID,
			Render: params("param of a dead letter")})
	full := s.submit(api.SubmitRequest{To: apptest.To("rcpt-451"),
		Text: s.secret("text of a mail that is tried again")})
	if err := apptest.SendSMTP(s.app,
		[]byte("From: shop@example.com\r\nTo: rcpt-451@example.net\r\nSubject: "+s.subject+"\r\n\r\n"+
			s.secret("text handed in over SMTP")+"\r\n")); err != nil {
		s.t.Error(err)
	}
	for id, want := range map[string]api.MessageStatus{sent[0]: "sent", sent[1]: "sent", sent[2]: "sent",
		dead[0]: "dead", dead[1]: "dead"} {
		apptest.Eventually(s.t, id+" is "+string(want), func() bool {
			m, err := api.GetLoggedMessage.Do(s.t.Context(), s.client, id)
			return err == nil && m.Status == want
		})
	}
	apptest.Eventually(s.t, "a message waits for another attempt", func() bool {
		m, err := api.GetMessage.Do(s.t.Context(), s.client, full[0])
		return err == nil && m.AttemptsMade > 0
	})
}

func (s *bodies) submit(all ...api.SubmitRequest) (ids []string) {
	s.t.Helper()
	for _, req := range all {
		req.Subject = s.subject
		ids = append(ids, apptest.HandIn(s.t, s.client, req).QueueID)
	}
	return ids
}

func incompressible(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}

// unpacked returns a dump of Redis, and what zstd has packed anywhere in it.
func unpacked(t *testing.T, dump string) string {
	t.Helper()
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	all := bytes.NewBufferString(dump)
	for rest := dump; ; {
		at := strings.Index(rest, "\x28\xB5\x2F\xFD")
		if at < 0 {
			return all.String()
		}
		rest = rest[at:]
		if decoder.Reset(strings.NewReader(rest)) == nil {
			_, _ = io.Copy(all, decoder) // until data follows that isn't zstd
		}
		rest = rest[1:]
	}
}

// TestSealedMailOutlivesItsSecret: the secret is replaced while sealed mail is queued, and removed; the mail
// is delivered as it was accepted.
func TestSealedMailOutlivesItsSecret(t *testing.T) {
	t.Parallel()
	relay := apptest.SlowRelay(t, 0)
	set := apptest.SettingsFor(t, testredis.Server(t).URL(), relay)
	const older, newer = "the older secret, of thirty-two bytes", "the newer secret, of thirty-two bytes"
	set["storage.seal"], set["secret"] = "true", older
	first := apptest.Spawn(t, set)
	later := time.Now().Add(time.Hour)
	words := map[string]string{}
	for i := range 20 {
		name := fmt.Sprintf("r%d@example.net", i)
		words[name] = rand.Text()
		answer, err := api.Submit.Do(t.Context(), first.Client, api.SubmitRequest{
			To: api.Addresses{{Address: name}}, Text: words[name], SendAt: &later,
			Attachments: []api.Attachment{{Content: incompressible(i * 40_000)}}})
		if err != nil {
			t.Fatal(err)
		}
		words[name] += " " + answer.QueueID
	}
	first.Stop(t)

	set["secret"], set["secretPrevious"] = newer, older
	second := apptest.Spawn(t, set)
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	done, err := app.RotateSecrets(t.Context(), &loaded.Config, slog.New(slog.DiscardHandler),
		func(int, int) { told++ })
	if err != nil || told == 0 {
		t.Fatal(told, err)
	}
	if n := recordsOf(done, "contents of mail"); n != 20 {
		t.Errorf("sealed %d contents again: %v", n, done)
	}
	second.Stop(t)

	delete(set, "secretPrevious")
	set["secret"] = newer
	third := apptest.Spawn(t, set)
	for name := range words {
		_, id, _ := strings.Cut(words[name], " ")
		if _, err := api.RetryMessage.Do(t.Context(), third.Client, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range relay.Wait(20) {
		word, _, _ := strings.Cut(words[m.To[0]], " ")
		if !bytes.Contains(m.Data, []byte(word)) {
			t.Errorf("%s got another mail than was accepted", m.To[0])
		}
	}
}

func recordsOf(done []app.Resealed, what string) int {
	for _, d := range done {
		if d.What == what {
			return d.Records
		}
	}
	return -1
}
