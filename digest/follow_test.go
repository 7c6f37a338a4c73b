package digest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/redisdb"
)

// tell puts an event of the outbox about an email into the stream.
func (b *bench) tell(t testing.TB, kind event.Type, mail int, more map[string]any) {
	t.Helper()
	data := map[string]any{"queueId": "mail-" + string(rune('0'+mail)), "metadata": b.mails.all()[mail].Metadata}
	for key, value := range more {
		data[key] = value
	}
	e, err := event.New("e"+string(rune('0'+mail))+string(kind), kind, "default", b.Now(), data)
	if err != nil {
		t.Fatal(err)
	}
	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.db.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: redisdb.Key(0, "events"),
		Values: []string{"e", line}}).Err(); err != nil {
		t.Fatal(err)
	}
}

// running runs the digests while the test waits for something.
func (b *bench) running(t testing.TB, until func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	for limit := time.Now().Add(30 * time.Second); !until(); {
		if time.Now().After(limit) {
			t.Error("waited in vain")
			break
		}
		redisdb.Pause(t.Context(), 10*time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// told returns the digest events of the stream, as type and reason.
func (b *bench) told(t testing.TB) (all []string) {
	t.Helper()
	entries, err := b.db.Client().XRange(t.Context(), redisdb.Key(0, "events"), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil || !strings.HasPrefix(string(e.Type), "digest") {
			continue
		}
		var d event.Digest
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(string(e.Type)+" "+d.Reason))
	}
	return all
}

// TestARunEndsWithItsMail: sent, and a failed mail returns its events, unless the address is dead.
func TestARunEndsWithItsMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"), about("bob", "1", "Bo"), about("cyd", "1", "Bo"))
	b.morning(t)
	byReader := map[string]int{}
	for i, m := range b.mails.all() {
		byReader[strings.TrimSuffix(m.To[0].Address, "@example.com")] = i
	}
	b.tell(t, event.MessageSent, byReader["ann"], nil)
	b.tell(t, event.MessageFailed, byReader["bob"], map[string]any{"error": "550 5.7.1 spam",
		"verdict": "block"})
	b.tell(t, event.MessageFailed, byReader["cyd"], map[string]any{"error": "550 no such user",
		"verdict": "hard"})
	b.running(t, func() bool { return len(b.told(t)) == 3 })
	for who, want := range map[string]string{"ann": api.DigestSent, "bob": api.DigestFailed,
		"cyd": api.DigestFailed} {
		if r := b.runs(t, who)[0]; r.State != want {
			t.Errorf("%s: %+v", who, r)
		}
	}
	b.morning(t)
	all := b.mails.all()
	if len(all) != 4 || all[3].To[0].Address != "bob@example.com" || saidIn(t, all[3]).Total != 1 {
		t.Errorf("%d mails after the second morning", len(all))
	}
}

// TestARunEndsTwice: its dead letter was replayed, and both ends are read together.
func TestARunEndsTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.tell(t, event.MessageFailed, 0, map[string]any{"error": "550 no such user", "verdict": "hard"})
	b.tell(t, event.MessageSent, 0, nil)
	b.running(t, func() bool { return len(b.told(t)) == 2 })
	if told := b.told(t); told[0] != "digestFailed 550 no such user" || told[1] != "digestSent" {
		t.Errorf("told %v", told)
	}
	if r := b.runs(t, "ann")[0]; r.State != api.DigestSent {
		t.Errorf("%+v", r)
	}
}

// TestWhatWaitsOfThoseWhoLeftIsTold: waiting events are dropped and reported.
func TestWhatWaitsOfThoseWhoLeftIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.add(t, about("ann", "1", "Bo"))
	b.leaves(t, "ann")
	b.tell(t, event.ListUnsubscribe, 0, map[string]any{"recipient": "ann@example.com",
		"listId": digest.ListID("default")})
	b.running(t, func() bool { return len(b.told(t)) == 1 })
	if told := b.told(t); told[0] != "digestSkipped off" {
		t.Errorf("told %v", told)
	}
	one, err := b.Get(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || one.Preferences["*"].Mode != "off" || len(one.Waiting) != 0 {
		t.Errorf("%+v, %v", one, err)
	}
	b.morning(t)
	if n := len(b.mails.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// repeating runs each script twice, as a client of Redis does whose connection broke before the answer.
type repeating struct{}

func (repeating) DialHook(next redis.DialHook) redis.DialHook { return next }

func (repeating) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (repeating) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		return err
	}
}

// TestTheEndOfARunIsToldIfItsAnswerWasLost: the repeated script finds the run ended, and reports it.
func TestTheEndOfARunIsToldIfItsAnswerWasLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.db.Client().AddHook(repeating{})
	b.tell(t, event.MessageSent, 0, nil)
	b.running(t, func() bool { return b.runs(t, "ann")[0].State == api.DigestSent })
	if told := b.told(t); len(told) != 1 {
		t.Errorf("told %v", told)
	}
}

// TestAFailedMailWithoutDeadLetter: its dead letter was deleted before, and its key is still known.
// Its events return. If another message was accepted under the key meanwhile, that one has them.
func TestAFailedMailWithoutDeadLetter(t *testing.T) {
	t.Parallel()
	for known, want := range map[string]int{"mail-0": 2, "mail-late": 1} {
		b, asked := setup(t), make(chan struct{}, 1)
		parts := b.parts()
		parts.DeleteDeadLetter = func(context.Context, string) (api.DeleteAnswer, error) {
			return api.DeleteAnswer{}, nil
		}
		parts.BlockKey = func(context.Context, string, string) (string, error) {
			asked <- struct{}{}
			return known, nil
		}
		b.remake(t, parts)
		b.add(t, about("bob", "1", "Bo"))
		b.morning(t)
		b.tell(t, event.MessageFailed, 0, map[string]any{"error": "451 later", "smtpResponseCode": 451})
		b.tell(t, event.MessageSent, 0, nil) // of no more use, but it shows that the event before was dealt with
		blocked := false
		b.running(t, func() bool {
			select {
			case <-asked:
				blocked = true
			default:
			}
			return blocked && b.runs(t, "bob")[0].State == api.DigestSent
		})
		b.morning(t)
		if n := len(b.mails.all()); n != want {
			t.Errorf("%s is known: %d mails, want %d", known, n, want)
		}
	}
}
