package peers

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// enter admits a connection that notes in cut that it was closed.
func enter(c *ConnLimiter, addr string, at time.Duration, cut *[]string) *Pass {
	a, _ := netip.ParseAddr(addr)
	return c.Enter(a, func() { *cut = append(*cut, addr) }, noon.Add(at))
}

func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := Network(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if Network(netip.Addr{}).IsValid() {
		t.Error("an unknown address has a network")
	}
}

// TestTheOldestUnauthenticatedClientMakesRoom, never one that has proven who it is.
func TestTheOldestUnauthenticatedClientMakesRoom(t *testing.T) {
	var cut []string
	c := NewConnLimiter(ConnLimits{Connections: 3})
	member := enter(c, "192.0.2.1", 0, &cut)
	member.Prove()
	enter(c, "192.0.2.2", 1, &cut)
	enter(c, "192.0.2.3", 2, &cut)
	fresh := enter(c, "192.0.2.4", 3, &cut)
	if fmt.Sprint(cut) != "[192.0.2.2]" || c.Open() != 3 {
		t.Fatalf("%v were closed, %d are open", cut, c.Open())
	}
	fresh.Prove()
	enter(c, "192.0.2.5", 4, &cut).Prove()
	if enter(c, "192.0.2.6", 5, &cut) != nil {
		t.Error("a connection was admitted in place of one that is proven")
	}
	member.Leave()
	member.Leave()
	if enter(c, "192.0.2.6", 6, &cut) == nil || c.Open() != 3 {
		t.Errorf("no room after one left: %d are open", c.Open())
	}
}

// TestANetworkHasItsShare: one network's young connections keep more out, old connections make room.
func TestANetworkHasItsShare(t *testing.T) {
	var cut []string
	c := NewConnLimiter(ConnLimits{Connections: 100, PerNetwork: 2})
	enter(c, "2001:db8::1", 0, &cut)
	enter(c, "2001:db8::2", 0, &cut)
	if enter(c, "2001:db8::3", time.Second, &cut) != nil {
		t.Error("a third one was admitted")
	}
	if enter(c, "2001:db8:0:1::3", time.Second, &cut) == nil {
		t.Error("another network was refused")
	}
	if enter(c, "2001:db8::4", settled, &cut) == nil || fmt.Sprint(cut) != "[2001:db8::1]" {
		t.Errorf("old ones made no room: %v", cut)
	}
	for range 9 {
		if enter(c, "", 0, &cut) == nil {
			t.Error("a connection without an address was counted by network")
		}
	}
}

// TestOneNetworkCannotKeepAllOutByProofs: if it holds more than half of all connections, its
// oldest one makes room for a neighbour, but not for itself.
func TestOneNetworkCannotKeepAllOutByProofs(t *testing.T) {
	var cut []string
	c := NewConnLimiter(ConnLimits{Connections: 4})
	for i := range 4 {
		enter(c, "192.0.2.1", time.Duration(i), &cut).Prove()
	}
	if enter(c, "192.0.2.1", 9, &cut) != nil {
		t.Error("it made room for itself")
	}
	if enter(c, "192.0.2.2", 9, &cut) == nil || len(cut) != 1 {
		t.Errorf("a neighbour was kept out; closed: %v", cut)
	}
}

func TestAnAddressKnownLaterCounts(t *testing.T) {
	var cut []string
	c := NewConnLimiter(ConnLimits{Connections: 9, PerNetwork: 1})
	first, second := enter(c, "", 0, &cut), enter(c, "", 0, &cut)
	client := netip.MustParseAddr("192.0.2.1")
	if !first.Identify(client, noon) || second.Identify(client, noon) {
		t.Error("the second of one address was admitted, or the first was not")
	}
	if second.Leave(); c.Open() != 1 {
		t.Errorf("%d are open, want 1", c.Open())
	}
	if first.Leave(); c.Open() != 0 || len(c.networks) != 0 || c.anonymous.Len() != 0 {
		t.Errorf("something is left: %d open, networks %v", c.Open(), c.networks)
	}
}

func TestAnOwnerLeavesAsMuchAsItHolds(t *testing.T) {
	p := NewPool(Shares{Size: 120})
	greedy, _ := p.Begin("a")
	for range 100 {
		greedy.TryTake(1)
	}
	if got := p.Free(); got != 60 {
		t.Fatalf("%d are left for others, want half", got)
	}
	other, _ := p.Begin("b")
	if !other.TryTake(30) || other.TryTake(1) {
		t.Error("the second owner gets no half of the rest, or more")
	}
	greedy.Release()
	greedy.Release()
	other.Release()
	if p.Free() != 120 || len(p.owners) != 0 {
		t.Errorf("%d are free, owners %v", p.Free(), p.owners)
	}
}

// TestHalfBodiesDoNotWaitForEachOther: all of them are completed, although they do not fit side by side.
func TestHalfBodiesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Shares{Size: 100, First: 50})
		done := make(chan error, 10)
		for range 10 {
			go func() {
				b, _ := p.Begin("a")
				defer b.Release()
				for range 50 {
					if _, err := b.Take(t.Context(), 1); err != nil {
						done <- err
						return
					}
					time.Sleep(time.Millisecond) // synctest's: the bytes arrive side by side
				}
				done <- nil
			}()
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if p.Free() != 50 || p.first != nil {
			t.Errorf("%d are free", p.Free())
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	p := NewPool(Shares{Size: 10})
	holder, _ := p.Begin("a")
	holder.TryTake(5)
	waiting, _ := p.Begin("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if waited, err := waiting.Take(ctx, 5); err == nil || !waited || p.waiting.Len() != 0 {
		t.Errorf("waited %v, error %v, %d still wait", waited, err, p.waiting.Len())
	}
}

func TestBodiesAreCounted(t *testing.T) {
	p := NewPool(Shares{Size: 10, Bodies: 3, PerOwner: 2})
	for _, row := range []struct {
		owner string
		ok    bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"c", false}} {
		if _, err := p.Begin(row.owner); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.owner, err)
		}
	}
}

// TestBurstsBuyNoPause: data from before a window does not count in it.
func TestBurstsBuyNoPause(t *testing.T) {
	w := PaceOf(100, 10*time.Second).Window()
	if w.Got(999) || !w.Got(100_000) || w.Got(999) || !w.Got(1) {
		t.Error("a window is not 1000 bytes")
	}
}

func TestWrongProofs(t *testing.T) {
	p := NewProofs(2)
	for i, want := range []bool{false, false, true} {
		if got, wait := p.Wrong(netip.MustParseAddr("2001:db8::1"), noon.Add(20*time.Second)); got != want ||
			wait != 40*time.Second {
			t.Errorf("proof %d: %v, for %s", i, got, wait)
		}
	}
	if got, _ := p.Wrong(netip.MustParseAddr("192.0.2.1"), noon); got {
		t.Error("another network is limited")
	}
	if got, _ := p.Wrong(netip.MustParseAddr("2001:db8::1"), noon.Add(time.Minute)); got {
		t.Error("limited in the next minute")
	}
	for i := range networksKept + 100 {
		p.Wrong(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), noon.Add(time.Minute))
	}
	if got := len(p.wrong); got > networksKept+1 {
		t.Errorf("%d networks are kept", got)
	}
}
