package testredis

import "syscall"

// dieWithUs has the kernel end the server when the test process ends, however that comes.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
