//go:build !unix

package testcpu

import (
	"testing"
	"time"
)

var began = time.Now()

// Used is the time since the process began: for want of a better measure here.
func Used(testing.TB) time.Duration { return time.Since(began) }
