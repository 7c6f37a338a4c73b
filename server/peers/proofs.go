package peers

import (
	"net/netip"
	"sync"
	"time"
)

// networksKept bounds the networks that are counted within a minute. All others count as one.
const networksKept = 20_000

// Proofs counts wrong proofs by network and minute: tokens in links, signatures of webhooks. It counts
// whatever else an unauthenticated client may send only so often, such as forms. It is safe for concurrent
// use.
type Proofs struct {
	perMinute int // for one network; 0 means no limit

	mu     sync.Mutex
	minute time.Time
	wrong  map[netip.Prefix]int
}

// NewProofs returns a counter with a limit for each network and minute; 0 if none.
func NewProofs(perMinute int) *Proofs {
	return &Proofs{perMinute: perMinute, wrong: map[netip.Prefix]int{}}
}

// Wrong counts a wrong proof. It reports whether the network has had too many within this minute, and when
// the next one begins.
func (p *Proofs) Wrong(addr netip.Addr, now time.Time) (tooMany bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(p.minute) {
		p.minute = minute
		clear(p.wrong)
	}
	from := Network(addr)
	if _, known := p.wrong[from]; !known && len(p.wrong) >= networksKept {
		from = netip.Prefix{}
	}
	p.wrong[from]++
	return p.perMinute > 0 && p.wrong[from] > p.perMinute, p.minute.Add(time.Minute).Sub(now)
}
