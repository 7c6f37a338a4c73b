package digest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
)

// people returns how many people each line names or counts, by what it is about.
func people(groups []api.DigestGroup) map[string]int {
	all := map[string]int{}
	for _, g := range groups {
		all[g.Category+" "+g.EntityID] = len(g.Actors) + g.Others
	}
	return all
}

// TestEveryoneIsCountedOnce: the preview, the mail and the run count each person once in a line. It doesn't
// matter how many of the person's events are kept individually or urgent.
func TestEveryoneIsCountedOnce(t *testing.T) {
	t.Parallel()
	var some []api.DigestEvent
	add := func(priority, category, entity, id, name string) {
		e := about("ann", entity, name)
		e.Category, e.Priority, e.Actor.ID = category, priority, id
		some = append(some, e)
	}
	for i := range 60 {
		who := fmt.Sprint("p", i*7%20)
		add("", "comment", "1", who, who)
		add("urgent", "comment", "1", fmt.Sprint("p", i%25), "P") // 20 of these 25 are in the other part too
		add("", "comment", fmt.Sprint(i%12), who, who)
		add("", "like", "1", "", fmt.Sprint("Name ", i%9)) // without an id the name tells
		add("urgent", "like", "1", "", "")                 // nobody
	}
	want := map[string]map[string]bool{}
	for _, e := range some {
		line := e.Category + " " + e.EntityID
		if want[line] == nil {
			want[line] = map[string]bool{}
		}
		if who := e.Actor.ID + "/" + e.Actor.Name; e.Actor.ID != "" {
			want[line][e.Actor.ID] = true
		} else if who != "/" {
			want[line][who] = true
		}
	}
	for _, keep := range []int{1, 3, 10, 59, 1000} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(o *digest.Options) { o.Keep, o.CapCategory = keep, 50 })
			away := b.Now().Add(400 * time.Hour)
			b.prefer(t, "ann", nil)
			if _, err := b.Patch(t.Context(), "", "ann", api.DigestRecipientRequest{PausedUntil: &away}); err != nil {
				t.Fatal(err)
			}
			for one := range slices.Chunk(some, 50) {
				b.add(t, one...)
			}
			check := func(what string, groups []api.DigestGroup) {
				t.Helper()
				got := people(groups)
				for line, who := range want {
					if got[line] != len(who) {
						t.Errorf("%s: %q has %d people, want %d", what, line, got[line], len(who))
					}
				}
			}
			preview, err := b.WouldSay(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			check("preview", preview)
			sent, err := b.Send(t.Context(), "", api.DigestAccount{}, "ann")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // before and after the mail is made
				run, err := b.Runs.Get(t.Context(), "", sent.Run)
				if err != nil {
					t.Fatal(err)
				}
				check("run", run.Groups)
				b.settle(t)
			}
			check("mail", saidIn(t, b.mails.all()[0]).Groups)
		})
	}
}

// TestPeopleAreCountedAgainAfterTheirEventsWereRemoved: who was counted before does not stay away from the
// line of the same thing.
func TestPeopleAreCountedAgainAfterTheirEventsWereRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Keep = 2 })
	some := []api.DigestEvent{about("ann", "1", "A"), about("ann", "2", "A"), about("ann", "1", "B"),
		about("ann", "1", "C"), about("ann", "2", "D"), about("ann", "2", "E")}
	b.add(t, some...)
	if _, err := b.Remove(t.Context(), "", api.DigestEventRemoval{Recipients: []string{"ann"},
		Category: "comment", EntityType: "post", EntityID: "1"}); err != nil {
		t.Fatal(err)
	}
	b.add(t, some...)
	b.morning(t)
	if got := people(saidIn(t, b.mails.all()[0]).Groups); got["comment 1"] != 3 || got["comment 2"] != 3 {
		t.Errorf("people: %v, want 3 of each", got)
	}
}

// TestPeopleOfAFailedRunAreCountedOnce: they come back into the next email, together with new events.
func TestPeopleOfAFailedRunAreCountedOnce(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{1, 4, 1000} {
		b := setup(t, func(o *digest.Options) { o.Keep, o.Attempts = keep, 1 })
		var some []api.DigestEvent
		for i := range 10 {
			some = append(some, about("ann", "1", fmt.Sprint("p", i%6)))
		}
		b.add(t, some...)
		b.mails.failWith(fmt.Errorf("the template is wrong"))
		b.morning(t)
		failed, err := b.Runs.Get(t.Context(), "", b.runs(t, "ann")[0].Run)
		if err != nil || failed.State != api.DigestFailed || people(failed.Groups)["comment 1"] != 6 {
			t.Errorf("keep %d: the failed run is %+v, %v; want 6 people", keep, failed, err)
		}
		b.mails.failWith(nil)
		b.add(t, about("ann", "1", "p0"), about("ann", "1", "new"))
		b.morning(t)
		said := saidIn(t, b.mails.all()[0])
		if got := people(said.Groups)["comment 1"]; got != 7 || said.Total != 12 {
			t.Errorf("keep %d: %d people and %d events, want 7 and 12", keep, got, said.Total)
		}
	}
}
