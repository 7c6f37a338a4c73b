package smtpsend

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// What SOCKS version 5 calls things (RFC 1928, RFC 1929).
const (
	socksVersion      = 5
	socksNoLogin      = 0
	socksPassword     = 2
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksLoginVersion = 1
)

var errNotSOCKS = errors.New("its answer is not SOCKS 5")

// askSOCKS asks for a tunnel by SOCKS 5. Names are for the proxy to look up.
func (p *proxy) askSOCKS(conn io.ReadWriter, host string, port int) error {
	if err := p.greetSOCKS(conn); err != nil {
		return err
	}
	request := []byte{socksVersion, socksConnect, 0}
	switch ip := net.ParseIP(host); {
	case ip.To4() != nil:
		request = append(append(request, socksIPv4), ip.To4()...)
	case ip != nil:
		request = append(append(request, socksIPv6), ip.To16()...)
	case len(host) > 255:
		return errors.New("the relay's name is longer than 255 bytes")
	default:
		request = append(append(request, socksName, byte(len(host))), host...)
	}
	request = binary.BigEndian.AppendUint16(request, uint16(port)) //nolint:gosec // checked before
	if _, err := conn.Write(request); err != nil {
		return err
	}
	return readSOCKS(conn)
}

// greetSOCKS agrees on a way to log in, and does.
func (p *proxy) greetSOCKS(conn io.ReadWriter) error {
	methods := []byte{socksVersion, 1, socksNoLogin}
	if p.user != "" || p.password != "" {
		methods = []byte{socksVersion, 2, socksNoLogin, socksPassword}
	}
	answer, err := exchange(conn, methods)
	switch {
	case err != nil:
		return err
	case answer[0] != socksVersion:
		return errNotSOCKS
	case answer[1] == socksNoLogin:
		return nil
	case answer[1] == socksNoMethod, len(methods) == 3:
		return fmt.Errorf("%w: it takes none we have", errProxyLogin)
	case answer[1] != socksPassword:
		return errNotSOCKS
	}
	login := append([]byte{socksLoginVersion, byte(len(p.user))}, p.user...)
	login = append(append(login, byte(len(p.password))), p.password...)
	if answer, err = exchange(conn, login); err != nil {
		return err
	}
	if answer[1] != 0 {
		return errProxyLogin
	}
	return nil
}

// exchange writes a request and reads the two bytes that answer it.
func exchange(conn io.ReadWriter, request []byte) (answer [2]byte, err error) {
	if _, err = conn.Write(request); err == nil {
		_, err = io.ReadFull(conn, answer[:])
	}
	return answer, err
}

// readSOCKS reads the answer to a connect request, with the address in it that nobody needs.
func readSOCKS(r io.Reader) error {
	var head [5]byte // version, reply, reserved, kind of address, its first byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion {
		return errNotSOCKS
	}
	var rest int
	switch head[3] {
	case socksIPv4:
		rest = net.IPv4len - 1
	case socksIPv6:
		rest = net.IPv6len - 1
	case socksName:
		rest = int(head[4])
	default:
		return errNotSOCKS
	}
	if head[1] != 0 {
		return fmt.Errorf("it cannot reach the relay: %s", socksReply(head[1]))
	}
	_, err := io.ReadFull(r, make([]byte, rest+2)) // the port follows
	return err
}

// socksReply names a refusal as RFC 1928 section 6 does.
func socksReply(code byte) string {
	names := []string{
		1: "general failure", 2: "not allowed by its rules", 3: "network unreachable", 4: "host unreachable",
		5: "connection refused", 6: "TTL expired", 7: "command not supported", 8: "address type not supported",
	}
	if int(code) < len(names) {
		return names[code]
	}
	return fmt.Sprintf("reply %d", code)
}
