package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
)

// envURL names the address of the Postroom that commands talk to.
const envURL = "POSTROOM_URL"

// requestTimeout is the limit of one request: a message of many megabytes may be sent over a slow line.
const requestTimeout = 2 * time.Minute

// reachFlags choose the Postroom that a command talks to.
type reachFlags struct {
	settingsFlags
	URL   string `group:"reach" env:"POSTROOM_URL" placeholder:"URL" help:"Address of Postroom. Defaults to the listen address of the settings."`
	Token string `group:"reach" placeholder:"TOKEN" help:"Access token. Defaults to $$POSTROOM_TOKEN, else the setting token, else the file token in the data directory."`
	JSON  bool   `group:"reach" name:"json" help:"Print JSON, for programs."`

	timeout time.Duration // of one request; 0: requestTimeout
}

// client returns the client. It reads the settings only if the flags are not complete.
func (f reachFlags) client() (*api.Client, error) {
	settings := &config.Loaded{}
	if f.URL == "" || f.Token == "" {
		var err error
		if settings, err = f.load(nil); err != nil {
			return nil, err
		}
	}
	token, err := f.tokenOr(&settings.Config)
	if err != nil {
		return nil, err
	}
	return f.clientWith(&settings.Config, token)
}

// clientWith returns a client with this token. It may be empty for routes that need none.
func (f reachFlags) clientWith(c *config.Config, token string) (*api.Client, error) {
	base, transport := f.URL, newTransport()
	if base == "" {
		var err error
		if base, err = localURL(c, transport); err != nil {
			return nil, err
		}
	}
	if u, err := url.Parse(base); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, usage("%q is not the address of a Postroom: write one such as http://127.0.0.1:3000", base)
	}
	return api.NewClient(base, token, &http.Client{Transport: naming{transport, base},
		Timeout: cmp.Or(f.timeout, requestTimeout)}), nil
}

// tokenOr is the token of the flags, else that of the settings.
func (f reachFlags) tokenOr(c *config.Config) (string, error) {
	if f.Token != "" {
		return f.Token, nil
	}
	return localToken(c)
}

func newTransport() *http.Transport {
	return http.DefaultTransport.(*http.Transport).Clone()
}

// localURL returns the address of the Postroom of these settings, from this machine: of its API, or of the
// monitor of a worker.
func localURL(c *config.Config, transport *http.Transport) (string, error) {
	setting, listen := "http.listen", c.HTTP.Listen
	if c.Role == "worker" && c.Monitor.Listen != "" {
		setting, listen = "monitor.listen", c.Monitor.Listen
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	if port == "0" {
		return "", usage("%s is %s, so the port is picked at start: give the address with --url or POSTROOM_URL",
			setting, listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http"
	if c.HTTP.TLS.Cert != "" {
		scheme = "https"
		if err := pin(c.HTTP.TLS.Cert, transport); err != nil {
			return "", err
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// pin trusts only the certificate of the settings, under a name in it: the address of this machine is not in
// the certificate.
func pin(file string, transport *http.Transport) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("http.tls.cert: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("http.tls.cert: %s holds no certificate in PEM", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("http.tls.cert: %s: %w", file, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if len(cert.DNSNames) > 0 {
		transport.TLSClientConfig.ServerName = strings.Replace(cert.DNSNames[0], "*", "postroom", 1)
	} else if len(cert.IPAddresses) > 0 {
		transport.TLSClientConfig.ServerName = cert.IPAddresses[0].String()
	}
	return nil
}

// localToken returns the admin token of the settings. It never creates one: no service would accept it.
func localToken(c *config.Config) (string, error) {
	if c.Token != "" {
		return c.Token.Reveal(), nil
	}
	file := filepath.Join(c.Data, "token")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", usage("no access token: give one with --token or POSTROOM_TOKEN; %s, where the first start of `postroom serve` puts the admin token, is not there", file)
	}
	if err != nil {
		return "", fmt.Errorf("read the admin token: %w; or give another with --token or POSTROOM_TOKEN", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// unreachable is the error of a request without a response.
type unreachable struct {
	base string
	err  error
}

// Error names the address and the reason.
func (u *unreachable) Error() string { return fmt.Sprintf("no answer from %s: %v", u.base, u.err) }

func (u *unreachable) Unwrap() error { return u.err }

// naming is a transport whose errors name the address.
type naming struct {
	http.RoundTripper
	base string
}

func (n naming) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, &unreachable{n.base, err}
	}
	return resp, nil
}
