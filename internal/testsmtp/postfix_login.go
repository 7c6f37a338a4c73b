package testsmtp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testkit"
)

// certify writes a certificate and its key for Postfix, and returns the certificate in PEM.
func (s *Postfix) certify(t *testing.T) string {
	t.Helper()
	cert, key, err := testkit.MakeCertificate("testpostfix")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "etc", "chain.pem"), append(key, cert...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(cert)
}

// serveLogins checks passwords for Postfix until the test ends, in the protocol of Dovecot's authentication
// service, and returns its address.
func serveLogins(t *testing.T, passwords map[string]string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerLogins(conn, passwords)
		}
	}()
	return l.Addr().String()
}

func answerLogins(conn net.Conn, passwords map[string]string) {
	defer conn.Close() //nolint:errcheck // Postfix is gone
	fmt.Fprint(conn, "VERSION\t1\t1\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\t00000000000000000000000000000000\nDONE\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if words[0] != "AUTH" || len(words) < 3 {
			continue
		}
		user, ok := "", false
		for _, w := range words {
			if response, found := strings.CutPrefix(w, "resp="); found {
				plain, _ := base64.StdEncoding.DecodeString(response)
				if parts := bytes.Split(plain, []byte{0}); len(parts) == 3 {
					user = string(parts[1])
					ok = user != "" && passwords[user] == string(parts[2])
				}
			}
		}
		if ok {
			fmt.Fprintf(conn, "OK\t%s\tuser=%s\n", words[1], user)
		} else {
			fmt.Fprintf(conn, "FAIL\t%s\tuser=%s\n", words[1], user)
		}
	}
}
