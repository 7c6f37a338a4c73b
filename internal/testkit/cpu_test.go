//go:build unix

package testkit

import (
	"testing"
	"time"
)

func TestWorkCountsAndWaitingDoesNot(t *testing.T) {
	before := CPUUsed(t)
	time.Sleep(300 * time.Millisecond)
	if waited := CPUUsed(t) - before; waited > 200*time.Millisecond {
		t.Errorf("waiting was %s of work", waited)
	}
	for end := CPUUsed(t) + 50*time.Millisecond; CPUUsed(t) < end; { // or it continues until the test is ended
	}
}
