package audience_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is an audience on an empty Redis, with a clock that stands still unless it is moved.
type bench struct {
	*audience.Subscribers
	*testkit.Clock
	db *redisdb.DB
}

func setup(t testing.TB) *bench { return on(t, testredis.New(t)) }

func on(t testing.TB, db *redisdb.DB) *bench {
	t.Helper()
	b := &bench{Clock: testkit.ClockAt(start), db: db}
	suppressions, err := suppression.New(db, suppression.Options{Now: b.Now})
	if err != nil {
		t.Fatal(err)
	}
	b.Subscribers, err = audience.New(audience.Parts{DB: db, Suppressions: suppressions,
		Account: func(_ context.Context, account string) error {
			if account == "nobody" {
				return fault.New(fault.NotFound, "AccountNotFound", "There is no account %q", account)
			}
			return nil
		}}, audience.Options{Now: b.Now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// list makes a list.
func (b *bench) list(t testing.TB, id, optIn string) {
	t.Helper()
	if _, err := b.Lists.Create(t.Context(), "", api.List{ListID: id, Name: id, OptIn: optIn}); err != nil {
		t.Fatal(err)
	}
}

// counts returns the counts of a list.
func (b *bench) counts(t testing.TB, id string) api.ListCounts {
	t.Helper()
	info, err := b.Lists.Get(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	return info.Counts
}

var consent = &api.Consent{Source: "checkout", Text: "Send me news", IP: "192.0.2.77"}

// add makes a subscriber of lists, with a consent.
func (b *bench) add(t testing.TB, email string, lists ...string) api.Subscriber {
	t.Helper()
	in := api.SubscriberRequest{Email: email, Consent: consent}
	for _, id := range lists {
		in.Lists = append(in.Lists, api.SubscriptionRequest{ListID: id, State: "subscribed"})
	}
	sub, _, err := b.Create(t.Context(), "", in)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// state returns the state of a subscriber on a list.
func (b *bench) state(t testing.TB, name, list string) string {
	t.Helper()
	sub, err := b.Get(t.Context(), "", api.SubscriberAccount{}, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sub.Lists {
		if s.ListID == list {
			return s.State
		}
	}
	return ""
}

// leave takes a subscriber off a list.
func (b *bench) leave(t testing.TB, name, list string) {
	t.Helper()
	if _, err := b.Leave(t.Context(), "", api.SubscriberAccount{}, name, list, audience.SourceAPI); err != nil {
		t.Fatal(err)
	}
}
