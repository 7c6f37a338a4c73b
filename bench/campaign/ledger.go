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
	alone  map[string][]time.Time // arrivals of the messages beside, by name
	total  int
	size   int
}

func newLedger(size int) *ledger {
	return &ledger{size: size, people: map[string][]uint8{}, alone: map[string][]time.Time{}}
}

// respond notes what the relay is told.
func (l *ledger) respond(c testsmtp.Command) testsmtp.Action {
	if c.Verb == "DOT" {
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
	l.people[campaign][n]++
}

func (l *ledger) mails() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
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
