package audience

import (
	"context"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

const composedZoe, apartZoe = "zo\u00eb@a.example", "zoe\u0308@a.example"

// TestASubscriberOfAnEarlierVersionIsFoundByBothSpellings: the index has the address with decomposed letters.
func TestASubscriberOfAnEarlierVersionIsFoundByBothSpellings(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	suppressions, err := suppression.New(db, suppression.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Parts{DB: db, Suppressions: suppressions,
		Account: func(context.Context, string) error { return nil }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ordinal, err := s.nextOrdinals(ctx, DefaultAccount, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.claim(ctx, DefaultAccount, apartZoe, "", decimal(ordinal)); err != nil {
		t.Fatal(err)
	}
	old := &record{version: 1, created: 1, updated: 1, email: apartZoe, name: "Zoe\u0308",
		tags:       []string{"e\u0301t\u00e9"},
		attributes: []byte(`{"city":"Zu` + "\u0308" + `rich"}`)}
	if done, err := s.write(ctx, DefaultAccount, &change{ordinal: ordinal, new: old}); !done || err != nil {
		t.Fatal(done, err)
	}
	for _, name := range []string{composedZoe, apartZoe, "ZOE\u0308@A.example"} {
		got, err := s.Get(ctx, "", api.SubscriberAccount{}, name)
		if err != nil || got.Email != composedZoe || got.Name != "Zo\u00eb" || got.Tags[0] != "\u00e9t\u00e9" ||
			got.Attributes["city"] != "Z\u00fcrich" {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
		if _, created, err := s.Create(ctx, "", api.SubscriberRequest{Email: name, Upsert: true}); created ||
			err != nil {
			t.Errorf("%q is made again: %v", name, err)
		}
		page, err := s.Page(ctx, "", api.SubscriberQuery{Search: name, Tag: "e\u0301te\u0301"})
		if err != nil || len(page.Subscribers) != 1 {
			t.Errorf("a search of %q: %+v, %v", name, page, err)
		}
	}
	if having, err := s.AccountsOf(ctx, composedZoe); err != nil || len(having) != 1 {
		t.Errorf("%q, %v", having, err)
	}
	tally := func(int, int) error { return nil }
	if err := s.Erase(ctx, DefaultAccount, composedZoe, tally); err != nil {
		t.Fatal(err)
	}
	if having, err := s.AccountsOf(ctx, apartZoe); err != nil || len(having) != 0 {
		t.Errorf("the index has an erased person: %q, %v", having, err)
	}
}
