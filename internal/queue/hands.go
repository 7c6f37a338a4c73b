package queue

// hands are the goroutines that run handlers. asynq starts one for each task. Its small stack is then grown
// and copied several times. These goroutines stay, and so do their stacks.
type hands struct {
	jobs chan func()
	quit <-chan struct{} // closed when no job will come any more
}

// do has a free hand, or a new one, run a function, which must not panic.
func (h *hands) do(run func()) {
	select {
	case h.jobs <- run:
	default:
		go h.work(run)
	}
}

func (h *hands) work(run func()) {
	for {
		run()
		select {
		case run = <-h.jobs:
		case <-h.quit:
			return
		}
	}
}
