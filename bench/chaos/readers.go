package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// notice is an event of digests as its client knows it.
type notice struct {
	number, reader int
	category       string
	answered       bool
	dropped        bool // it was answered as dropped
	takenBack      bool // a client was answered so
	perhapsBack    bool // an answer about it was lost
	refused        string
	notes          []note
}

// digestMail is an email of digests that relays took.
type digestMail struct {
	messageID string
	reader    int
	notices   []int // that it contains
	copies    int
	// attempts in doubt, where Postroom was asked; -1: it did not know
	doubts int
}

// digests are the events and the emails of readers, and at the end the runs that Postroom reports.
type digests struct {
	readers     int
	all         []*notice              // by number; nil if not submitted
	digestMails map[string]*digestMail // by Message-ID
	mails       int                    // copies of them
	told        int                    // answers to clients
	runs        []api.DigestRun
}

func newDigests(readers, events int) digests {
	return digests{readers: readers, all: make([]*notice, events), digestMails: map[string]*digestMail{}}
}

// reader is the id of a reader of digests, and before the @ of its address.
func reader(n int) string { return "d" + strconv.Itoa(n) }

func readerAddress(n int) string { return reader(n) + "@" + domain }

// readerOf reads the number off a reader's address; -1 if it isn't one.
func readerOf(address string) int { return numberIn(address, "d") }

// noticeKey is a digest event's idempotency key.
func noticeKey(number int) string { return "notice-" + strconv.Itoa(number) }

// Categories, with a kind each: immediate mail, no mail, and mail whose template comes and goes. The others
// are sent at a minute of each hour, different for each of them.
const (
	comments = "comment"
	unwanted = "unwanted"
	alarms   = "alarm"
	quarters = "quarter" // every 15 minutes
	mostHour = 8         // categories in a minute of the hour
)

func hourlyCategory(n int) string { return "hourly" + strconv.Itoa(n) }

// planNotice makes a digest event. It follows from the seed and the number alone, even when it is repeated.
func planNotice(seed uint64, number, readers int) api.DigestEvent {
	r := random(seed, "notice "+strconv.Itoa(number))
	n := r.IntN(readers)
	text := fmt.Sprintf("n%dn", number)
	e := api.DigestEvent{Recipient: reader(n), Email: readerAddress(n), Category: comments, EntityType: "post",
		EntityID: text, Title: text, IdempotencyKey: noticeKey(number)}
	switch dice := r.IntN(100); {
	case dice < 8:
		e.Priority = "urgent"
	case dice < 18:
		e.Category = alarms
	case dice < 21:
		e.Category = unwanted
	case dice < 26:
		e.Category = quarters
	case dice < 50:
		e.Category = hourlyCategory(r.IntN(mostHour))
	}
	return e
}

// planPreference makes a preference that a reader changes to; nil: none.
func planPreference(r *rand.Rand, now time.Time) *api.DigestPreference {
	minute := (now.Minute() + 1 + r.IntN(3)) % 60
	switch r.IntN(6) {
	case 0:
		return &api.DigestPreference{Mode: "immediate", Gap: "500ms"}
	case 1:
		return &api.DigestPreference{Mode: "immediate", Gap: "3s"}
	case 2, 3:
		return &api.DigestPreference{Mode: "hourly", Minute: &minute}
	case 4:
		return &api.DigestPreference{Mode: "off"}
	}
	return nil
}

// token is how an email names an event.
var token = regexp.MustCompile(`\bn(\d+)n\b`)

// readDigestMail reads an email of digests: its Message-ID, and the events that its text names.
func readDigestMail(data []byte) (messageID string, notices []int, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return "", nil, fmt.Errorf("read a mail of digests: %w", err)
	}
	text, err := textOf(m)
	if err != nil {
		return "", nil, fmt.Errorf("read a mail of digests: %w", err)
	}
	seen := map[int]bool{}
	for _, found := range token.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(found[1]))
		if err == nil && !seen[n] {
			seen[n] = true
			notices = append(notices, n)
		}
	}
	return m.Header.Get("Message-ID"), notices, nil
}

// textOf returns the plain text of an email.
func textOf(m *mail.Message) ([]byte, error) {
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	if kind != "multipart/alternative" {
		var body io.Reader = m.Body
		if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
			body = quotedprintable.NewReader(body)
		}
		return io.ReadAll(body)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := parts.NextPart() // decodes quoted-printable
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/plain") {
			return io.ReadAll(part)
		}
	}
}

// handsIn begins a digest event's story.
func (l *ledger) handsIn(number int, e api.DigestEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.digests.all[number] = &notice{number: number, reader: readerOf(e.Email), category: e.Category}
}

// ofNotice runs a change of a digest event, like of.
func (l *ledger) ofNotice(number int, change func(*notice) string) {
	of(l, l.digests.all, number, "event %d of digests came up, which nobody handed in",
		func(n *notice) (*[]note, string) {
			l.digests.told++
			return &n.notes, change(n)
		})
}

// answeredNotice notes the answer to an event of digests.
func (l *ledger) answeredNotice(number int, by string, r api.DigestEventResult) {
	l.ofNotice(number, func(n *notice) string {
		if !r.Success {
			n.refused = r.Code + " " + r.Error
			return "client: " + by + " refused it: " + n.refused
		}
		n.answered, n.dropped = true, r.State == "dropped"
		return fmt.Sprintf("client: %s took it in as %s, %s %s (%s)", by, r.ID, r.State, r.Reason,
			r.Idempotency.Status)
	})
}

// digestMailed notes that a relay took an email to a reader, whatever it then said.
func (l *ledger) digestMailed(to int, data []byte, how string) {
	messageID, notices, err := readDigestMail(data)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.digests.mails++
	if err != nil {
		l.oddities = append(l.oddities, fmt.Sprintf("mail to reader %d: %v", to, err))
		return
	}
	one := l.digests.digestMails[messageID]
	if one == nil {
		one = &digestMail{messageID: messageID, reader: to, notices: notices}
		l.digests.digestMails[messageID] = one
	}
	one.copies++
	for _, number := range notices {
		if number < len(l.digests.all) && l.digests.all[number] != nil {
			n := l.digests.all[number]
			n.notes = append(n.notes, note{time.Now(), how + " took " + messageID + " with it"})
		}
	}
}
