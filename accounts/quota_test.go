package accounts

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestQuotaOfAnAccount: what its record says comes before the settings, and 0 there means any number.
func TestQuotaOfAnAccount(t *testing.T) {
	b := setup(t, configuredAccount())
	b.Accounts.quota = Quota{Messages: 10, Bytes: 1000, Templates: 5}
	own := account("own")
	own.Quota = &api.Quota{Messages: new(20), Bytes: new(0), PerDay: new(7)}
	b.create(t, own)
	b.create(t, account("plain"))
	for id, want := range map[string]Quota{
		"own": {Messages: 20, PerDay: 7, Templates: 5}, "plain": b.Accounts.quota, DefaultID: b.Accounts.quota,
		"nobody": {},
	} {
		if got, err := b.Quota(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", id, got, err, want)
		}
	}
	if s, err := b.Resolve(t.Context(), "own"); err != nil || s.Quota.Messages != 20 {
		t.Errorf("%+v, %v", s.Quota, err)
	}
	if _, err := b.Update(t.Context(), "own", api.AccountPatch{Quota: new((*api.Quota)(nil))}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Quota(t.Context(), "own"); err != nil || got != b.Accounts.quota {
		t.Errorf("without its own: %+v, %v", got, err)
	}
	_, err := b.Update(t.Context(), "own", api.AccountPatch{Quota: new(&api.Quota{PerDay: new(-1)})})
	if f, ok := err.(*fault.Error); !ok || len(f.Fields) != 1 || f.Fields[0].Key != "quota.perDay" {
		t.Errorf("less than nothing: %v", err)
	}
}

// TestRoomIsAskedOnlyWhereThereIsALimit: accounts without a quota cost nothing.
func TestRoomIsAskedOnlyWhereThereIsALimit(t *testing.T) {
	b := setup(t, nil)
	limited := account("limited")
	limited.Quota = &api.Quota{Suppressions: new(3)}
	b.create(t, limited)
	b.create(t, account("free"))
	room := Room(b.Accounts, "suppressions")
	asked := 0
	for _, row := range []struct {
		account    string
		used, more int
		refused    bool
	}{
		{"free", 100, 100, false}, {"limited", 2, 1, false}, {"limited", 2, 2, true}, {"limited", 9, 0, false},
	} {
		err := room(t.Context(), row.account, func() (int, int, error) { asked++; return row.used, row.more, nil })
		if fault.Is(err, fault.Forbidden) != row.refused {
			t.Errorf("%+v: %v", row, err)
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestRefusalsOfAQuotaInTheLog: one line a minute for each quota, whoever repeats.
func TestRefusalsOfAQuotaInTheLog(t *testing.T) {
	b := setup(t, nil)
	var log bytes.Buffer
	b.Accounts.refusals.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 3 {
		for range 5 {
			for _, id := range []string{"a", "b"} {
				_ = b.Exceeded(t.Context(), Excess{Quota: "messages", Account: id, Limit: 2, Used: 2, More: 1})
			}
		}
		b.clock.Advance(logAgain)
	}
	if n := strings.Count(log.String(), "quota exceeded"); n != 6 ||
		!strings.Contains(log.String(), "quota=messages account=a limit=2 used=2 more=1") {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// TestWordsOfAQuota: each refusal says which quota, whose, how much, and until when.
func TestWordsOfAQuota(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 23, 0, 0, 0, time.UTC)
	type answer struct {
		Kind  fault.Kind
		Words string
		After time.Duration
	}
	for _, row := range []struct {
		e    Excess
		want answer
	}{
		{Excess{Quota: "bytes", Account: "a", Limit: 9, Used: 5, More: 6}, answer{fault.Limited,
			`The quota of account "a" is 9 bytes of messages waiting (bytes), and 5 are used: there is no room for ` +
				`6 more until some of its mail has gone out`, 0}},
		{Excess{Quota: "perDay", Token: "t", Limit: 9, Used: 9, More: 1, Until: now.Add(time.Hour), Now: now},
			answer{fault.Limited, `The quota of this token is 9 messages accepted today (perDay), and 9 are used: ` +
				`there is no room for 1 more until 2030-01-03T00:00:00Z`, time.Hour}},
		{Excess{Quota: "messages", Account: "a", Limit: 9, More: 10}, answer{fault.TooLarge,
			`The quota of account "a" is 9 messages waiting (messages), and this request needs 10. Nothing was queued; ` +
				`submit less per request`, 0}},
		{Excess{Quota: "templates", Account: "a", Limit: 9, Used: 9, More: 1}, answer{fault.Forbidden,
			`The quota of account "a" is 9 templates (templates), and it has 9: there is no room for 1 more until ` +
				`some are deleted`, 0}},
		{Excess{Quota: "importSize", Account: "a", Limit: 9, More: 10}, answer{fault.TooLarge,
			`The quota of account "a" is 9 bytes in one import (importSize), and this file has more: divide it`, 0}},
	} {
		f := row.e.Fault()
		if diff := cmp.Diff(row.want, answer{f.Kind, f.Message, f.RetryAfter}); diff != "" ||
			f.Code != "QuotaExceeded" || f.Details["quota"] != row.e.Quota {
			t.Errorf("%+v: %s", f, diff)
		}
	}
}
