package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestAChunkedBodyEndsTheConnection: a request with Content-Length and Transfer-Encoding is read by the
// latter, and data after its end isn't a second request (RFC 9112, section 6.1).
func TestAChunkedBodyEndsTheConnection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "POST /v1/segments HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	first, err := http.ReadResponse(in, nil)
	if err != nil || !first.Close {
		t.Fatal(first, err)
	}
	_, _ = io.Copy(io.Discard, first.Body)
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("what stands behind it is answered: %s", rest)
	}
}
