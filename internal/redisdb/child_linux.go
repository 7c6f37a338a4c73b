package redisdb

import "syscall"

// childAttributes puts the server into its own process group, so that Ctrl-C stops us first and the server
// after our last write. It has the kernel stop it in order when this process is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
