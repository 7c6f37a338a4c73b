package digest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox"
)

// erase erases a person as package erasure does.
func (b *bench) erase(t testing.TB, address string) {
	t.Helper()
	traces, err := message.NewTraces(address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Erase(t.Context(), outbox.Whom{Traces: traces, Account: "default"}); err != nil {
		t.Error(err)
	}
}

// TestAnErasedReader gets no mail, and leaves nothing. The reader is erased while events wait, between the
// claim and the snapshot, between two attempts, or while the mail is passed to the outbox, which refuses it.
func TestAnErasedReader(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"waiting", "claimed", "between", "submitting"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.add(t, about("zoe", "1", "Bo"), about("bob", "1", "Bo"))
			reached := map[string]bool{"waiting": true, "between": true}
			parts := b.parts()
			parts.HasTemplate = func(context.Context, string, string) (bool, error) {
				if when == "claimed" && !reached[when] {
					reached[when] = true
					b.erase(t, "zoe@example.com")
				}
				return false, nil
			}
			parts.Submit = func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
				if req.To[0].Address != "zoe@example.com" {
					return b.mails.submit(ctx, req)
				}
				if when == "submitting" {
					reached[when] = true
					b.erase(t, "zoe@example.com")
					return api.SubmitAnswer{Skipped: &api.Skipped{All: true}}, nil
				}
				return api.SubmitAnswer{}, errBusy
			}
			b.remake(t, parts)
			if when == "waiting" {
				b.erase(t, "zoe@example.com")
			}
			b.morning(t)
			if when == "between" {
				b.erase(t, "zoe@example.com")
			}
			for range 3 {
				b.Advance(time.Hour)
				b.settle(t)
			}
			if !reached[when] {
				t.Error("nothing was erased")
			}
			if all := b.mails.all(); len(all) != 1 || all[0].To[0].Address != "bob@example.com" {
				t.Errorf("mails %+v", all)
			}
			b.nothingOf(t, "zoe")
		})
	}
}

// nothingOf looks for a reader in all that Redis has.
func (b *bench) nothingOf(t testing.TB, who string) {
	t.Helper()
	ctx, c := t.Context(), b.db.Client()
	for _, key := range b.keys(t, "*") {
		kind, err := c.Type(ctx, key).Result()
		var has any
		switch kind {
		case "hash":
			has = c.HGetAll(ctx, key).Val()
		case "zset":
			has = c.ZRange(ctx, key, 0, -1).Val()
		case "list":
			has = c.LRange(ctx, key, 0, -1).Val()
		case "set":
			has = c.SMembers(ctx, key).Val()
		case "stream":
			has = c.XRange(ctx, key, "-", "+").Val()
		}
		if err != nil || strings.Contains(key+fmt.Sprint(has), who) {
			t.Errorf("%s is in %s: %v, %v", who, key, has, err)
		}
	}
	if state, err := b.State(ctx); err != nil || state.Open != 0 || state.Planned != 0 {
		t.Errorf("%+v, %v", state, err)
	}
}
