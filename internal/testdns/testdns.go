// Package testdns is a name server for tests.
package testdns

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/internal/testkit"
)

// Serve answers questions over UDP and TCP until the test ends. It returns the address, with its port.
func Serve(t testing.TB, handler dns.Handler) string {
	t.Helper()
	packets, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(testkit.FreePort(t))))
	for tries := 0; err != nil && tries < 10; tries++ { // the port is ours for TCP only
		packets, err = net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(testkit.FreePort(t))))
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: listener,
		Handler: handler}} {
		ready := make(chan struct{})
		server.NotifyStartedFunc = func() { close(ready) }
		go func() { _ = server.ActivateAndServe() }()
		<-ready
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// Zone is a name server for all domains of a test. It says that DNSSEC proves whatever isn't below
// insecure.test.
type Zone struct {
	Addr string // with its port

	mu       sync.Mutex
	records  map[dns.Question][]dns.RR
	rcodes   map[string]int // by name, or by name and type
	asked    []string
	unproven string // a name and a type that DNSSEC doesn't prove
}

// NewZone starts a name server without records.
func NewZone(t testing.TB) *Zone {
	t.Helper()
	z := &Zone{records: map[dns.Question][]dns.RR{}, rcodes: map[string]int{}}
	z.Addr = Serve(t, z)
	return z
}

// Add adds records in the form of a zone file.
func (z *Zone) Add(t testing.TB, lines ...string) {
	t.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, line := range lines {
		r, err := dns.NewRR(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		q := dns.Question{Name: dns.CanonicalName(r.Header().Name), Qtype: r.Header().Rrtype, Qclass: dns.ClassINET}
		z.records[q] = append(z.records[q], r)
	}
}

// Fail answers with a code for a name, or for "name type".
func (z *Zone) Fail(name string, rcode int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.rcodes[name] = rcode
}

// Doubt takes the proof from the answer to a name and a type.
func (z *Zone) Doubt(question string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.unproven = question
}

// Clear removes the records of a name and a type.
func (z *Zone) Clear(name string, qtype uint16) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.records, dns.Question{Name: dns.CanonicalName(name), Qtype: qtype, Qclass: dns.ClassINET})
}

// Count returns how often a name was asked for.
func (z *Zone) Count(question string) (n int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, asked := range z.asked {
		if asked == question {
			n++
		}
	}
	return n
}

// ServeDNS implements [dns.Handler].
func (z *Zone) ServeDNS(w dns.ResponseWriter, ask *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	q := ask.Question[0]
	q.Name = dns.CanonicalName(q.Name)
	text := strings.TrimSuffix(q.Name, ".") + " " + dns.TypeToString[q.Qtype]
	z.asked = append(z.asked, text)
	reply := new(dns.Msg)
	reply.SetReply(ask)
	reply.Authoritative = true
	edns := ask.IsEdns0()
	reply.AuthenticatedData = edns != nil && edns.Do() && !strings.Contains(q.Name, "insecure.test.") &&
		text != z.unproven
	if code, ok := z.rcodes[text]; ok {
		reply.Rcode = code
	} else if code, ok := z.rcodes[strings.TrimSuffix(q.Name, ".")]; ok {
		reply.Rcode = code
	} else {
		reply.Answer = z.records[q]
		if alias := z.records[dns.Question{Name: q.Name, Qtype: dns.TypeCNAME,
			Qclass: dns.ClassINET}]; reply.Answer == nil {
			reply.Answer = alias
		}
		if reply.Answer == nil && !z.exists(q.Name) {
			reply.Rcode = dns.RcodeNameError
		}
	}
	if w.RemoteAddr().Network() != "tcp" {
		reply.Truncate(1232)
	}
	_ = w.WriteMsg(reply)
}

func (z *Zone) exists(name string) bool {
	for q := range z.records {
		if q.Name == name || strings.HasSuffix(q.Name, "."+name) {
			return true
		}
	}
	return false
}
