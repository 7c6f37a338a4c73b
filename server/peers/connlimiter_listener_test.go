package peers

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
)

// TestClientsBehindAProxyAreToldApart by the PROXY protocol: each address has its share, and the proxy none.
func TestClientsBehindAProxyAreToldApart(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	trusted := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)
	limiter := NewConnLimiter(ConnLimits{Connections: 100, PerNetwork: 1})
	l := limiter.Listen(trusted.Listen(below, "http.proxyProtocol", ClientFirst), trusted)
	defer l.Close()
	for i, row := range []struct {
		client string
		ok     bool
	}{{"192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true}} {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		fmt.Fprintf(client, "PROXY TCP4 %s 192.0.2.9 1000 80\r\nx", row.client)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.RemoteAddr() // as net/http does first; it waits for the header
		if _, err := io.ReadFull(conn, make([]byte, 1)); (err == nil) != row.ok {
			t.Errorf("connection %d, of %s: %v", i, row.client, err)
		}
	}
	if open := limiter.Open(); open != 2 {
		t.Errorf("%d are open, want 2", open)
	}
}
