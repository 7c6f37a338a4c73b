package maildns

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// ClientOptions are the settings of a Client. The zero value asks the name servers of /etc/resolv.conf.
type ClientOptions struct {
	Servers []string // name servers, as IP address and port; defaults to the ones in /etc/resolv.conf
	// Trusted says that the name servers validate DNSSEC, and that no one can change their answers on the way.
	// Name servers on this machine are trusted anyway, if there are no others.
	Trusted bool
	Timeout time.Duration    // how long to wait for one answer; defaults to 5 s
	Now     func() time.Time // defaults to time.Now
}

// Client asks name servers, and learns whether DNSSEC proves their answers. It keeps answers in memory for
// as long as they live, five minutes at most. It is safe for concurrent use.
type Client struct {
	o       ClientOptions
	trusted bool

	mu     sync.Mutex
	answer map[dns.Question]kept
}

type kept struct {
	Answer
	until time.Time
}

// Bounds of what a Client keeps, and of its work for one question.
const (
	longestKept = 5 * time.Minute
	mostKept    = 50_000
	mostAliases = 16
)

// Answer is the DNS data for a name and a type.
type Answer struct {
	Name      string   // the records' name: the one in the question, or the one that its aliases lead to
	Records   []dns.RR // with the type in the question; empty if there is none
	Missing   bool     // the name doesn't exist (NXDOMAIN)
	Authentic bool     // DNSSEC proves all of it, the aliases too
}

// NewClient returns a Client. It fails if it finds no name server.
func NewClient(o ClientOptions) (*Client, error) {
	if len(o.Servers) == 0 {
		var err error
		if o.Servers, err = systemServers(); err != nil {
			return nil, err
		}
	}
	trusted := true
	for _, server := range o.Servers {
		at, err := netip.ParseAddrPort(server)
		if err != nil {
			return nil, fmt.Errorf("name server %q isn't an IP address with a port: %w", server, err)
		}
		trusted = trusted && at.Addr().Unmap().IsLoopback()
	}
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Client{o: o, trusted: trusted || o.Trusted, answer: map[dns.Question]kept{}}, nil
}

// NewResolver returns a resolver of the standard library that asks some name servers, each an IP address with
// a port, one after another. If there are none, it asks the machine's.
func NewResolver(servers []string) *net.Resolver {
	if len(servers) == 0 {
		return net.DefaultResolver
	}
	var turn atomic.Uint32
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		server := servers[int(turn.Add(1)-1)%len(servers)] // a question without an answer is asked again
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}}
}

// systemServers returns the name servers of this machine.
func systemServers() ([]string, error) {
	file, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return nil, fmt.Errorf("find the name servers: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	config, err := dns.ClientConfigFromReader(bufio.NewReader(io.LimitReader(file, 64<<10)))
	if err != nil {
		return nil, fmt.Errorf("read /etc/resolv.conf: %w", err)
	}
	var servers []string
	for _, address := range config.Servers {
		servers = append(servers, net.JoinHostPort(address, config.Port))
	}
	if len(servers) == 0 {
		return nil, errors.New("/etc/resolv.conf names no name server")
	}
	return servers, nil
}

// Ask looks a name up, and follows its aliases (CNAME). A name or type that doesn't exist isn't an error.
// The error is a *net.DNSError: no name server gave an answer.
func (c *Client) Ask(ctx context.Context, name string, qtype uint16) (Answer, error) {
	out := Answer{Name: dns.CanonicalName(name), Authentic: true}
	seen := map[string]bool{}
	for {
		reply, err := c.once(ctx, dns.Question{Name: out.Name, Qtype: qtype, Qclass: dns.ClassINET})
		if err != nil {
			return Answer{}, err
		}
		asked := out.Name
		out.Authentic = out.Authentic && reply.Authentic
		out.Missing = reply.Missing
		if !out.follow(reply.Records, qtype, seen) {
			return Answer{}, failed(name, "its aliases are a loop, or too many", false)
		}
		if len(out.Records) > 0 || out.Missing || out.Name == asked {
			return out, nil
		}
		// The name server returned an alias without its target.
	}
}

// follow goes along the aliases in an answer, and takes the records at their end. It returns false if they
// are a loop or too many.
func (a *Answer) follow(records []dns.RR, qtype uint16, seen map[string]bool) bool {
	for {
		next := ""
		for _, record := range records {
			if dns.CanonicalName(record.Header().Name) != a.Name {
				continue
			}
			alias, isAlias := record.(*dns.CNAME)
			switch {
			case record.Header().Rrtype == qtype:
				a.Records = append(a.Records, record)
			case isAlias:
				next = dns.CanonicalName(alias.Target)
			}
		}
		if next == "" || len(a.Records) > 0 {
			return true
		}
		if seen[a.Name] = true; seen[next] || len(seen) > mostAliases {
			return false
		}
		a.Name = next
	}
}

// once returns the answer to one question, from memory if it is there. Its records are all of the answer's.
func (c *Client) once(ctx context.Context, q dns.Question) (Answer, error) {
	now := c.o.Now()
	c.mu.Lock()
	known, ok := c.answer[q]
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.Answer, nil
	}
	var answer Answer
	var lives time.Duration
	err := error(failed(q.Name, "no name server was asked", true))
	for _, server := range c.o.Servers {
		if answer, lives, err = c.exchange(ctx, q, server); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return Answer{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.answer {
		if len(c.answer) < mostKept {
			break
		}
		delete(c.answer, old)
	}
	c.answer[q] = kept{answer, now.Add(min(lives, longestKept))}
	return answer, nil
}

// exchange asks one name server: over UDP, and over TCP if the answer is too long for that (RFC 7766).
func (c *Client) exchange(ctx context.Context, q dns.Question, server string) (Answer, time.Duration, error) {
	ask := new(dns.Msg)
	ask.SetQuestion(q.Name, q.Qtype)
	ask.AuthenticatedData = true
	ask.SetEdns0(1232, true)
	reply, _, err := (&dns.Client{Timeout: c.o.Timeout, UDPSize: 1232}).ExchangeContext(ctx, ask, server)
	if err == nil && reply.Truncated {
		reply, _, err = (&dns.Client{Timeout: c.o.Timeout, Net: "tcp"}).ExchangeContext(ctx, ask, server)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, 0, failed(q.Name, context.Cause(ctx).Error(), true)
	case err != nil:
		return Answer{}, 0, failed(q.Name, "no answer from the name server", true)
	case len(reply.Question) != 1 || !strings.EqualFold(reply.Question[0].Name, q.Name) ||
		reply.Question[0].Qtype != q.Qtype:
		return Answer{}, 0, failed(q.Name, "the name server answered another question", true)
	case reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError:
		return Answer{}, 0, failed(q.Name, "the name server answered "+dns.RcodeToString[reply.Rcode], true)
	}
	lives := longestKept
	for _, record := range slices.Concat(reply.Answer, reply.Ns) {
		lives = min(lives, time.Duration(record.Header().Ttl)*time.Second)
	}
	return Answer{Records: reply.Answer, Missing: reply.Rcode == dns.RcodeNameError,
		Authentic: reply.AuthenticatedData && c.trusted}, lives, nil
}

// failed is a look-up without a result.
func failed(name, why string, passes bool) *net.DNSError {
	return &net.DNSError{Err: why, Name: strings.TrimSuffix(name, "."), IsTemporary: passes}
}
