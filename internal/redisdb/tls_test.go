//go:build unix

package redisdb_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// certificate writes a self-signed certificate for 127.0.0.1, which is its own authority, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := testkit.FreePort(t)
	testredis.Server(t, "--tls-port", fmt.Sprint(port), "--bind", "127.0.0.1",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	url := fmt.Sprintf("rediss://127.0.0.1:%d", port)
	db := testredis.Connect(t, redisdb.Options{URL: fmt.Sprintf("%s?ca=%s&cert=%s&key=%s", url, cert, cert,
		key)})
	if err := db.Client().Set(t.Context(), "key", "x", 0).Err(); err != nil {
		t.Error(err)
	}
	if db.Address() != url {
		t.Errorf("address %s", db.Address())
	}
	for name, wrong := range map[string]string{
		"unknown authority":     url + "?cert=" + cert + "&key=" + key,
		"without certificate":   url + "?ca=" + cert,
		"without any assurance": url + "?insecure=true",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		other, err := redisdb.Open(ctx, redisdb.Options{URL: wrong})
		cancel()
		if err == nil {
			other.Close()
			t.Errorf("%s: connected", name)
		}
	}
}

func TestDurabilityWhereConfigIsForbidden(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, "--rename-command", "CONFIG", "")
	db := testredis.Connect(t, redisdb.Options{URL: server.URL()})
	d, err := db.Durability(t.Context())
	if err != nil || !d.Persistent || !d.AOF || d.Fsync != "" || len(d.Warnings) != 0 {
		t.Errorf("durability %+v, %v", d, err)
	}
	if err := db.Client().ConfigGet(t.Context(), "save").Err(); !redis.HasErrorPrefix(err, "unknown command") {
		t.Errorf("CONFIG is allowed after all: %v", err)
	}
	if !strings.Contains(d.String(), "append-only file") {
		t.Errorf("it says %s", d)
	}
}
