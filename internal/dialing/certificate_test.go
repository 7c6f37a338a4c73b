package dialing_test

import (
	"crypto/tls"
	"net"
	"os"
	"testing"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/testkit"
)

// handshake connects a client and a server with the certificate of the files on both sides, and returns the
// names that each of them saw.
func handshake(t *testing.T, f *dialing.Certificate) (ofServer, ofClient string) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	asking := f.Server()
	asking.ClientAuth = tls.RequireAnyClientCert
	server := tls.Server(there, asking)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	showing := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	f.Client(showing)
	client := tls.Client(here, showing)
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return client.ConnectionState().PeerCertificates[0].Subject.CommonName,
		server.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// TestRenewedFilesAreShown by listeners and clients, and half a file is not.
func TestRenewedFilesAreShown(t *testing.T) {
	files := testkit.NewCertificate(t)
	files.Issue(t, "first")
	f, err := dialing.LoadCertificate(files.Cert, files.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if server, client := handshake(t, f); server != want || client != want {
			t.Errorf("the listener shows %q, the client %q, want %q", server, client, want)
		}
	}
	expect("first")
	if err := os.WriteFile(files.Cert, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("first")
	files.Issue(t, "the second one")
	expect("the second one")
}

func TestFilesThatAreMissing(t *testing.T) {
	if _, err := dialing.LoadCertificate("none.pem", "none.key", nil); err == nil {
		t.Error("files that do not exist were loaded")
	}
}
