package digest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	told "github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/redisdb"
)

// TestTheButtonOfAMailProgramTurnsDigestsOff: the event listUnsubscribe for the list of digests is followed.
// For another list it turns nothing off.
func TestTheButtonOfAMailProgramTurnsDigestsOff(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Workers = 0 })
	for _, who := range []string{"ann", "bob"} {
		b.prefer(t, who, map[string]*api.DigestPreference{"comment": {Mode: "weekly"}})
		b.leaves(t, who)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.tellLeave(t, "1", "news", "bob@example.com")
	b.tellLeave(t, "2", digest.ListID("default"), "ann@example.com")
	deadline := time.Now().Add(time.Minute)
	for b.preferences(t, "ann")["*"].Mode != "off" {
		if time.Now().After(deadline) {
			t.Fatalf("ann has %+v after a minute", b.preferences(t, "ann"))
		}
	}
	if bob := b.preferences(t, "bob"); len(bob) != 1 || bob["comment"].Mode != "weekly" {
		t.Errorf("bob left another list, and has %+v", bob)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// tellLeave emits the event of an unsubscribe, as package feedback does.
func (b *bench) tellLeave(t *testing.T, id, list, address string) {
	t.Helper()
	e, err := told.New(id, told.ListUnsubscribe, "default", b.Now(), told.Learned{Recipient: address,
		Later: told.Later{ListID: list}})
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
