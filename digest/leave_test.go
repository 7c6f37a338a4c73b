package digest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/outbox/suppression"
)

// leaves puts a reader on the suppression list, as the button of a mail program does.
func (b *bench) leaves(t *testing.T, recipient string) {
	t.Helper()
	_, err := b.stopped.Add(t.Context(), suppression.Entry{Address: recipient + "@example.com",
		Account: "default", Reason: suppression.Unsubscribe, List: digest.ListID("default")})
	if err != nil {
		t.Fatal(err)
	}
}

// required makes a kind that can't be off.
func (b *bench) required(t *testing.T, category string) {
	t.Helper()
	_, err := b.Kinds.Create(t.Context(), "", api.DigestKind{Category: category, Required: true})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) preferences(t *testing.T, recipient string) api.DigestPreferences {
	t.Helper()
	one, err := b.Recipients.Get(t.Context(), "", api.DigestAccount{}, recipient)
	if err != nil {
		t.Fatal(err)
	}
	return one.Preferences
}

// TestLeavingKeepsWhatIsRequired: a required category has the mode that it had, its own or the rest's.
func TestLeavingKeepsWhatIsRequired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.required(t, "security")
	b.required(t, "billing")
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "weekly"}, "security": {Mode: "hourly"},
		"comment": {Mode: "daily"}})
	b.leaves(t, "ann")
	want := api.DigestPreferences{"*": {Mode: "off"}, "security": {Mode: "hourly"}, "billing": {Mode: "weekly"},
		"comment": {Mode: "off"}}
	for range 2 {
		if err := b.Leave(t.Context(), "default", "Ann@example.com"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.preferences(t, "ann")); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	}
	name := "Ann"
	if _, err := b.Patch(t.Context(), "", "ann", api.DigestRecipientRequest{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if err := b.Return(t.Context(), "default", "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.preferences(t, "ann")); diff != "" {
		t.Errorf("a new name, or a return that the list does not know, brought mail back (-want +got):\n%s", diff)
	}
}

// TestALateEventTurnsNothingOff: the event of leaving comes after the reader has turned a category on again.
func TestALateEventTurnsNothingOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", nil)
	b.leaves(t, "ann")
	on := b.prefer(t, "ann", map[string]*api.DigestPreference{"comment": {Mode: "weekly"}})
	if err := b.Leave(t.Context(), "default", "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(on.Preferences, b.preferences(t, "ann")); diff != "" {
		t.Errorf("a late event (-want +got):\n%s", diff)
	}
}

// TestReturningGivesDefaults: who returns has the preferences of kinds, unless there is a choice.
func TestReturningGivesDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "off"}})
	b.prefer(t, "bob", map[string]*api.DigestPreference{"*": {Mode: "off"}, "comment": {Mode: "daily"}})
	for _, who := range []string{"ann", "bob"} {
		if err := b.Return(t.Context(), "default", who+"@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	if ann, bob := b.preferences(t, "ann"), b.preferences(t, "bob"); len(ann) != 0 || len(bob) != 2 {
		t.Errorf("ann has %v, bob %v", ann, bob)
	}
}

// TestReadersHaveWhatTheyWereMailed: the page shows a category without waiting events and without a kind.
func TestReadersHaveWhatTheyWereMailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "a", "x"))
	b.Advance(6 * 3600e9)
	b.settle(t)
	all, err := b.Readers(t.Context(), "default", "ann@example.com", "en")
	if err != nil || len(all) != 1 || len(all[0].Choices) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	c := all[0].Choices[0]
	if c.Category != "comment" || c.Title != "Comment" || c.Preference.Mode != "daily" ||
		*c.Preference.Hour != 8 || c.Next.Format("02 15:04") != "03 08:00" {
		t.Errorf("%+v", c)
	}
}

// TestCategoriesWithoutAKindStayAfterLeaving: a reader can turn one of them on again, and not the others.
func TestCategoriesWithoutAKindStayAfterLeaving(t *testing.T) {
	t.Parallel()
	b := setup(t)
	like := about("ann", "1", "Bo")
	like.Category = "like"
	b.add(t, like, about("ann", "1", "Cy"))
	b.leaves(t, "ann")
	if err := b.Leave(t.Context(), "default", "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	b.settle(t) // waiting events are dropped
	one, err := b.Reader(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || len(one.Choices) != 3 || one.Choices[0].Title != "Comment" ||
		one.Choices[1].Title != "Like" ||
		one.Choices[1].Preference.Mode != "off" {
		t.Errorf("the page shows %+v, %v", one.Choices, err)
	}
}
