package main

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/bench/rig"
)

func TestMain(m *testing.M) {
	rig.Serve()
	goleak.VerifyTestMain(m)
}

// TestChaos is the program itself, for a shorter while and with a closer storm. Whatever is broken, nothing
// is lost, nothing is sent twice without being marked in doubt, every recipient has its last word, every
// endpoint gets every event, and every digest event is in one email.
func TestChaos(t *testing.T) {
	o := options{
		seed: uint64(time.Now().UnixNano()) % 1_000_000, length: 25 * time.Second, messages: 400, apis: 2,
		workers: 2, receivers: 1, partitions: 1, people: 150, campaigns: 2, digests: 150, readers: 20,
		lease: 4 * time.Second, calm: 0.5, drain: 3 * time.Minute, progress: 5 * time.Second,
	}
	if err := run(t.Context(), t.Output(), o); err != nil {
		t.Error(err)
	}
}
