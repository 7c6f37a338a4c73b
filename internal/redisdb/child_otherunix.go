//go:build unix && !linux

package redisdb

import "syscall"

// childAttributes puts the server into its own process group, so that Ctrl-C stops us first and the server
// after our last write. Only Linux can stop it when this process is killed; elsewhere it continues to run,
// and holds the lock of the data directory.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
