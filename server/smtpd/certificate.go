package smtpd

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a pair of files that a renewal may replace while the inlet runs.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	read [2]version // of the two files when they were last read, even if that failed
}

// version changes when a file is replaced.
type version struct {
	modified time.Time
	size     int64
}

func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	c.read = c.versions()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	c.pair = &pair
	return c, err
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: c.current, MinVersion: tls.VersionTLS12}
}

// current returns the certificate of the files as they are now, or the last good one while they cannot be
// read or only one of them has been replaced.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.versions()
	if now == c.read {
		return c.pair, nil
	}
	c.read = now
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("changed certificate not readable; the last one stays in use", "certificate", c.certFile,
			"error", err)
		return c.pair, nil
	}
	c.pair = &pair
	c.log.Info("certificate read again", "certificate", c.certFile)
	return c.pair, nil
}

func (c *certificate) versions() (v [2]version) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			v[i] = version{info.ModTime(), info.Size()}
		}
	}
	return v
}
