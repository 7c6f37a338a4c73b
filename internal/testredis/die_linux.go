package testredis

import "syscall"

// DieWithUs has the kernel end the server when the test process ends, however that comes.
func DieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
