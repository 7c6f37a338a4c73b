package main

import "syscall"

// dieWithUs has the kernel end a process when this one ends, however that comes.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
