package digest_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// TestManyEventsAreOneMail: thirty notifications are one mail at eight, with a line for each post.
func TestManyEventsAreOneMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 30 {
		r := b.add(t, about("ann", string(rune('a'+i%3)), string(rune('A'+i%5))))
		want := time.Date(2030, 1, 2, 8, 0, 0, 0, time.UTC)
		if r[0].Due == nil || !r[0].Due.Equal(want) || r[0].State != "waiting" {
			t.Fatalf("answered %+v", r[0])
		}
	}
	b.settle(t)
	if n := len(b.mails.all()); n != 0 {
		t.Fatalf("%d mails before eight", n)
	}
	b.Advance(5 * time.Hour)
	b.settle(t)
	b.settle(t)
	all := b.mails.all()
	if len(all) != 1 {
		t.Fatalf("%d mails", len(all))
	}
	d := saidIn(t, all[0])

	if d.Total != 30 || len(d.Groups) != 3 || d.Groups[0].Count != 10 || len(d.Groups[0].Actors) != 3 ||
		d.Groups[0].Others != 2 {
		t.Errorf("said %+v", d)
	}
	runs := b.runs(t, "ann")

	if len(runs) != 1 || runs[0].State != api.DigestSubmitted || runs[0].Period != "2030-01-02" ||
		runs[0].Events != 30 {
		t.Errorf("runs %+v", runs)
	}
}
