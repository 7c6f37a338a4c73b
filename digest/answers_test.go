package digest_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
)

// wrongKeys returns the fields that a request was refused for.
func wrongKeys(err error) (keys []string) {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, field := range f.Fields {
			keys = append(keys, field.Key)
		}
	}
	return keys
}

// kindIn returns what an email calls the category of its first line.
func kindIn(t *testing.T, m api.SubmitRequest) string {
	t.Helper()
	var params struct {
		Digest struct{ Groups []struct{ Kind string } }
	}
	if err := json.Unmarshal(m.Render.Params, &params); err != nil {
		t.Fatal(err)
	}
	return params.Digest.Groups[0].Kind
}

// TestARequiredCategoryCannotBeOff: not by PATCH and not by PUT. Off for all others is accepted, and the
// answer says that the required one continues.
func TestARequiredCategoryCannotBeOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.required(t, "security")
	email := "ann@example.com"
	off := api.DigestRecipientRequest{Email: &email,
		Preferences: map[string]*api.DigestPreference{"security": {Mode: "off"}, "like": {Mode: "off"}}}
	_, _, put := b.Put(t.Context(), "", "ann", off)
	b.prefer(t, "ann", nil)
	_, patch := b.Patch(t.Context(), "", "ann", off)
	for what, err := range map[string]error{"PUT": put, "PATCH": patch} {
		if keys := wrongKeys(err); !slices.Equal(keys, []string{"preferences.security.mode"}) {
			t.Errorf("%s: wrong fields %v, want preferences.security.mode; %v", what, keys, err)
		}
	}
	one := b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "off"}})
	want := `The category "security" is required, so its emails continue: every day at 08:00`
	if !slices.Contains(one.Warnings, want) || len(one.Next) == 0 || one.Next[0].Schedule != "daily@08:00" {
		t.Errorf("after * off: warnings %q, next %+v; want %q", one.Warnings, one.Next, want)
	}
}

// TestNextHasEverySchedule: the next three times, and the first one of each schedule that is not among them.
func TestNextHasEverySchedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.prefer(t, "ann", map[string]*api.DigestPreference{"a": {Mode: "hourly"}, "b": {Mode: "daily"},
		"c": {Mode: "weekly"}, "*": {Mode: "off"}})
	var got []string
	for _, n := range one.Next {
		got = append(got, n.Categories[0]+" "+n.At.Format("02T15:04"))
	}
	want := []string{"a 02T04:00", "a 02T05:00", "a 02T06:00", "b 02T08:00", "c 07T08:00"} // the 7th is a Monday
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
}

// TestAnEventThatIsPutOffWaits: immediate means as soon as the gap allows. Events that quiet hours or a pause
// defer are waiting.
func TestAnEventThatIsPutOffWaits(t *testing.T) {
	t.Parallel()
	later := start.Add(100 * time.Hour)
	for what, c := range map[string]struct {
		quiet    bool
		paused   bool
		priority string
		state    string
	}{
		"awake":                 {state: "immediate"},
		"quiet hours":           {quiet: true, state: "waiting"},
		"a pause":               {paused: true, state: "waiting"},
		"urgent in quiet hours": {quiet: true, priority: "urgent", state: "immediate"},
		"urgent in a pause":     {paused: true, priority: "urgent", state: "waiting"},
	} {
		b := setup(t, func(o *digest.Options) { o.Gap = time.Hour })
		b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "immediate"}})
		req := api.DigestRecipientRequest{}
		if c.quiet {
			req.Quiet = &[]api.DigestQuiet{{From: "00:00", Until: "07:00"}}
		}
		if c.paused {
			req.PausedUntil = &later
		}
		if _, err := b.Patch(t.Context(), "", "ann", req); err != nil {
			t.Fatal(err)
		}
		e := about("ann", "1", "Bo")
		e.Priority, e.IdempotencyKey = c.priority, "k"
		for range 2 { // the answer to a repetition is the first one
			got := b.add(t, e)[0]
			if got.State != c.state || got.Due.After(start) != (c.state == "waiting") {
				t.Errorf("%s: %+v, want %s", what, got, c.state)
			}
		}
	}
	b := setup(t, func(o *digest.Options) { o.Gap = time.Hour })
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "immediate"}})
	b.add(t, about("ann", "1", "Bo"))
	b.settle(t)
	if got := b.add(t, about("ann", "1", "Cy"))[0]; got.State != "immediate" || !got.Due.After(start) {
		t.Errorf("within the gap: %+v, want immediate at its end", got)
	}
}

// TestACategoryWithoutAKindHasWords: readers see no ids.
func TestACategoryWithoutAKindHasWords(t *testing.T) {
	t.Parallel()
	for category, want := range map[string]string{"new_follower": "New follower", "like": "Like",
		"newFollower": "New follower", "user.mention": "User mention",
		"PR-review": "PR review", "été_2030": "Été 2030",
		"___": "___"} {
		if got := digest.Readable(category); got != want {
			t.Errorf("%q reads %q, want %q", category, got, want)
		}
	}
	b := setup(t)
	e := about("ann", "1", "Bo")
	e.Category = "new_follower"
	b.add(t, e)
	b.morning(t)
	if kind := kindIn(t, b.mails.all()[0]); kind != "New follower" {
		t.Errorf("the mail says %q", kind)
	}
	reader, err := b.Reader(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || reader.Choices[0].Title != "New follower" {
		t.Errorf("the page has %+v, %v", reader.Choices, err)
	}
}

// TestTheKeyOfAnEventThatWasRemoved: it stays away, and the answer to a repetition says so. Keys of other
// readers and of mailed events have their first answer.
func TestTheKeyOfAnEventThatWasRemoved(t *testing.T) {
	t.Parallel()
	for what, by := range map[string]api.DigestEventRemoval{
		"key":   {Key: "k"},
		"thing": {Category: "comment", EntityType: "post", EntityID: "1"},
	} {
		b := setup(t)
		event := func(recipient, key, priority string) api.DigestEvent {
			e := about(recipient, "1", "Bo")
			e.IdempotencyKey, e.Priority = key, priority
			return e
		}
		b.add(t, event("ann", "mailed", ""))
		b.morning(t)
		b.add(t, event("ann", "k", ""), event("cy", "k", ""))
		b.Advance(25 * time.Hour) // the next day remembers its own keys
		b.add(t, event("ann", "another day", ""))
		by.Recipients = []string{"ann"}
		if gone, err := b.Remove(t.Context(), "", by); err != nil || gone.Deleted == 0 {
			t.Fatalf("by %s: %+v, %v", what, gone, err)
		}
		for range 2 {
			got := b.add(t, event("ann", "k", ""))[0]
			if got.State != "dropped" || got.Reason != "deleted" || got.Due != nil ||
				got.Idempotency.Status != "HIT" {
				t.Errorf("by %s: the repetition is answered %+v", what, got)
			}
		}
		for _, e := range []api.DigestEvent{event("cy", "k", ""), event("ann", "mailed", "")} {
			if got := b.add(t, e)[0]; got.State != "waiting" || got.Idempotency.Status != "HIT" {
				t.Errorf("by %s: %s of %s is answered %+v", what, e.IdempotencyKey, e.Recipient, got)
			}
		}
	}
}

// TestARemovalWhoseAnswerWasLost says what it removed, although its script ran twice.
func TestARemovalWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Keep = 2 })
	keyed := about("ann", "1", "Bo")
	keyed.IdempotencyKey = "k"
	b.add(t, about("ann", "2", "Bo"), about("ann", "2", "Cy"), about("ann", "2", "Di"), keyed)
	b.db.Client().AddHook(repeating{})
	for _, q := range []struct {
		removal api.DigestEventRemoval
		want    int
	}{
		{api.DigestEventRemoval{Key: "k"}, 1},
		{api.DigestEventRemoval{Key: "k"}, 0}, // another call
		{api.DigestEventRemoval{Category: "comment", EntityType: "post", EntityID: "2"}, 3},
	} {
		q.removal.Recipients = []string{"ann"}
		if got, err := b.Remove(t.Context(), "", q.removal); err != nil || got.Deleted != q.want {
			t.Errorf("%+v: %+v, %v, want %d", q.removal, got, err, q.want)
		}
	}
}

// TestAKeyBeyondKeepIsNotReached: the answer says how to remove such an event.
func TestAKeyBeyondKeepIsNotReached(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Keep = 1 })
	e := about("ann", "1", "Bo")
	e.IdempotencyKey = "k"
	b.add(t, e, about("ann", "2", "Bo"))
	got, err := b.Remove(t.Context(), "", api.DigestEventRemoval{Recipients: []string{"ann"}, Key: "k"})
	if err != nil || got.Deleted != 0 || len(got.Warnings) != 1 {
		t.Errorf("by key: %+v, %v; want a warning", got, err)
	}
	got, err = b.Remove(t.Context(), "", api.DigestEventRemoval{Recipients: []string{"ann"},
		Category: "comment", EntityType: "post", EntityID: "1"})
	if err != nil || got.Deleted != 1 || got.Warnings != nil {
		t.Errorf("by thing: %+v, %v", got, err)
	}
}

// TestASecondSendAtOnceHasTheReason: it is answered as the first one, with the same run.
func TestASecondSendAtOnceHasTheReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", nil)
	first, err := b.Send(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || first.State != api.DigestSkipped || first.Reason != "empty" {
		t.Errorf("first: %+v, %v", first, err)
	}
	second, err := b.Send(t.Context(), "", api.DigestAccount{}, "ann") // at the same millisecond
	if err != nil || second != first {
		t.Errorf("second: %+v, %v; want %+v", second, err, first)
	}
}
