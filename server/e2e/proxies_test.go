package e2e_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/app/apptest"
)

// TestSettingsOfProxiesReachEveryListener: a token that is restricted to the client's address is let in
// through a proxy by the settings alone.
func TestSettingsOfProxiesReachEveryListener(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{"http.trustedProxies": "127.0.0.1", "http.proxyProtocol": "true",
		"smtp": "smtp://127.0.0.1:1", "from": "shop@example.com",
		"monitor.listen": "127.0.0.1:0", "smtpd.listen": "127.0.0.1:0", "smtpd.insecureAuth": "true",
		"smtpd.proxyProtocol": "true", "bounce.listen": "127.0.0.1:0", "bounce.domain": "bounce.example.com",
		"bounce.proxyProtocol": "true"})
	const client = "PROXY TCP4 203.0.113.9 192.0.2.1 4711 25\r\n"
	web := strings.TrimPrefix(a.URL(), "http://")
	created := converse(t, web, client+request("POST", "/v1/tokens", a.Token(),
		`{"description":"x","scopes":["api","metrics"],"restrictions":{"addresses":["203.0.113.9"]}}`))
	_, rest, _ := strings.Cut(created, `"token":"`)
	token, _, _ := strings.Cut(rest, `"`)
	if len(token) != 64 {
		t.Fatalf("no token: %s", created)
	}
	if got := converse(t, web, client+request("GET", "/v1/outbox", token, "")); !strings.HasPrefix(got,
		"HTTP/1.1 200") {
		t.Errorf("http: %s", got)
	}
	login := base64.StdEncoding.EncodeToString([]byte("\x00\x00" + token))
	if got := converse(t, a.Addrs().SMTP, client+"EHLO x\r\nAUTH PLAIN "+login+
		"\r\nQUIT\r\n"); !strings.Contains(got, "235 2.7.0") {
		t.Errorf("smtp: %s", got)
	}
	if got := converse(t, a.Addrs().Bounce, client+"QUIT\r\n"); !strings.Contains(got, "221") {
		t.Errorf("bounces: %s", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Addrs().Monitor+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "X-Forwarded-For": {"203.0.113.9"}}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if answer.StatusCode != http.StatusOK {
		t.Errorf("monitor: %d", answer.StatusCode)
	}
}

// request is a request of HTTP in full, the last one on its connection.
func request(method, path, token, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, token, len(body), body)
}

// converse sends a text and returns all that comes back.
func converse(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // read to its end
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%v after %q", err, back)
	}
	return string(back)
}
