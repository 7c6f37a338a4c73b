package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// mailing is a campaign as everybody but Postroom knows it, and at the end what Postroom says of it.
type mailing struct {
	number    int
	asked     time.Time        // when its sending was first asked for
	cancelled bool             // a client asked to cancel it
	shut      []stretch        // in which no mail may begin
	mails     map[int][]copied // that relays took, by person
	mangled   int              // mails that were not whole
	notes     []note
	end       *outcome // nil: it never came to an end
}

// stretch is a time from the answer to a pause or a cancel until the resume was asked for. to is zero while
// it lasts.
type stretch struct{ from, to time.Time }

// copied is an email of a campaign that a relay took.
type copied struct {
	began time.Time // when the relay got MAIL of the attempt
	again bool      // a relay put the person off before, so the attempt may be one of the outbox
}

// outcome is what Postroom says of a campaign that has ended.
type outcome struct {
	stats     api.CampaignStats
	listed    map[int][]listing // recipients by person
	recounted bool              // a recount changed a counter
}

// listing is a recipient of a campaign as the API lists it.
type listing struct {
	state, queueID string
	doubts         int // attempts in doubt, where Postroom was asked; else 0
}

// wish is a person's wish to get no more mail.
type wish struct{ asked, answered time.Time } // answered is zero until it was

// mailings are the campaigns of the ledger.
type mailings struct {
	people int
	all    []*mailing // by number; nil: not begun
	wishes map[int]*wish
	putOff map[int][]time.Time  // when relays asked to try a person later
	begun  map[string]time.Time // when relays got MAIL, by relay and connection
	mails  int
}

func newMailings(people, campaigns int) mailings {
	return mailings{people: people, all: make([]*mailing, campaigns), wishes: map[int]*wish{},
		putOff: map[int][]time.Time{}, begun: map[string]time.Time{}}
}

// person is the address of a person whom campaigns go to.
func person(n int) string { return fmt.Sprintf("p%d@%s", n, domain) }

// personOf reads the number off a person's address; -1 if it isn't one.
func personOf(address string) int { return numberIn(address, "p") }

// numberIn reads the number after a prefix off an address; -1 if there is none.
func numberIn(address, prefix string) int {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(address, "@"+domain), prefix)
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n
}

// newsletter is the id of a campaign, and the subject of its mail.
func newsletter(number int) string { return "news-" + strconv.Itoa(number) }

// newsletterOf reads the number of the campaign off the subject of an email; -1 if there is none.
func newsletterOf(data []byte) int {
	_, rest, _ := bytes.Cut(data, []byte("\r\nSubject: news-"))
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	if n, err := strconv.Atoi(string(digits)); err == nil {
		return n
	}
	return -1
}

// lastLine is the last line of a campaign's email: if it is missing on arrival, the email was cut off.
func lastLine(number int, address string) string {
	return fmt.Sprintf("end of %s for %s", newsletter(number), address)
}

// mailing begins the story of a campaign whose sending is about to be asked for.
func (l *ledger) mailing(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mailings.all[number] = &mailing{number: number, asked: time.Now(), mails: map[int][]copied{}}
}

// ofMailing runs a change of one campaign, as of.
func (l *ledger) ofMailing(number int, change func(*mailing) string) {
	of(l, l.mailings.all, number, "campaign %d came up, which nobody sent", func(m *mailing) (*[]note, string) {
		return &m.notes, change(m)
	})
}

// shuts notes that no mail of a campaign may begin from now on, and opens that it may again.
func (l *ledger) shuts(number int, text string) {
	l.ofMailing(number, func(m *mailing) string {
		m.shut = append(m.shut, stretch{from: time.Now()})
		return text
	})
}

func (l *ledger) opens(number int) {
	l.ofMailing(number, func(m *mailing) string {
		if n := len(m.shut); n > 0 && m.shut[n-1].to.IsZero() {
			m.shut[n-1].to = time.Now()
		}
		return "operator: asks to resume it"
	})
}

// mailBegan notes that a relay got MAIL.
func (l *ledger) mailBegan(connection string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mailings.begun[connection] = time.Now()
}

// mailed notes that a relay took an email of a campaign, whatever it then said.
func (l *ledger) mailed(n int, data []byte, connection string) {
	number := newsletterOf(data)
	l.ofMailing(number, func(m *mailing) string {
		c := copied{began: l.mailings.begun[connection]}
		c.again = slices.ContainsFunc(l.mailings.putOff[n], func(at time.Time) bool {
			return at.After(m.asked) && at.Before(c.began)
		})
		m.mails[n] = append(m.mails[n], c)
		l.mailings.mails++
		if !bytes.Contains(data, []byte(lastLine(number, person(n)))) {
			m.mangled++
		}
		return ""
	})
}

// puts notes that a relay asked to try a person later.
func (l *ledger) puts(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mailings.putOff[n] = append(l.mailings.putOff[n], time.Now())
}

// wishing notes that a person is about to ask not to be mailed any more; the returned function, that the wish
// was answered.
func (l *ledger) wishing(n int) (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &wish{asked: time.Now()}
	l.mailings.wishes[n] = w
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		w.answered = time.Now()
	}
}
