package tracking

import (
	"hash/maphash"
	"time"
)

// Bounds of the rule Burst.
const (
	burstLinks  = 3
	burstWithin = 2 * time.Second
	burstStays  = 10 * time.Second
	// maxVisits bounds the recipients whose clicks are watched together. The rule does not apply to more.
	maxVisits = 100_000
)

// reader is a recipient of a message.
type reader struct {
	message   string
	recipient int
}

// visits are the latest clicks on the mail of one recipient. The ring's lock guards them.
type visits struct {
	links [burstLinks - 1]visited // followed within burstWithin, oldest first
	n     int
	from  time.Time // a bot's clicks begin here
	until time.Time // zero if there was no burst
	last  time.Time
}

type visited struct {
	link uint64
	at   time.Time
}

// click adds a click, and notes a burst.
func (v *visits) click(link uint64, now time.Time) {
	v.last = now
	kept := 0
	for _, l := range v.links[:v.n] {
		if now.Sub(l.at) <= burstWithin && l.link != link {
			v.links[kept] = l
			kept++
		}
	}
	v.n = kept
	if v.n < len(v.links) {
		v.links[v.n] = visited{link, now}
		v.n++
		return
	}
	if v.until.IsZero() || now.After(v.until) {
		v.from = v.links[0].at
	}
	v.until = now.Add(burstStays)
	copy(v.links[:], v.links[1:])
	v.links[len(v.links)-1] = visited{link, now}
}

// bot reports whether a click at a time was a bot's.
func (v *visits) bot(at time.Time) bool {
	return !v.until.IsZero() && !at.Before(v.from) && !at.After(v.until)
}

// linkSeed is the seed for links' hashes. It is random, so that collisions cannot be chosen.
var linkSeed = maphash.MakeSeed()

func linkHash(url string) uint64 { return maphash.String(linkSeed, url) }
