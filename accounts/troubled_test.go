package accounts

import (
	"slices"
	"testing"
	"time"
)

func TestTroubledAccountsAreListedUntilTheyWorkAgain(t *testing.T) {
	b := setup(t, nil)
	for _, id := range []string{"fails", "edited", "deleted", "fine"} {
		b.create(t, account(id))
	}
	b.create(t, holdingAccount("held"))
	ctx := t.Context()
	b.Outcome(ctx, "fine", unreachable())
	for _, id := range []string{"held", "fails", "edited", "deleted"} {
		b.clock.Advance(time.Second)
		b.Outcome(ctx, id, refused())
	}
	b.troubled(t, "held", "fails", "edited", "deleted")

	b.create(t, account("edited"))
	b.create(t, holdingAccount("held"))
	if err := b.Delete(ctx, "deleted"); err != nil {
		t.Fatal(err)
	}
	b.troubled(t, "held", "fails")

	b.clock.Advance(settling)
	b.Outcome(ctx, "fails", nil)
	b.Outcome(ctx, "held", nil)
	b.troubled(t)
	if n := b.db.Client().Exists(ctx, troubledKey()).Val(); n != 0 {
		t.Error("accounts that work are still remembered as troubled")
	}

	b.Outcome(ctx, "fails", refused())
	b.troubled(t, "fails")
}

func (b bundle) troubled(t *testing.T, want ...string) {
	t.Helper()
	got, err := b.Troubled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("in trouble: %q, want %q", got, want)
	}
}
