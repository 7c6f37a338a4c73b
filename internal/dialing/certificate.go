package dialing

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate is a certificate in two files. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read [2]version // the two files' versions when they were last read, even if that failed
}

// version changes when a file is replaced.
type version struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads the certificate chain and its private key, both in PEM. It logs each change to log,
// unless that is nil.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	f := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	f.read = f.versions()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	f.pair = &pair
	return f, nil
}

// Server returns the settings of a listener that shows this certificate.
func (f *Certificate) Server() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current(), nil },
	}
}

// Client makes connections with these settings show this certificate to servers that ask for one.
func (f *Certificate) Client(c *tls.Config) {
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return f.current(), nil
	}
}

// current returns the certificate of the files as they are now, or the last good one.
func (f *Certificate) current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.versions()
	if now == f.read {
		return f.pair
	}
	f.read = now
	pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		f.log.Warn("changed certificate not readable; the last one stays in use", "certificate", f.certFile,
			"error", err)
		return f.pair
	}
	f.pair = &pair
	f.log.Info("certificate read again", "certificate", f.certFile)
	return f.pair
}

func (f *Certificate) versions() (v [2]version) {
	for i, file := range []string{f.certFile, f.keyFile} {
		if info, err := os.Stat(file); err == nil {
			v[i] = version{info.ModTime(), info.Size()}
		}
	}
	return v
}
