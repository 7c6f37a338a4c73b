package main

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// mood is how all relays, or a webhook receiver, behave for a while, whatever they would do otherwise.
type mood int32

const (
	well     mood = iota
	refusing      // answers that it can't just now
	silent        // takes it and never answers
	dropping      // takes it and breaks the connection instead of answering
)

// relays are the SMTP servers the workers send to, one for each worker, so that it is known who sent what.
// They agree on everything: what they do about a message follows from the seed, the message, and how often it
// came up.
type relays struct {
	seed   uint64
	ledger *ledger
	mood   atomic.Int32
	calm   atomic.Bool // chaos is over: everybody is served
	slow   atomic.Bool // and takes its time

	mu   sync.Mutex
	seen map[string]int
}

func newRelays(seed uint64, l *ledger) *relays {
	return &relays{seed: seed, ledger: l, seen: map[string]int{}}
}

// listen starts the relay of one worker.
func (r *relays) listen(worker string) (*testsmtp.Server, error) {
	return testsmtp.New(testsmtp.Options{Discard: true, Respond: func(c testsmtp.Command) testsmtp.Action {
		a := r.respond(c)
		r.write(worker, c, a)
		return a
	}})
}

// write keeps the ledger: a message counts as delivered when the relay took it, whatever its client heard of
// that.
func (r *relays) write(worker string, c testsmtp.Command, a testsmtp.Action) {
	via := "relay of " + worker + ", connection " + strconv.Itoa(c.Connection)
	usual := a.Reply == "" && !a.Close && !a.Reset && !a.Hang
	if c.Verb == "MAIL" {
		r.ledger.mailBegan(via)
	}
	if n := personOf(recipientOf(c)); n >= 0 {
		r.writeMailing(n, via, c, a, usual)
		return
	}
	if n := readerOf(recipientOf(c)); n >= 0 {
		if c.Verb == "DOT" && (a.Store || usual) {
			r.ledger.digestMailed(n, c.Data, via)
		}
		return
	}
	switch {
	case c.Verb == "DOT" && (a.Store || usual):
		number := numberOf(c.To[0])
		how := via + ": " + describeAction(a) + " it"
		r.ledger.took(number, c.To, r.whole(number, c.Data), how)
	case c.Verb == "DOT":
		r.ledger.note(numberOf(c.To[0]), "%s: %s the whole message for %s", via, describeAction(a),
			strings.Join(c.To, " "))
	case c.Verb == "RCPT" && !usual:
		r.ledger.note(numberOf(c.Arg), "%s: %s %s", via, describeAction(a), c.Arg)
	case c.Verb == "DATA" && !usual:
		r.ledger.note(numberOf(c.To[0]), "%s: %s DATA", via, describeAction(a))
	}
}

// writeMailing keeps the ledger about the mail of a campaign to a person.
func (r *relays) writeMailing(n int, via string, c testsmtp.Command, a testsmtp.Action, usual bool) {
	switch {
	case c.Verb == "DOT" && (a.Store || usual):
		r.ledger.mailed(n, c.Data, via)
	case strings.HasPrefix(a.Reply, "4"):
		r.ledger.puts(n)
	}
}

// recipientOf returns the first recipient that a command is about, or "".
func recipientOf(c testsmtp.Command) string {
	switch {
	case c.Verb == "RCPT":
		return c.Arg
	case (c.Verb == "DATA" || c.Verb == "DOT") && len(c.To) > 0:
		return c.To[0]
	}
	return ""
}

// sender is the sender of campaigns.
const sender = "news@example.com"

// subjectOf names what the dice are thrown for: a message, a person of campaigns, or a reader of digests.
func subjectOf(address string) string {
	if personOf(address) >= 0 || readerOf(address) >= 0 {
		return address
	}
	return "m" + strconv.Itoa(numberOf(address))
}

// describeAction says what a relay did, for a story.
func describeAction(a testsmtp.Action) string {
	switch {
	case a.Hang:
		return "never answered"
	case a.Reset, a.Close && a.Reply == "":
		return "broke the connection at"
	case a.Reply != "":
		return "answered " + a.Reply + " to"
	}
	return "answered 250 to"
}

// whole says whether a message arrived as it was submitted.
func (r *relays) whole(number int, data []byte) bool {
	p := plan{number: number}
	header, body, found := bytes.Cut(data, []byte("\r\n\r\n"))
	return found && bytes.Contains(header, []byte("\r\nX-Chaos: "+strconv.Itoa(number)+"\r\n")) &&
		bytes.Contains(body, []byte(p.endMark()))
}

// respond is what happens to a command: the mood first, then what the message brings.
func (r *relays) respond(c testsmtp.Command) testsmtp.Action {
	if r.calm.Load() {
		if c.Verb == "DOT" && r.slow.Load() {
			return testsmtp.Action{Delay: time.Second}
		}
		return testsmtp.Action{}
	}
	switch m := mood(r.mood.Load()); {
	// the recipient of a campaign's mail must be known
	case m == refusing && (c.Verb == "MAIL" && c.Arg != sender || c.Verb == "RCPT" && c.From == sender):
		return testsmtp.Action{Reply: "451 4.3.2 Not just now"}
	case m == silent && c.Verb == "DOT":
		return testsmtp.Action{Hang: true, Store: true}
	case m == dropping && c.Verb == "DOT":
		return testsmtp.Action{Reset: true, Store: true}
	}
	switch c.Verb {
	case "RCPT":
		return r.recipient(c.Arg)
	case "DATA":
		return r.data(c.To[0])
	case "DOT":
		return r.dot(c.To[0])
	}
	return testsmtp.Action{}
}

// dice are thrown again each time a thing comes up, the same way for the same seed.
func (r *relays) dice(what string) (d *rand.Rand, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[what]++
	times = r.seen[what]
	return random(r.seed, what+" "+strconv.Itoa(times)), times
}

func (r *relays) recipient(address string) testsmtp.Action {
	d, times := r.dice("RCPT " + address)
	switch n := d.IntN(1000); {
	case n < 30 && times == 1:
		return testsmtp.Action{Reply: "554 5.7.1 Not wanted, the first time"}
	case n < 80:
		return testsmtp.Action{Reply: "450 4.2.0 Mailbox busy"}
	case n < 85:
		return testsmtp.Action{Close: true}
	case n < 88:
		return testsmtp.Action{Hang: true}
	}
	return testsmtp.Action{}
}

func (r *relays) data(address string) testsmtp.Action {
	d, _ := r.dice("DATA " + subjectOf(address))
	switch n := d.IntN(1000); {
	case n < 10:
		return testsmtp.Action{Reply: "451 4.3.0 No room"}
	case n < 16:
		return testsmtp.Action{Close: true}
	case n < 22:
		return testsmtp.Action{Reset: true}
	}
	return testsmtp.Action{}
}

func (r *relays) dot(address string) testsmtp.Action {
	d, times := r.dice("DOT " + subjectOf(address))
	switch n := d.IntN(1000); {
	case n < 10 && times == 1:
		return testsmtp.Action{Reply: "554 5.7.1 Not this message, the first time"}
	case n < 40:
		return testsmtp.Action{Reply: "451 4.3.0 Try again"}
	case n < 60:
		return testsmtp.Action{Close: true, Store: true}
	case n < 75:
		return testsmtp.Action{Reset: true, Store: true}
	case n < 90:
		return testsmtp.Action{Close: true}
	case n < 100:
		return testsmtp.Action{Reset: true}
	case n < 105:
		return testsmtp.Action{Hang: true, Store: true}
	case n < 110:
		return testsmtp.Action{Hang: true}
	case n < 115:
		return testsmtp.Action{Reply: "421 4.3.2 Going down", Close: true}
	case n < 300:
		return testsmtp.Action{Delay: time.Duration(5+d.IntN(400)) * time.Millisecond}
	}
	return testsmtp.Action{}
}
