//go:build !linux

package main

import "syscall"

// dieWithUs needs Linux; elsewhere a chaos that is killed leaves its processes behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
