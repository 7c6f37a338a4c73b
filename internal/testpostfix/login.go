package testpostfix

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certify writes a certificate for 127.0.0.1 that is its own authority, with its key, where Postfix looks for
// it, and gives it in PEM.
func (s *Server) certify(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	chain := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), cert...)
	if err := os.WriteFile(filepath.Join(s.dir, "etc", "chain.pem"), chain, 0o600); err != nil {
		t.Fatal(err)
	}
	return string(cert)
}

// serveLogins answers Postfix' questions about passwords until the test ends, in the protocol of Dovecot's
// authentication service, and gives its address.
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
