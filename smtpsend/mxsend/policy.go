package mxsend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/smtpsend"
)

// The modes of a Policy (RFC 8461 section 5).
const (
	Enforce = "enforce" // only matching hosts, over verified TLS
	Testing = "testing" // deliver anyway, and count what enforce would have refused
	None    = "none"    // as if there were no policy
)

// Policy is the MTA-STS policy of a domain (RFC 8461).
type Policy struct {
	ID      string // in the TXT record with which it was fetched
	Mode    string // Enforce, Testing or None
	MX      []string
	Fetched time.Time
	Expires time.Time
}

// Policies keeps MTA-STS policies for all processes. app implements it.
type Policies interface {
	// Get returns the policy that was put last for a domain, unless it has expired.
	Get(ctx context.Context, domain string) (p Policy, ok bool, err error)
	// Put keeps a policy until p.Expires.
	Put(ctx context.Context, domain string, p Policy) error
}

// Bounds of MTA-STS (RFC 8461 sections 3.2 and 3.3).
const (
	longestPolicy  = 31_557_600 * time.Second
	policyTimeout  = 60 * time.Second
	policyBytes    = 64 << 10
	policyRefresh  = 24 * time.Hour  // a policy is fetched again daily, in case that its id was forgotten
	policyRepeat   = 5 * time.Minute // between two attempts to fetch a policy
	mostUnfetched  = 10_000
	mostPolicies   = 10_000
	longestPattern = 255
)

// permits reports whether a policy names a host. A wildcard stands for one label (RFC 8461 section 4.1).
func (p Policy) permits(host string) bool {
	return slices.ContainsFunc(p.MX, func(pattern string) bool {
		suffix, wildcard := strings.CutPrefix(pattern, "*.")
		if !wildcard {
			return pattern == host
		}
		label, rest, _ := strings.Cut(host, ".")
		return label != "" && rest == suffix
	})
}

// policy returns the policy of a domain; its Mode is empty or None if nothing is asked for. A failure to
// look up or fetch it leaves the known policy in force until it expires (RFC 8461 section 5.1).
func (s *Sender) policy(ctx context.Context, domain string) Policy {
	if s.o.HTTP == nil {
		return Policy{}
	}
	now := s.o.Now()
	known, ok, err := s.o.Policies.Get(ctx, domain)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "reading an MTA-STS policy failed", "domain", domain, "error", err)
	}
	if !ok || !now.Before(known.Expires) {
		known = Policy{}
	}
	id := s.policyID(ctx, domain)
	if id == "" || id == known.ID && now.Sub(known.Fetched) < policyRefresh {
		return known
	}
	if _, recently := s.unfetched.get(domain, now); recently {
		return known
	}
	s.unfetched.put(domain, true, now.Add(policyRepeat))
	p, err := s.fetch(ctx, domain)
	if err != nil {
		if ctx.Err() == nil {
			s.metrics.count(policySTS, fetchResult(err))
			s.o.Logger.InfoContext(ctx, "fetching an MTA-STS policy failed", "domain", domain, "error", err)
		}
		return known
	}
	p.ID, p.Fetched, p.Expires = id, now, now.Add(p.lives)
	if err := s.o.Policies.Put(ctx, domain, p.Policy); err != nil {
		s.o.Logger.WarnContext(ctx, "storing an MTA-STS policy failed", "domain", domain, "error", err)
	}
	return p.Policy
}

var (
	policyVersion = regexp.MustCompile(`^v=STSv1\s*;`)
	policyRecord  = regexp.MustCompile(`^v=STSv1\s*;(?:.*;)?\s*id=([A-Za-z0-9]{1,32})\s*(?:;.*)?$`)
)

// policyID returns the id in the TXT record of a domain; empty if there isn't just one (RFC 8461 section
// 3.1).
func (s *Sender) policyID(ctx context.Context, domain string) string {
	answer, err := s.o.Resolver.Ask(ctx, "_mta-sts."+domain, dns.TypeTXT)
	if err != nil {
		return ""
	}
	id, records := "", 0
	for _, record := range answer.Records {
		txt, _ := record.(*dns.TXT)
		if txt == nil || !policyVersion.MatchString(strings.Join(txt.Txt, "")) {
			continue
		}
		records++
		if found := policyRecord.FindStringSubmatch(strings.Join(txt.Txt, "")); found != nil {
			id = found[1]
		}
	}
	if records != 1 {
		return ""
	}
	return id
}

// errPolicy is the cause if a policy was fetched and isn't valid.
var errPolicy = errors.New("invalid policy")

// fetched is a policy and how long it holds.
type fetched struct {
	Policy
	lives time.Duration
}

// fetch gets the policy of a domain. A redirect isn't followed (RFC 8461 section 3.3): s.o.HTTP returns it.
func (s *Sender) fetch(ctx context.Context, domain string) (fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"https://mta-sts."+domain+"/.well-known/mta-sts.txt", http.NoBody)
	if err != nil {
		return fetched{}, err
	}
	answer, err := s.o.HTTP.Do(request)
	if err != nil {
		return fetched{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or is of no use
	if answer.StatusCode != http.StatusOK {
		return fetched{}, fmt.Errorf("the server answered %d", answer.StatusCode)
	}
	if kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err != nil ||
		kind != "text/plain" {
		return fetched{}, fmt.Errorf("%w: it isn't text/plain", errPolicy)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, policyBytes+1))
	switch {
	case err != nil:
		return fetched{}, err
	case len(text) > policyBytes:
		return fetched{}, fmt.Errorf("%w: it is longer than %d bytes", errPolicy, policyBytes)
	}
	return readPolicy(string(text))
}

// fetchResult returns the result type of TLS-RPT for a policy that could not be had (RFC 8460 section 4.3).
func fetchResult(err error) string {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errPolicy):
		return "sts-policy-invalid"
	case errors.As(err, &certificate):
		return "sts-webpki-invalid"
	}
	return "sts-policy-fetch-error"
}

// readPolicy reads the text of a policy (RFC 8461 section 3.2). Keys that it doesn't know are ignored, and
// of a key that is there twice the first counts, apart from mx.
func readPolicy(text string) (fetched, error) {
	values := map[string]string{}
	var mx []string
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\r\n")
		key, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		switch {
		case line == "":
		case !ok:
			return fetched{}, fmt.Errorf("%w: a line has no colon", errPolicy)
		case key == "mx":
			if mx = append(mx, strings.ToLower(value)); !validPattern(mx[len(mx)-1]) {
				return fetched{}, fmt.Errorf("%w: an mx isn't a host name", errPolicy)
			}
		case values[key] == "":
			values[key] = value
		}
	}
	seconds, err := strconv.ParseUint(values["max_age"], 10, 64)
	mode := values["mode"]
	switch {
	case values["version"] != "STSv1":
		return fetched{}, fmt.Errorf("%w: its version isn't STSv1", errPolicy)
	case mode != Enforce && mode != Testing && mode != None:
		return fetched{}, fmt.Errorf("%w: its mode isn't enforce, testing or none", errPolicy)
	case err != nil || len(values["max_age"]) > 10:
		return fetched{}, fmt.Errorf("%w: its max_age isn't a number of seconds", errPolicy)
	case len(mx) == 0 && mode != None:
		return fetched{}, fmt.Errorf("%w: it names no mx", errPolicy)
	}
	seconds = min(seconds, uint64(longestPolicy/time.Second))
	return fetched{Policy{Mode: mode, MX: mx}, time.Duration(seconds) * time.Second}, nil
}

func validPattern(pattern string) bool {
	name := strings.TrimPrefix(pattern, "*.")
	return len(pattern) <= longestPattern && smtpsend.ValidHost(name) && !strings.HasSuffix(name, ".")
}

// String returns the policy in one line, for logs.
func (p Policy) String() string { return p.Mode + " " + strings.Join(p.MX, " ") }

// LogValue returns String, for slog.
func (p Policy) LogValue() slog.Value { return slog.StringValue(p.String()) }
