//go:build unix

package testkit

import (
	"fmt"
	"net"
	"testing"
)

func TestAHeldPortIsGivenToItsServerAndToNobodyElse(t *testing.T) {
	port := FreePort(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the server the port is meant for: %v", err)
	}
	_ = l.Close()
	for range 2000 {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if got := other.Addr().(*net.TCPAddr).Port; got == port {
			t.Fatalf("port %d was given away", port)
		}
		_ = other.Close()
	}
}

func TestAHeldPortIsHeldOnce(t *testing.T) {
	port := FreePort(t)
	if _, ok := hold(t, port); ok {
		t.Errorf("port %d is held by two", port)
	}
}

func TestPair(t *testing.T) {
	port := PortPair(t, 10000)
	for _, p := range []int{port, port + 10000} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			t.Error(err)
			continue
		}
		_ = l.Close()
	}
}
