package access

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestRotatedTokenWorksUntilTheOverlapIsOver: in another process, too, and for sessions.
func TestRotatedTokenWorksUntilTheOverlapIsOver(t *testing.T) {
	b := setup(t)
	old := b.create(t, api.TokenRequest{Account: "snd", Description: "shop", Scopes: []api.Scope{api.ScopeSend},
		Restrictions: &api.Restrictions{Addresses: []string{"192.0.2.0/24"}}})
	cookie, err := b.Login(t.Context(), old.Token, Client{Addr: here}, start)
	if err != nil {
		t.Fatal(err)
	}
	next, err := b.Rotate(t.Context(), old.ID, api.TokenRotation{Overlap: new(3600)}, start)
	if err != nil {
		t.Fatal(err)
	}
	end := start.Add(time.Hour)
	works := func(token string, at time.Time) error {
		_, err := b.Authenticate(t.Context(), token, here, at)
		return err
	}
	if err := works(next.Token, start); err != nil {
		t.Error("the new one:", err)
	}
	if err := works(old.Token, end.Add(-time.Second)); err != nil {
		t.Error("the old one within the overlap:", err)
	}
	if _, err := b.Session(t.Context(), cookie, here, end.Add(-time.Second)); err != nil {
		t.Error("its session within the overlap:", err)
	}
	if err := works(old.Token, end); !fault.Is(err, fault.Unauthorized) {
		t.Error("the old one after the overlap:", err)
	}
	if _, err := b.Session(t.Context(), cookie, here, end); !fault.Is(err, fault.Unauthorized) {
		t.Error("its session after the overlap:", err)
	}
	if err := works(next.Token, end.AddDate(1, 0, 0)); err != nil {
		t.Error("the new one, later:", err)
	}
	want := api.TokenInfo{ID: next.ID, Account: "snd", Description: "shop", Scopes: []api.Scope{api.ScopeSend},
		Created: start, Restrictions: &api.Restrictions{Addresses: []string{"192.0.2.0/24"}}, Replaces: old.ID}
	got, err := b.Get(t.Context(), next.ID)
	if err != nil {
		t.Fatal(err)
	}
	got.LastUsed, got.LastUsedFrom, got.Access = nil, "", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	was, err := b.Get(t.Context(), old.ID)
	if err != nil || was.ReplacedBy != next.ID || was.Expires == nil || !was.Expires.Equal(end) {
		t.Errorf("the old one shows %+v, %v", was, err)
	}
	if n, err := b.DeleteAccount(t.Context(), "snd"); err != nil || n != 2 {
		t.Errorf("of the account %d tokens are deleted, %v", n, err)
	}
	if err := works(next.Token, start); !fault.Is(err, fault.Unauthorized) {
		t.Error("the new one, without its account:", err)
	}
}

func TestWhenARotatedTokenEnds(t *testing.T) {
	b := setup(t)
	day := 24 * time.Hour
	for _, c := range []struct {
		name      string
		expires   time.Duration // the old one's; 0 means never
		req       api.TokenRotation
		old, next time.Duration // until they end; 0 means never
	}{
		{"nothing is said", 0, api.TokenRotation{}, day, 0},
		{"at once", 0, api.TokenRotation{Overlap: new(0)}, 0, 0},
		{"the old one ends sooner", time.Hour, api.TokenRotation{}, time.Hour, time.Hour},
		{"as long as the old one was made for", 90 * day, api.TokenRotation{}, day, 90 * day},
		{"the new one by wish", 90 * day, api.TokenRotation{Expires: new(start.Add(7 * day))}, day, 7 * day},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := api.TokenRequest{Description: "d"}
			if c.expires > 0 {
				req.Expires = new(start.Add(c.expires))
			}
			old := b.create(t, req)
			next, err := b.Rotate(t.Context(), old.ID, c.req, start)
			if err != nil {
				t.Fatal(err)
			}
			was, err := b.Get(t.Context(), old.ID)
			if err != nil || was.Expires == nil || !was.Expires.Equal(start.Add(c.old)) {
				t.Errorf("the old one ends %v, %v", was.Expires, err)
			}
			is, err := b.Get(t.Context(), next.ID)
			if err != nil || (is.Expires == nil) != (c.next == 0) ||
				is.Expires != nil && !is.Expires.Equal(start.Add(c.next)) {
				t.Errorf("the new one ends %v, %v", is.Expires, err)
			}
		})
	}
}

func TestWhatIsNotRotated(t *testing.T) {
	b := setup(t)
	old := b.create(t, api.TokenRequest{Description: "d", Expires: new(start.Add(time.Hour))})
	past := start.Add(-time.Second)
	for _, c := range []struct {
		name string
		id   string
		req  api.TokenRotation
		now  time.Time
		want fault.Kind
	}{
		{"an unknown one", "nothing", api.TokenRotation{}, start, fault.NotFound},
		{"the one of the configuration", BootstrapID, api.TokenRotation{}, start, fault.NotFound},
		{"an expired one", old.ID, api.TokenRotation{}, start.Add(time.Hour), fault.Conflict},
		{"overlap below zero", old.ID, api.TokenRotation{Overlap: new(-1)}, start, fault.Invalid},
		{"too long an overlap", old.ID, api.TokenRotation{Overlap: new(2592001)}, start, fault.Invalid},
		{"a new one that ended", old.ID, api.TokenRotation{Expires: &past}, start, fault.Invalid},
	} {
		if _, err := b.Rotate(t.Context(), c.id, c.req, c.now); !fault.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	forged := b.create(t, api.TokenRequest{Description: "d"})
	if err := b.db.Client().HSet(t.Context(), tokenKey(forged.ID), "record",
		`{"scopes":["admin"]}`).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rotate(t.Context(), forged.ID, api.TokenRotation{}, start); !fault.Is(err, fault.Conflict) {
		t.Error("a forged record gets a new token:", err)
	}
}

// TestTwoRotationsAtATime: one of them happens.
func TestTwoRotationsAtATime(t *testing.T) {
	b := setup(t)
	old := b.create(t, api.TokenRequest{Description: "d"})
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = b.Rotate(t.Context(), old.ID, api.TokenRotation{}, start) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if page, err := b.List(t.Context(), "", 0, 10); done != 1 || err != nil || page.Total != 2 {
		t.Errorf("%d rotations, %d tokens, %v", done, page.Total, err)
	}
}

func TestLastUseSaysFromWhere(t *testing.T) {
	b := setup(t)
	made := b.create(t, api.TokenRequest{Description: "d"})
	for minute, from := range []string{"192.0.2.7", "::ffff:192.0.2.8", "2001:db8::9", ""} {
		at := start.Add(time.Duration(minute+1) * time.Minute)
		addr, _ := netip.ParseAddr(from)
		if _, err := b.Authenticate(t.Context(), made.Token, addr, at); err != nil {
			t.Fatal(err)
		}
		want := from
		if addr.Is4In6() {
			want = addr.Unmap().String()
		}
		got, err := b.Get(t.Context(), made.ID)
		if err != nil || got.LastUsedFrom != want || !got.LastUsed.Equal(at.Truncate(time.Minute)) {
			t.Errorf("used from %q: %q at %v, %v", from, got.LastUsedFrom, got.LastUsed, err)
		}
	}
}

// TestARotatedTokenHasNoNewQuota: tokens that replace each other share one count.
func TestARotatedTokenHasNoNewQuota(t *testing.T) {
	b := setup(t)
	quota := api.TokenQuota{PerDay: 5}
	first := b.create(t, api.TokenRequest{Description: "shop", Restrictions: &api.Restrictions{Quota: &quota}})
	last := first
	for range 2 {
		var err error
		if last, err = b.Rotate(t.Context(), last.ID, api.TokenRotation{}, start); err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{first.Token, last.Token} {
		g, err := b.Authenticate(t.Context(), token, here, start)
		if err != nil || g.Quota == nil || *g.Quota != quota || g.QuotaID != first.ID {
			t.Errorf("%+v, %v; want a quota counted as %s", g, err, first.ID)
		}
	}
	_, err := b.Create(t.Context(), api.TokenRequest{Description: "x",
		Restrictions: &api.Restrictions{Quota: &api.TokenQuota{Bytes: -1}}}, start)
	if f, ok := err.(*fault.Error); !ok || len(f.Fields) != 1 || f.Fields[0].Key != "restrictions.quota.bytes" {
		t.Errorf("less than nothing: %v", err)
	}
}
