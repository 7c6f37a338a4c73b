//go:build unix && !linux

package redisdb

import "syscall"

// childAttributes puts the server into a process group of its own, so that Ctrl-C stops us first and the
// server after our last write. Only Linux can stop it when this process is killed; elsewhere it goes on
// running, and holds the lock of the data directory.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
