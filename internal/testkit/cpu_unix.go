//go:build unix

// This file shows tests how much work something was. The clock doesn't measure that: a machine with ten times
// as much to do as it has processors makes minutes of seconds.

package testkit

import (
	"syscall"
	"testing"
	"time"
)

// CPUUsed is the processor time that this process has had so far, all of its threads together.
func CPUUsed(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
