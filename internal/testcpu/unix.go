//go:build unix

// Package testcpu tells tests how much work something was. What the clock says is no measure of that: a
// machine with ten times as much to do as it has processors makes minutes of seconds.
package testcpu

import (
	"syscall"
	"testing"
	"time"
)

// Used is the processor time that this process has had so far, all of its threads together.
func Used(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
