//go:build !unix

package testkit

import (
	"testing"
	"time"
)

var began = time.Now()

// CPUUsed is the time since the process began, as there is no better measure here.
func CPUUsed(testing.TB) time.Duration { return time.Since(began) }
