package maildns_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/internal/testdns"
	"github.com/postroom/postroom/internal/testkit"
)

// nameServer answers with a function, over UDP and TCP, and counts the questions.
func nameServer(t *testing.T, answer func(ask, reply *dns.Msg, tcp bool)) (address string,
	asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, ask *dns.Msg) {
		asked.Add(1)
		reply := new(dns.Msg)
		reply.SetReply(ask)
		answer(ask, reply, w.RemoteAddr().Network() == "tcp")
		_ = w.WriteMsg(reply)
	})
	return testdns.Serve(t, handler), asked
}

func client(t *testing.T, o maildns.ClientOptions) *maildns.Client {
	t.Helper()
	c, err := maildns.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func record(t *testing.T, line string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(line)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLongAnswersComeOverTCP: RFC 7766 section 5.
func TestLongAnswersComeOverTCP(t *testing.T) {
	address, asked := nameServer(t, func(ask, reply *dns.Msg, tcp bool) {
		if o := ask.IsEdns0(); o == nil || !o.Do() || o.UDPSize() != 1232 {
			t.Errorf("no EDNS0 with DO: %v", ask)
		}
		if reply.Truncated = !tcp; tcp {
			for i := range 200 {
				reply.Answer = append(reply.Answer, record(t, fmt.Sprintf("long.test. 60 MX %d mx%d.long.test.", i, i)))
			}
		}
	})
	answer, err := client(t, maildns.ClientOptions{Servers: []string{address}}).Ask(t.Context(), "LONG.test",
		dns.TypeMX)
	if err != nil || len(answer.Records) != 200 || asked.Load() != 2 {
		t.Errorf("%d records, %d questions, %v", len(answer.Records), asked.Load(), err)
	}
}

// TestWhoProvesAnswers: the AD bit counts if the name server is on this machine, or said to be reached
// safely.
func TestWhoProvesAnswers(t *testing.T) {
	packets, err := net.ListenPacket("udp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var proves atomic.Bool
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter,
		ask *dns.Msg) {
		reply := new(dns.Msg)
		reply.SetReply(ask)
		reply.AuthenticatedData = proves.Load()
		_ = w.WriteMsg(reply)
	})}
	ready := make(chan struct{})
	server.NotifyStartedFunc = func() { close(ready) }
	go func() { _ = server.ActivateAndServe() }()
	<-ready
	t.Cleanup(func() { _ = server.Shutdown() })
	_, port, _ := net.SplitHostPort(packets.LocalAddr().String())
	here, outward := net.JoinHostPort("127.0.0.1", port), ""
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && !ip.IsLoopback() {
			outward = net.JoinHostPort(ip.String(), port)
		}
	}
	for _, row := range []struct {
		servers []string
		trusted bool
		proves  bool
		want    bool
	}{
		{[]string{here}, false, true, true},
		{[]string{here}, false, false, false},
		{[]string{outward}, false, true, false},
		{[]string{here, outward}, false, true, false},
		{[]string{outward}, true, true, true},
		{[]string{outward}, true, false, false},
	} {
		if outward == "" && len(row.servers) == 1 && row.servers[0] == "" {
			continue // this machine has no other address
		}
		proves.Store(row.proves)
		got, err := client(t, maildns.ClientOptions{Servers: row.servers, Trusted: row.trusted}).Ask(t.Context(),
			"a.test",
			dns.TypeA)
		if err != nil || got.Authentic != row.want {
			t.Errorf("%+v: %v, %v", row, got.Authentic, err)
		}
	}
}

// TestAliases: an answer is authentic only if the way to it is, and an alias alone is followed.
func TestAliases(t *testing.T) {
	address, _ := nameServer(t, func(ask, reply *dns.Msg, _ bool) {
		reply.AuthenticatedData = true
		switch ask.Question[0].Name {
		case "whole.test.":
			reply.Answer = []dns.RR{record(t, "whole.test. 60 CNAME end.test."), record(t, "end.test. 60 A 192.0.2.1")}
		case "bare.test.":
			reply.AuthenticatedData = false
			reply.Answer = []dns.RR{record(t, "bare.test. 60 CNAME end.test.")}
		case "end.test.":
			reply.Answer = []dns.RR{record(t, "end.test. 60 A 192.0.2.1")}
		case "nowhere.test.":
			reply.Answer = []dns.RR{record(t, "nowhere.test. 60 CNAME gone.test.")}
			reply.Rcode = dns.RcodeNameError // RFC 6604: about the end of the chain
		case "other.test.":
			reply.Answer = []dns.RR{record(t, "end.test. 60 A 192.0.2.1")} // not what was asked for
		}
	})
	c := client(t, maildns.ClientOptions{Servers: []string{address}})
	for _, row := range []struct {
		name      string
		canonical string
		records   int
		missing   bool
		authentic bool
	}{
		{"whole.test", "end.test.", 1, false, true},
		{"bare.test", "end.test.", 1, false, false},
		{"end.test", "end.test.", 1, false, true},
		{"nowhere.test", "gone.test.", 0, true, true},
		{"other.test", "other.test.", 0, false, true},
	} {
		got, err := c.Ask(t.Context(), row.name, dns.TypeA)
		if err != nil || got.Name != row.canonical || len(got.Records) != row.records ||
			got.Missing != row.missing ||
			got.Authentic != row.authentic {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

// TestAnswersAreKept for as long as they live, but no failure is.
func TestAnswersAreKept(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	address, asked := nameServer(t, func(_, reply *dns.Msg, _ bool) {
		if fails.Load() {
			reply.Rcode = dns.RcodeServerFailure
			return
		}
		reply.Answer = []dns.RR{record(t, "a.test. 30 A 192.0.2.1")}
	})
	clock := testkit.ClockAt(time.Now())
	c := client(t, maildns.ClientOptions{Servers: []string{address}, Now: clock.Now})
	ask := func(want int64, wrong bool) {
		t.Helper()
		_, err := c.Ask(t.Context(), "a.test", dns.TypeA)
		if e, ok := err.(*net.DNSError); asked.Load() != want || (err != nil) != wrong || wrong && (!ok ||
			e.IsNotFound) {
			t.Errorf("%d questions, %v", asked.Load(), err)
		}
	}
	ask(1, true)
	fails.Store(false)
	ask(2, false)
	clock.Advance(29 * time.Second)
	ask(2, false)
	clock.Advance(2 * time.Second)
	ask(3, false)
}

// TestTheNextNameServer is asked if one doesn't answer.
func TestTheNextNameServer(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // a socket of the test
	address, _ := nameServer(t, func(_, reply *dns.Msg, _ bool) {
		reply.Answer = []dns.RR{record(t,
			"a.test. 30 A 192.0.2.1")}
	})
	c := client(t, maildns.ClientOptions{Servers: []string{silent.LocalAddr().String(), address},
		Timeout: 50 * time.Millisecond})
	if got, err := c.Ask(t.Context(), "a.test", dns.TypeA); err != nil || len(got.Records) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	c = client(t, maildns.ClientOptions{Servers: []string{silent.LocalAddr().String()}, Timeout: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Ask(ctx, "a.test", dns.TypeA); err == nil {
		t.Error("an answer from nobody")
	}
	if _, err := maildns.NewClient(maildns.ClientOptions{Servers: []string{"ns.example.com:53"}}); err == nil {
		t.Error("a name server must be an address")
	}
}
