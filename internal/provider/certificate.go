package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/dialing"
)

const (
	certificateSize    = 64 << 10
	certificateTimeout = 5 * time.Second
	certificateLife    = 24 * time.Hour // then it is fetched again
	certificateRetry   = time.Minute    // before an address that failed is asked again
	certificatesKept   = 32
	// the address is unverified until the signature is checked: a sender must not cause unlimited fetches
	fetchesPerMinute = 10
)

// certificateClient returns the client that fetches certificates. SNS may have a private address: that of an
// endpoint in the operator's network at Amazon.
func certificateClient(transport http.RoundTripper) *http.Client {
	client := dialing.New(dialing.Options{AllowPrivate: true}).Client(dialing.HTTP{Environment: true})
	client.Transport = cmp.Or(transport, client.Transport)
	return client
}

// fetchCertificate returns the PEM text at an address whose host was checked: the certificate, then its
// intermediates, if any. It follows no redirect, and reads at most certificateSize bytes.
func fetchCertificate(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch certificate %s: %w", address, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch certificate: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch certificate %s: status %d", address, answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, certificateSize+1))
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", address, err)
	}
	if len(raw) > certificateSize {
		return nil, fmt.Errorf("read certificate %s: larger than %d bytes", address, certificateSize)
	}
	return raw, nil
}

// certificateCache keeps certificates by address. One request fetches an address; the others wait for it.
type certificateCache struct {
	client *http.Client // follows no redirect

	mu      sync.Mutex
	kept    map[string]*certificate
	minute  time.Time // the minute in which fetches are counted
	fetches int
}

// certificate is one address. The fields below done are set before done is closed.
type certificate struct {
	done  chan struct{}
	asked time.Time
	leaf  *x509.Certificate
	err   error
}

// key returns the public key of the certificate at the address, if it is one of SNS and valid now.
func (c *certificateCache) key(ctx context.Context, address string, now time.Time) (*rsa.PublicKey, error) {
	one, mine, err := c.claim(address, now)
	if err != nil {
		return nil, err
	}
	if mine {
		one.leaf, one.err = c.fetch(ctx, address)
		close(one.done)
		if ctx.Err() != nil {
			c.forget(address, one) // the caller went away; the address may be good
		}
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "",
			"The signing certificate could not be fetched in time")
	}
	if one.err != nil {
		return nil, one.err
	}
	return checkCertificate(one.leaf, now)
}

// claim returns the entry of the address. mine reports that it is new and the caller must fetch it.
func (c *certificateCache) claim(address string, now time.Time) (one *certificate, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.kept[address]; ok && !one.stale(now) {
		return one, false, nil
	}
	if minute := now.Truncate(time.Minute); !minute.Equal(c.minute) {
		c.minute, c.fetches = minute, 0
	}
	if c.fetches == fetchesPerMinute {
		return nil, false, fault.New(fault.Unavailable, "",
			"Too many signing certificates were asked for; come back later")
	}
	c.fetches++
	if len(c.kept) >= certificatesKept {
		c.dropOldest()
	}
	one = &certificate{done: make(chan struct{}), asked: now}
	c.kept[address] = one
	return one, true, nil
}

func (one *certificate) stale(now time.Time) bool {
	select {
	case <-one.done:
	default:
		return false
	}
	life := certificateLife
	if one.err != nil {
		life = certificateRetry
	}
	return now.Sub(one.asked) >= life || now.Before(one.asked.Add(-life))
}

// dropOldest drops an entry. Failed addresses go first, so that invented ones do not displace those in use.
func (c *certificateCache) dropOldest() {
	victim, failed := "", false
	for address, one := range c.kept {
		gone := false
		select {
		case <-one.done:
			gone = one.err != nil
		default:
		}
		if victim == "" || (gone && !failed) || (gone == failed && one.asked.Before(c.kept[victim].asked)) {
			victim, failed = address, gone
		}
	}
	delete(c.kept, victim)
}

func (c *certificateCache) forget(address string, one *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[address] == one {
		delete(c.kept, address)
	}
}

func (c *certificateCache) fetch(ctx context.Context, address string) (*x509.Certificate, error) {
	raw, err := fetchCertificate(ctx, c.client, address)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "", "The signing certificate could not be fetched")
	}
	chain, err := parseChain(raw)
	if err != nil {
		return nil, refusedCertificate(err)
	}
	return chain[0], nil
}

// parseChain reads PEM of certificates only. Text around them would be the sign of some other page.
func parseChain(raw []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for rest := bytes.TrimSpace(raw); len(rest) > 0; {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN CERTIFICATE-----")) || len(chain) == 8 {
			return nil, errors.New("is not PEM of certificates alone")
		}
		block, after := pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("is not PEM of certificates alone")
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		chain, rest = append(chain, one), bytes.TrimSpace(after)
	}
	if len(chain) == 0 {
		return nil, errors.New("is empty")
	}
	return chain, nil
}

var snsName = regexp.MustCompile(`^sns\.([a-z0-9-]+\.)?amazonaws\.com(\.cn)?$`)

// checkCertificate verifies that a certificate is one of SNS and valid now. It is not traced to a root, as
// SNS sends no intermediates: it is trusted because it came over HTTPS from a host of SNS.
func checkCertificate(leaf *x509.Certificate, now time.Time) (*rsa.PublicKey, error) {
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil, refusedCertificate(errors.New("is not valid at this time"))
	}
	named := false
	for _, name := range leaf.DNSNames {
		named = named || snsName.MatchString(strings.ToLower(name))
	}
	if !named {
		return nil, refusedCertificate(errors.New("has no name of SNS"))
	}
	public, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < 2048 {
		return nil, refusedCertificate(errors.New("has no RSA key of 2048 bits or more"))
	}
	return public, nil
}

func refusedCertificate(err error) error {
	return fault.Wrap(err, fault.Unauthorized, codeCertificate, "The signing certificate is not acceptable")
}

var snsHost = regexp.MustCompile(`^sns\.[a-z]{2}(-[a-z]+)+-[0-9]{1,2}\.amazonaws\.com(\.cn)?$`)

// snsAddress parses an address of SNS: https, the host of a region, no port, no user, no fragment.
func snsAddress(s string) (*url.URL, bool) {
	if len(s) > 2048 {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.Fragment != "" ||
		!snsHost.MatchString(u.Host) {
		return nil, false
	}
	return u, true
}
