package queue

// hands are the goroutines that run handlers. asynq starts one for each task. Its small stack is then grown
// and copied several times. These goroutines stay, and so do their stacks.
type hands struct {
	jobs chan job
	quit <-chan struct{} // closed when no job will come any more
}

// job is a handler to run, and the channel of its caller.
type job struct {
	run  func()
	done chan struct{}
}

// do runs a function, which must not panic, on a free hand, or on a new one.
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
