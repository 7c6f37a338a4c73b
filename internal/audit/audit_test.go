package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testredis"
)

// record is an account, as far as these tests go.
type record struct {
	Name    string            `json:"name"`
	Pass    string            `json:"pass,omitempty"`
	Proxy   string            `json:"proxy,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Updated string            `json:"updated,omitempty"`
}

func lookAt(r **record) Look {
	return func(context.Context, api.AuditObject) (any, error) {
		if *r == nil {
			return nil, fault.New(fault.NotFound, "", "none")
		}
		return **r, nil
	}
}

func TestAChangeShowsWhoWhatBeforeAndAfter(t *testing.T) {
	b := setup(t, Options{})
	now := &record{Name: "Old", Pass: "******", Headers: map[string]string{"X-Key": "h1"}, Updated: "1"}
	err := b.Do(t.Context(), Change{Who: ann, Action: "PUT /v1/account/{account}", Request: "r1",
		Object: api.AuditObject{Kind: "account", ID: "acme"}, Look: lookAt(&now),
		Asked: struct{ Body record }{record{Name: "New", Pass: "correct horse"}}},
		func(context.Context) (any, error) {
			now = &record{Name: "New", Pass: "******", Proxy: "socks5://u:battery@p:1080",
				Headers: map[string]string{"X-Key": "staple"}, Updated: "2"}
			return nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	got := b.list(t, api.AuditQuery{})
	if len(got) != 1 || got[0].Seq != 1 || got[0].Result != api.AuditDone ||
		got[0].Who != ann || got[0].Request != "r1" || *got[0].Object != (api.AuditObject{Kind: "account",
		ID: "acme"}) {
		t.Fatalf("%+v", got)
	}
	want := []api.AuditChange{
		{Field: "headers.X-Key", Before: "******", After: "******"}, {Field: "name", Before: "Old", After: "New"},
		{Field: "pass", Before: "******", After: "******"}, {Field: "proxy", After: "socks5://u:******@p:1080"},
	}
	if diff := cmp.Diff(want, got[0].Changes); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"correct horse", "battery", "staple", "h1"} {
		if testredis.Holds(t, b.db, secret) {
			t.Errorf("%q is in Redis", secret)
		}
	}
}

func TestWhatBecameOfAChange(t *testing.T) {
	b := setup(t, Options{})
	cases := []struct {
		name   string
		err    error
		result api.AuditResult
		reason string
	}{
		{"made", nil, api.AuditDone, ""},
		{"refused", fault.New(fault.Conflict, "", "it is in use"), api.AuditRefused, "it is in use"},
		{"failed", errors.New("dial tcp secret.internal"), api.AuditFailed,
			"the cause is in the log of the process"},
		{"away", fault.New(fault.Unavailable, "", "away"), api.AuditFailed,
			"the cause is in the log of the process"},
	}
	for _, tc := range cases {
		ctx, cancel := context.WithCancel(t.Context())
		err := b.Do(ctx, Change{Who: ann, Action: tc.name, Object: api.AuditObject{Kind: "gateway"}},
			func(context.Context) (any, error) {
				cancel() // the client leaves; its change has a result nevertheless
				return struct {
					ID    string `json:"id"`
					Token string `json:"token"`
				}{"g1", "tok-9"}, tc.err
			})
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", tc.name, err)
		}
		b.Flush(t.Context())
		e := b.list(t, api.AuditQuery{PageSize: 1})[0]
		if e.Action != tc.name || e.Result != tc.result || e.Reason != tc.reason ||
			(e.Object.ID == "g1") != (tc.err == nil) {
			t.Errorf("%s: %+v %+v", tc.name, e, e.Object)
		}
	}
	if testredis.Holds(t, b.db, "tok-9") {
		t.Error("a token is in the log")
	}
}

// TestNoChangeWithoutItsEntry: while Redis is away nothing is changed.
func TestNoChangeWithoutItsEntry(t *testing.T) {
	b := setup(t, Options{})
	b.db.Client().Set(t.Context(), intentsKey(), "of another type", 0)
	made := false
	err := b.Do(t.Context(), Change{Who: ann, Action: "x"}, func(context.Context) (any, error) {
		made = true
		return nil, nil
	})
	if err == nil || made {
		t.Errorf("made: %t, %v", made, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Do(ctx, Change{}, func(context.Context) (any, error) {
		made = true
		return nil,
			nil
	}); err == nil || made {
		t.Errorf("made: %t, %v", made, err)
	}
}

// TestAChangeWhoseProcessDiedIsShownAsBegun: by another process, once, ten minutes later.
func TestAChangeWhoseProcessDiedIsShownAsBegun(t *testing.T) {
	b := setup(t, Options{})
	func() {
		defer func() { _ = recover() }()
		_ = b.Do(t.Context(), Change{Who: ann, Action: "dies"}, func(context.Context) (any,
			error) {
			panic("killed")
		})
	}()
	b.fill(t, 1)
	died := b.clock.Now().UTC()
	b.clock.Advance(9 * time.Minute)
	b.recover(t.Context())
	if got := b.list(t, api.AuditQuery{Result: api.AuditBegun}); len(got) != 0 {
		t.Errorf("while it may be under way: %+v", got)
	}
	b.clock.Advance(time.Minute)
	for range 2 {
		for _, p := range []bundle{b.another(t), b.another(t)} {
			p.recover(t.Context())
		}
	}
	got := b.list(t, api.AuditQuery{Result: api.AuditBegun})
	if len(got) != 1 || got[0].Action != "dies" || got[0].Since == nil || !got[0].Since.Equal(died) {
		t.Errorf("%+v", got)
	}
	if v := b.verified(t); !v.Intact || !cmp.Equal(v.Unfinished, []int64{2}) {
		t.Errorf("%+v", v)
	}
}

func TestPagesAndFilters(t *testing.T) {
	b := setup(t, Options{})
	bob := api.AuditActor{Kind: Session, TokenID: "9876543210", Name: "bob", Session: "s1", Account: "other"}
	for i := range 6 {
		who, object := ann, &api.AuditObject{Kind: "account", ID: "acme"}
		if i%2 == 1 {
			who, object = bob, &api.AuditObject{Kind: "template", ID: fmt.Sprint(i), Account: "other"}
		}
		if _, err := b.Append(t.Context(), api.AuditEntry{Result: api.AuditDone, Action: "x", Who: who,
			Object: object}); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Hour)
	}
	start := b.clock.Now().Add(-6 * time.Hour)
	cases := []struct {
		name string
		q    api.AuditQuery
		want []int64
	}{
		{"all", api.AuditQuery{}, []int64{6, 5, 4, 3, 2, 1}},
		{"oldest first", api.AuditQuery{Oldest: true}, []int64{1, 2, 3, 4, 5, 6}},
		{"by name", api.AuditQuery{Who: "ann"}, []int64{5, 3, 1}},
		{"by the beginning of an id", api.AuditQuery{Who: "987654"}, []int64{6, 4, 2}},
		{"by address", api.AuditQuery{Who: "192.0.2.1"}, []int64{5, 3, 1}},
		{"by session", api.AuditQuery{Who: "s1"}, []int64{6, 4, 2}},
		{"by kind", api.AuditQuery{Kind: "template"}, []int64{6, 4, 2}},
		{"by id", api.AuditQuery{Kind: "template", ID: "3"}, []int64{4}},
		{"by account", api.AuditQuery{Account: "acme"}, []int64{5, 3, 1}},
		{"by account of an object", api.AuditQuery{Account: "other"}, []int64{6, 4, 2}},
		{"by result", api.AuditQuery{Result: api.AuditFailed}, nil},
		{"from", api.AuditQuery{From: start.Add(4 * time.Hour)}, []int64{6, 5}},
		{"to", api.AuditQuery{To: start.Add(2 * time.Hour)}, []int64{2, 1}},
		{"between", api.AuditQuery{From: start.Add(time.Hour), To: start.Add(3 * time.Hour), Oldest: true},
			[]int64{2, 3}},
	}
	for _, tc := range cases {
		for _, limit := range []int{0, 1, 2} {
			var got []int64
			q := tc.q
			q.PageSize = limit
			for more := true; more; {
				page, err := b.List(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Entries {
					got = append(got, e.Seq)
				}
				q.Cursor, more = page.Cursor, page.More
			}
			if !cmp.Equal(got, tc.want) {
				t.Errorf("%s, limit %d: %v", tc.name, limit, got)
			}
		}
	}
	if _, err := b.List(t.Context(), api.AuditQuery{Cursor: "x y"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// TestUnauthenticatedClientsCantFillTheLog: a day of refusals from everywhere.
func TestUnauthenticatedClientsCantFillTheLog(t *testing.T) {
	b := setup(t, Options{})
	sent := 0
	for minute := range 24 * 60 {
		for i := range 100 {
			address := fmt.Sprintf("2001:db8:%x:%x::1", minute, i)
			b.Note(api.AuditEntry{Who: api.AuditActor{Kind: Anonymous, Address: address}, Result: api.AuditRefused,
				Action: "GET /v1/outbox", Reason: "Bad token"})
			sent++
		}
		b.Flush(t.Context())
		b.clock.Advance(time.Minute)
	}
	b.Flush(t.Context())
	got, counted := b.list(t, api.AuditQuery{PageSize: 1000}), 0
	for _, e := range got {
		counted += e.Count
	}
	if len(got) > 24*(MaxFolded+1)+1 {
		t.Errorf("%d entries", len(got))
	}
	waiting := b.folds.others.count
	for _, f := range b.folds.by {
		waiting += f.count
	}
	if counted+waiting != sent {
		t.Errorf("%d refusals are in the log and %d wait, of %d", counted, waiting, sent)
	}
}

// TestRefusalsOfOneAddressAreOneEntry: after the first minute, and then one an hour.
func TestRefusalsOfOneAddressAreOneEntry(t *testing.T) {
	b := setup(t, Options{})
	for range 90 {
		for _, address := range []string{"2001:db8::1", "2001:db8::2"} {
			b.Note(api.AuditEntry{Who: api.AuditActor{Kind: Anonymous, Address: address}, Result: api.AuditRefused,
				Action: "GET /v1/outbox", Reason: "Bad token"})
		}
		b.Flush(t.Context())
		b.clock.Advance(time.Minute)
	}
	got := b.list(t, api.AuditQuery{})
	if len(got) != 2 || got[1].Count != 2 || got[0].Count != 120 || got[0].Since == nil ||
		got[0].Who.Address != "2001:db8::1" {
		t.Errorf("%+v", got)
	}
}

// TestRefusedChangesPushNothingOutOfTheLog: any number of changes of one caller that are refused, for
// whatever reason, is one entry.
func TestRefusedChangesPushNothingOutOfTheLog(t *testing.T) {
	b := setup(t, Options{Max: 100})
	first := b.fill(t, 1)[0]
	for i := range 500 {
		err := b.Do(t.Context(), Change{Who: ann, Action: fmt.Sprintf("POST /v1/%d", i%7),
			Object: api.AuditObject{Kind: "segment", ID: fmt.Sprint(i)}}, func(context.Context) (any, error) {
			return nil, fault.New(fault.Invalid, "", "rule.%d is unknown", i)
		})
		if !fault.Is(err, fault.Invalid) {
			t.Fatal(err)
		}
	}
	b.Flush(t.Context())
	got := b.list(t, api.AuditQuery{})
	if len(got) != 2 || got[1].Hash != first.Hash || got[0].Count != 500 || got[0].Result != api.AuditRefused ||
		got[0].Reason != "rule.0 is unknown" || got[0].Object.ID != "0" {
		t.Errorf("%+v", got)
	}
	if n := b.db.Client().HLen(t.Context(), intentsKey()).Val(); n != 0 {
		t.Errorf("%d intents are left", n)
	}
}

// TestTheLogIsNotMuchLongerThanAuditMax: immediately, and not only after the hourly verification.
func TestTheLogIsNotMuchLongerThanAuditMax(t *testing.T) {
	b := setup(t, Options{Max: 1000})
	for range 1300 {
		if err := b.Do(t.Context(), Change{Who: ann, Action: "x"}, func(context.Context) (any, error) {
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if v := b.verified(t); !v.Intact || v.Entries < 1000 || v.Entries > 1010 || v.Head.Seq != 1300 {
		t.Errorf("%+v", v)
	}
	rewrite(t, b, func(m []redis.XMessage) []redis.XMessage {
		m[3].Values["e"] = strings.Replace(m[3].Values["e"].(string), "ann", "bob", 1)
		return m
	})
	before := b.verified(t).Entries
	b.another(t).fill(t, 20) // it has verified nothing, and must not delete what shows the change
	if v := b.verified(t); v.Entries != before+20 {
		t.Errorf("entries that were tampered with are trimmed: %+v", v)
	}
}

func TestLongValuesAreCut(t *testing.T) {
	t.Parallel()
	got := asked(map[string]any{"text": strings.Repeat("ä", 300), "token": "t", "n": 0})
	if len(got) != 2 || !strings.HasSuffix(got[0].After, "… (600 bytes)") || got[1].After != "******" {
		t.Errorf("%+v", got)
	}
	many := map[string]string{}
	for i := range 200 {
		many[fmt.Sprint("f", i)] = "x"
	}
	if got := asked(many); len(got) != maxFields+1 || got[maxFields].After != "150 more fields" {
		t.Errorf("%+v", got[len(got)-1])
	}
}
