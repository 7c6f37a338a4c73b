package smtpsend

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	netproxy "golang.org/x/net/proxy"
)

// connected is a dialer that returns an open connection.
type connected struct{ net.Conn }

// Dial implements [netproxy.Dialer].
func (c connected) Dial(string, string) (net.Conn, error) { return c.Conn, nil }

// askSOCKS asks for a tunnel by SOCKS 5 (RFC 1928). The proxy looks names up.
func (p *proxy) askSOCKS(conn net.Conn, host string, port int) error {
	var login *netproxy.Auth
	if p.user != "" || p.password != "" {
		login = &netproxy.Auth{User: p.user, Password: p.password}
	}
	dialer, err := netproxy.SOCKS5("tcp", p.address, login, connected{conn})
	if err == nil {
		_, err = dialer.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return socksError(err)
}

// socksError translates an error of x/net by its text: its errors have no types.
func socksError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && strings.HasPrefix(op.Op, "socks") {
		err = op.Err
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	if reply, ok := strings.CutPrefix(text, "unknown error "); ok {
		return fmt.Errorf("it cannot reach the relay: %s", reply)
	}
	for _, login := range []string{"username/password", "authentication method"} {
		if strings.Contains(text, login) {
			return fmt.Errorf("%w: %s", errProxyLogin, text)
		}
	}
	if strings.HasPrefix(text, "unexpected protocol version") {
		return errors.New("its answer is not SOCKS 5")
	}
	return err
}
