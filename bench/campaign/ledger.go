package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// address is the address of a person; single, that of a message beside the campaigns.
func address(n int) string { return fmt.Sprintf("ann.%d@mail%d.example", n, n%300) }

func single(name string, n int) string { return fmt.Sprintf("%s.%d@single.example", name, n) }

// ledger is what the relay got.
type ledger struct {
	mu     sync.Mutex
	people map[string][]uint8     // mails of each person, by campaign
	got    map[string]int         // people who have a campaign
	began  map[int]time.Time      // of the transaction of a connection
	wished map[int]time.Time      // when the wish of a person was answered
	late   int                    // mails of attempts that began after a wish was answered
	alone  map[string][]time.Time // arrivals of the messages beside, by name
	total  int
	size   int
	shut   time.Time // since when no mail may come; zero: it may
	broken int       // mails that came all the same
}

func newLedger(size int) *ledger {
	return &ledger{size: size, people: map[string][]uint8{}, got: map[string]int{}, began: map[int]time.Time{},
		wished: map[int]time.Time{}, alone: map[string][]time.Time{}}
}

// respond notes what the relay is told.
func (l *ledger) respond(c testsmtp.Command) testsmtp.Action {
	switch c.Verb {
	case "MAIL":
		l.mu.Lock()
		l.began[c.Connection] = time.Now()
		l.mu.Unlock()
	case "DOT":
		l.mail(c)
	}
	return testsmtp.Action{}
}

func (l *ledger) mail(c testsmtp.Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, rest, _ := strings.Cut(c.To[0], ".")
	digits, _, _ := strings.Cut(rest, "@")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return
	}
	if name != "ann" {
		if all := l.alone[name]; n < len(all) {
			all[n] = time.Now()
		}
		return
	}
	if !bytes.Contains(c.Data, []byte("List-Unsubscribe")) {
		return
	}
	_, rest, _ = strings.Cut(string(c.Data), "\r\nSubject: News ")
	campaign, _, _ := strings.Cut(rest, " ")
	if l.people[campaign] == nil {
		l.people[campaign] = make([]uint8, l.size)
	}
	l.total++
	if l.people[campaign][n]++; l.people[campaign][n] == 1 {
		l.got[campaign]++
	}
	if at, ok := l.wished[n]; ok && l.began[c.Connection].After(at) {
		l.late++
	}
	if !l.shut.IsZero() && l.began[c.Connection].After(l.shut) {
		l.broken++
	}
}

func (l *ledger) mails() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// shares returns which share of the people each campaign has reached.
func (l *ledger) shares(campaigns []string) []float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]float64, len(campaigns))
	for i, one := range campaigns {
		out[i] = float64(l.got[one]) / float64(l.size)
	}
	return out
}

// expect begins a page for messages beside the campaign.
func (l *ledger) expect(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alone[name] = make([]time.Time, besides)
}

// singles returns when the messages of a name arrived, once all have.
func (l *ledger) singles(name string) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.alone[name] {
		if at.IsZero() {
			return nil
		}
	}
	return l.alone[name]
}

// wish notes that the wish of a person not to be mailed was answered.
func (l *ledger) wish(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wished[n] = time.Now()
}

// pause notes since when no mail may begin; zero: it may.
func (l *ledger) pause(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = at
}

// of returns how many people have a campaign, and how many have it twice.
func (l *ledger) of(campaign string) (got, twice int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.people[campaign] {
		if n > 0 {
			got++
		}
		if n > 1 {
			twice++
		}
	}
	return got, twice
}

// faults returns the mails that came although a wish was answered, and those that came in a pause.
func (l *ledger) faults() (late, broken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late, l.broken
}
