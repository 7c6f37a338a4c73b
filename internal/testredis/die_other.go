//go:build !linux

package testredis

import "syscall"

// DieWithUs needs Linux; elsewhere a test process that is killed leaves its server behind.
func DieWithUs() *syscall.SysProcAttr { return nil }
