package queue

// hands are the goroutines that handlers run on. asynq starts one for each task, whose small stack a handler then grows several times, copying
// it each time; these stay, and so do their stacks.
type hands struct {
	jobs chan job
	quit <-chan struct{} // closed when no job will come any more
}

// job is a handler to run, and who waits for it.
type job struct {
	run  func()
	done chan struct{}
}

// do runs a function, which must not panic, on a hand that is free, or on one more.
func (h *hands) do(run func()) {
	j := job{run, make(chan struct{})}
	select {
	case h.jobs <- j:
	default:
		go h.work(j)
	}
	<-j.done
}

func (h *hands) work(j job) {
	for {
		j.run()
		close(j.done)
		select {
		case j = <-h.jobs:
		case <-h.quit:
			return
		}
	}
}
