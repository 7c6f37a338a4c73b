package mxsend

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/smtpsend"
)

// TestReadPolicy: the example of RFC 8461 section 3.2, and what isn't a policy.
func TestReadPolicy(t *testing.T) {
	const example = "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\n" +
		"mx: backupmx.example.com\r\nmax_age: 604800\r\n"
	for _, row := range []struct {
		name, text string
		want       *fetched // nil: invalid
	}{
		{"the example", example, &fetched{Policy{Mode: Enforce, MX: []string{"mail.example.com", "*.example.net",
			"backupmx.example.com"}}, 604800 * time.Second}},
		{"line feeds alone", "version: STSv1\nmode: testing\nmx: A.example\nmax_age: 1",
			&fetched{Policy{Mode: Testing,
				MX: []string{"a.example"}}, time.Second}},
		{"none needs no mx", "version: STSv1\nmode: none\nmax_age: 60\n", &fetched{Policy{Mode: None},
			time.Minute}},
		{"a longer life than allowed", "version: STSv1\nmode: none\nmax_age: 9999999999\n",
			&fetched{Policy{Mode: None},
				31_557_600 * time.Second}},
		{"the first of two modes, and an unknown key",
			"version: STSv1\nmode: none\nmode: enforce\nx: y\nmax_age: 60\n",
			&fetched{Policy{Mode: None}, time.Minute}},
		{"another version", strings.Replace(example, "STSv1", "STSv2", 1), nil},
		{"no version", "mode: none\nmax_age: 60\n", nil},
		{"another mode", strings.Replace(example, "enforce", "maybe", 1), nil},
		{"no life", "version: STSv1\nmode: none\n", nil},
		{"a negative life", "version: STSv1\nmode: none\nmax_age: -1\n", nil},
		{"eleven digits", "version: STSv1\nmode: none\nmax_age: 00000000060\n", nil},
		{"no mx", "version: STSv1\nmode: enforce\nmax_age: 60\n", nil},
		{"a wildcard in the middle", strings.Replace(example, "*.example.net", "a.*.example.net", 1), nil},
		{"a wildcard alone", strings.Replace(example, "*.example.net", "*", 1), nil},
		{"no colon", example + "hello\n", nil},
		{"nothing", "", nil},
	} {
		got, err := readPolicy(row.text)
		if row.want == nil {
			if !errors.Is(err, errPolicy) {
				t.Errorf("%s: %v, %v", row.name, got, err)
			}
			continue
		}
		if diff := cmp.Diff(*row.want, got, cmp.AllowUnexported(fetched{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", row.name, err, diff)
		}
	}
}

func FuzzReadPolicy(f *testing.F) {
	f.Add("version: STSv1\r\nmode: enforce\r\nmx: *.example.net\r\nmax_age: 604800\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readPolicy(text)
		if err == nil && (p.lives < 0 || p.lives > longestPolicy || p.Mode != None && len(p.MX) == 0) {
			t.Errorf("%+v", p)
		}
	})
}

// TestPermits: RFC 8461 section 4.1.
func TestPermits(t *testing.T) {
	p := Policy{MX: []string{"mail.example.com", "*.example.net"}}
	for host, want := range map[string]bool{"mail.example.com": true, "a.mail.example.com": false,
		"example.com":    false,
		"mx.example.net": true, "example.net": false, "a.b.example.net": false, "mxexample.net": false, "": false} {
		if p.permits(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func TestSources(t *testing.T) {
	a := Source{netip.MustParseAddr("192.0.2.1"), "a.example.com", 3}
	b := Source{netip.MustParseAddr("2001:db8::1"), "b.example.com", 1}
	text := EncodeSources([]Source{b, a})
	if text != EncodeSources([]Source{a, b}) || (Target{Addresses: text}).Check() != nil {
		t.Error(text)
	}
	got, err := DecodeSources(text)
	if diff := cmp.Diff([]Source{a, b}, got, cmp.Comparer(func(x,
		y netip.Addr) bool {
		return x == y
	})); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, wrong := range []string{"x", "192.0.2.1 a.example.com", "192.0.2.1 a 1", "192.0.2.1 a.example.com 0",
		"192.0.2.1 a.example.com x", "fe80::1%eth0 a.example.com 1", "0.0.0.0 a.example.com 1",
		"192.0.2.1 a.example.com 1;192.0.2.1 b.example.com 1", "192.0.2.1 a.example.com\r\n 1", ";"} {
		if _, err := DecodeSources(wrong); err == nil {
			t.Errorf("%q", wrong)
		}
	}
	if err := (Target{TLS: "maybe"}).Check(); err == nil {
		t.Error("TLS: maybe")
	}
}

// TestChoose: a source by weight, the same for a destination all day.
func TestChoose(t *testing.T) {
	sources := []Source{{netip.MustParseAddr("192.0.2.1"), "a.example.com", 3},
		{netip.MustParseAddr("192.0.2.2"), "b.example.com", 1}, {netip.MustParseAddr("2001:db8::1"),
			"c.example.com", 9}}
	morning := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)
	heavy, moved := 0, 0
	for i := range 4000 {
		destination := strings.Repeat("x", i%37) + string(rune('a'+i%26)) + strings.Repeat("y", i/37) + ".test"
		first, _ := choose(sources, false, destination, morning)
		if again, _ := choose(sources, false, destination, morning.Add(23*time.Hour)); again != first {
			t.Fatalf("%s moves within a day", destination)
		}
		if next, _ := choose(sources, false, destination, morning.Add(24*time.Hour)); next != first {
			moved++
		}
		if first.Weight == 3 {
			heavy++
		}
	}
	if heavy < 2800 || heavy > 3200 || moved == 0 {
		t.Errorf("%d of 4000 by a weight of 3 to 1, %d move the next day", heavy, moved)
	}
	if s, ok := choose(sources, true, "x.test", morning); !ok || s.Name != "c.example.com" {
		t.Errorf("%v", s)
	}
	if _, ok := choose(sources[:2], true, "x.test", morning); ok {
		t.Error("IPv6 from an IPv4 address")
	}
}

func TestMemory(t *testing.T) {
	now := time.Now()
	m := newMemory[int](2)
	m.put("a", 1, now.Add(time.Minute))
	if v, ok := m.get("a", now); !ok || v != 1 {
		t.Error("it forgot")
	}
	if _, ok := m.get("a", now.Add(time.Minute)); ok {
		t.Error("it remembers too long")
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		m.put(name, 2, now.Add(time.Minute))
	}
	if v, ok := m.get("c", now); len(m.kept) != 2 || !ok || v != 2 {
		t.Errorf("%d kept", len(m.kept))
	}
	if m.forget("d"); len(m.kept) != 1 {
		t.Error("it can't forget")
	}
	p := PolicyMemory{newMemory[Policy](2), func() time.Time { return now }}
	want := Policy{ID: "1", Mode: Enforce, Expires: now.Add(time.Minute)}
	if err := p.Put(context.Background(), "a.test", want); err != nil {
		t.Error(err)
	}
	if got, ok, err := p.Get(context.Background(), "a.test"); !ok || err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestBetter: a failure that may pass says more than one that doesn't, and a reply more than silence.
func TestBetter(t *testing.T) {
	reply := &smtpsend.Error{Verdict: smtpsend.Soft, Code: 451}
	silence := &smtpsend.Error{Verdict: smtpsend.Soft}
	refused := &smtpsend.Error{Verdict: smtpsend.Policy}
	blocked := &smtpsend.Error{Verdict: smtpsend.Block, Code: 554}
	for _, row := range []struct{ a, b, want *smtpsend.Error }{
		{nil, silence, silence}, {reply, silence, reply}, {silence, reply, reply}, {silence, refused, silence},
		{blocked, silence, silence}, {refused, blocked, blocked}, {blocked, refused, blocked},
	} {
		if got := better(row.a, row.b); got != row.want {
			t.Errorf("%+v and %+v: %+v", row.a, row.b, got)
		}
	}
}
