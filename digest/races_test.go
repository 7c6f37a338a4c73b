package digest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// TestAKeyIsKnownByAClockThatIsBehind: an event was repeated with another process, whose clock did not show
// midnight yet, and was counted twice.
func TestAKeyIsKnownByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := about("ann", "1", "Bo")
	e.IdempotencyKey = "k1"
	b.Set(time.Date(2030, 1, 3, 0, 10, 0, 0, time.UTC))
	b.add(t, e)
	b.Set(time.Date(2030, 1, 2, 23, 50, 0, 0, time.UTC))
	if r := b.add(t, e)[0]; r.Idempotency.Status != "HIT" {
		t.Errorf("answered %+v", r)
	}
	if err := b.Delete(t.Context(), "", api.DigestAccount{}, "ann"); err != nil {
		t.Fatal(err)
	}
	if keys, err := b.db.Client().Keys(t.Context(), "*ann*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("after the recipient was deleted there is %v, %v", keys, err)
	}
}

// between is a hook of Redis that does something once, after a command in a pipeline was answered.
type between struct {
	command string
	do      func()
}

func (b *between) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		is := slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Name() == b.command })
		if do := b.do; is && do != nil {
			b.do = nil
			do()
		}
		return err
	}
}

// TestAChangeWhileTheOldScheduleIsMailed: preferences changed between the look for what is due within the
// grace and the store, while a worker mailed just that. The old schedule was kept as one that finishes
// first, and never did. Events of its categories waited for ever.
func TestAChangeWhileTheOldScheduleIsMailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 2, 8, 0, 0, 0, time.UTC))
	race := &between{command: "zscore", do: func() { b.settle(t) }}
	b.db.Client().AddHook(race)
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "daily", Hour: new(20)}})
	if n := len(b.mails.all()); race.do != nil || n != 1 {
		t.Fatalf("%d mails during the change", n)
	}
	b.add(t, about("ann", "2", "Bo"))
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "daily", Hour: new(21)}})
	b.Advance(40 * time.Hour)
	b.settle(t)
	if all := b.mails.all(); len(all) != 2 || saidIn(t, all[1]).Groups[0].EntityID != "2" {
		t.Errorf("%d mails", len(all))
	}
}
