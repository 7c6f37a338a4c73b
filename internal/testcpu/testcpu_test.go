//go:build unix

package testcpu

import (
	"testing"
	"time"
)

func TestWorkCountsAndWaitingDoesNot(t *testing.T) {
	before := Used(t)
	time.Sleep(300 * time.Millisecond)
	if waited := Used(t) - before; waited > 200*time.Millisecond {
		t.Errorf("waiting was %s of work", waited)
	}
	for end := Used(t) + 50*time.Millisecond; Used(t) < end; { // or it goes on until the test is ended
	}
}
