//go:build !linux

package testredis

import "syscall"

// dieWithUs needs Linux; elsewhere a test process that is killed leaves its server behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
