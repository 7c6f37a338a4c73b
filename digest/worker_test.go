package digest

import (
	"testing"
	"time"
)

// TestALeaseOfAStepThatHangsEnds: a step that does not even end when its context does is not renewed for
// ever.
func TestALeaseOfAStepThatHangsEnds(t *testing.T) {
	t.Parallel()
	w := &worker{held: map[held]time.Time{}}
	w.hold(held{3, "run r1", "7"}, true)
	now := time.Now()
	if all := w.renewable(now.Add(giveUp / 2)); len(all[3]) != 2 || all[3][0] != "run r1" || all[3][1] != "7" {
		t.Errorf("at work: %v", all)
	}
	if all := w.renewable(now.Add(giveUp + time.Second)); len(all) != 0 {
		t.Errorf("after %v: %v", giveUp, all)
	}
}
