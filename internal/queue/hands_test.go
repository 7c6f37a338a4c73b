package queue

import (
	"sync"
	"testing"
)

// TestHands run what they are given, all at the same time if need be. That includes work that asks for more
// work, and work after the request to end.
func TestHands(t *testing.T) {
	t.Parallel()
	quit := make(chan struct{})
	h := hands{jobs: make(chan func()), quit: quit}
	wait := func(run func()) {
		ended := make(chan struct{})
		h.do(func() { defer close(ended); run() })
		<-ended
	}
	const jobs = 20
	for range 3 {
		var together, ended sync.WaitGroup
		together.Add(jobs)
		ran := make(chan int, jobs)
		for i := range jobs {
			ended.Go(func() {
				wait(func() {
					together.Done()
					together.Wait() // as long as one of them has not begun, none ends
					wait(func() { ran <- i })
				})
			})
		}
		ended.Wait()
		if len(ran) != jobs {
			t.Errorf("%d of %d ran", len(ran), jobs)
		}
	}
	close(quit)
	late := false
	wait(func() { late = true })
	if !late {
		t.Error("what came late was not done")
	}
}
