package redisdb

import "syscall"

// childAttributes puts the server into a process group of its own, so that Ctrl-C stops us first and the
// server after our last write, and has the kernel stop it in order when this process is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
