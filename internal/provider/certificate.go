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
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

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

// certificateClient returns the client that fetches certificates. SNS may have a private address: an
// endpoint's in the operator's network at Amazon.
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

// certificateCache keeps certificates by address. Requests at the same time share a fetch.
type certificateCache struct {
	client *http.Client // follows no redirect
	shared singleflight.Group

	mu      sync.Mutex
	kept    map[string]certificate
	minute  time.Time // the minute in which fetches are counted
	fetches int
}

// certificate is an address' certificate, or why it isn't available.
type certificate struct {
	asked time.Time
	leaf  *x509.Certificate
	err   error
}

// key returns the public key of the certificate at the address, if it is one of SNS and valid now.
func (c *certificateCache) key(ctx context.Context, address string, now time.Time) (*rsa.PublicKey, error) {
	one, known := c.find(address, now)
	if !known {
		fetched := c.shared.DoChan(address, func() (any, error) {
			return c.fetch(context.WithoutCancel(ctx), address, now), nil // others may wait for it
		})
		select {
		case result := <-fetched:
			one = result.Val.(certificate)
		case <-ctx.Done():
			return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "",
				"The signing certificate couldn't be fetched in time")
		}
	}
	if one.err != nil {
		return nil, one.err
	}
	return checkCertificate(one.leaf, now)
}

// find returns an address' stored certificate, unless it is too old.
func (c *certificateCache) find(address string, now time.Time) (one certificate, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known = c.kept[address]
	life := certificateLife
	if one.err != nil {
		life = certificateRetry
	}
	return one, known && now.Sub(one.asked).Abs() < life
}

// fetch asks an address, and keeps the answer.
func (c *certificateCache) fetch(ctx context.Context, address string, now time.Time) certificate {
	one, known := c.find(address, now)
	if known { // since the caller looked
		return one
	}
	if !c.mayFetch(now) {
		return certificate{err: fault.New(fault.Unavailable, "",
			"Too many signing certificates were requested. Try again later")}
	}
	one = certificate{asked: now}
	if raw, err := fetchCertificate(ctx, c.client, address); err != nil {
		one.err = fault.Wrap(err, fault.Unavailable, "", "The signing certificate could not be fetched")
	} else if chain, err := parseChain(raw); err != nil {
		one.err = refusedCertificate(err)
	} else {
		one.leaf = chain[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[address] = one
	if len(c.kept) > certificatesKept {
		delete(c.kept, slices.MinFunc(slices.Collect(maps.Keys(c.kept)), c.compare))
	}
	return one
}

// compare orders addresses by which to drop first. Failed ones go first, so that invented addresses do not
// displace addresses in use; then the oldest.
func (c *certificateCache) compare(a, b string) int {
	x, y := c.kept[a], c.kept[b]
	switch {
	case x.err != nil && y.err == nil:
		return -1
	case x.err == nil && y.err != nil:
		return 1
	}
	return x.asked.Compare(y.asked)
}

// mayFetch counts a fetch, and reports whether the minute has room for it.
func (c *certificateCache) mayFetch(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(c.minute) {
		c.minute, c.fetches = minute, 0
	}
	c.fetches++
	return c.fetches <= fetchesPerMinute
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
