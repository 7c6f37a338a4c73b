//go:build unix

// This file gives tests ports for servers that must get theirs on the command line, like redis-server and
// Postfix.
//
// A port that was merely free a moment ago is taken again, now and then, by one of the thousands of
// connections that the other test packages open at the same time. So the port stays bound until the test
// ends, by a socket that never listens. The kernel gives it to no one who asks for any port. A server that
// asks for this very port, with SO_REUSEADDR as servers do, gets it.

package testkit

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// FreePort is a TCP port of the loopback interface which is the test's own until it ends.
func FreePort(t testing.TB) int {
	t.Helper()
	port, ok := hold(t, 0)
	if !ok {
		t.Fatal("no port of 127.0.0.1 is free")
	}
	return port
}

// PortPair is a port whose neighbour, distance above, is the test's own too; a node of a Redis Cluster needs
// that.
func PortPair(t testing.TB, distance int) int {
	t.Helper()
	for range 1000 {
		port, ok := hold(t, 0)
		if !ok || port+distance > 65535 {
			continue
		}
		if _, ok := hold(t, port+distance); ok {
			return port
		}
	}
	t.Fatalf("no two ports of 127.0.0.1 that are %d apart are free", distance)
	return 0
}

// hold binds a port, 0 for any, until the test ends.
func hold(t testing.TB, port int) (held int, ok bool) {
	t.Helper()
	held, release, err := bind(port)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return 0, false
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(release)
	return held, true
}

// HoldPort is FreePort without a test: the port is the caller's own until release. It fails if the system
// has no socket or port to give.
func HoldPort() (port int, release func(), err error) { return bind(0) }

func bind(port int) (held int, release func(), err error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, fmt.Errorf("hold a port: %w", err)
	}
	release = func() { _ = syscall.Close(fd) }
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		// Only now: with it from the beginning, a port that another test holds, and whose server does not listen
		// yet, would be given away twice.
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	var name syscall.Sockaddr
	if err == nil {
		name, err = syscall.Getsockname(fd)
	}
	if err != nil {
		release()
		return 0, nil, fmt.Errorf("hold port %d of 127.0.0.1: %w", port, err)
	}
	return name.(*syscall.SockaddrInet4).Port, release, nil
}
