package testsmtp

import (
	"strconv"
	"strings"
	"time"
)

// Command is something the client did, about which Options.Respond may have an opinion.
type Command struct {
	// Verb is CONNECT, EHLO (HELO too), STARTTLS, AUTH, MAIL, RCPT, DATA, DOT, RSET, NOOP or QUIT.
	Verb       string
	Arg        string   // the address of MAIL and RCPT, else what followed the verb
	From       string   // the transaction's
	To         []string // recipients accepted so far
	Data       []byte   // at DOT
	Connection int      // counted from 1
	Messages   int      // accepted over this connection before
}

// Action is what happens instead of the usual.
type Action struct {
	Reply string        // the whole reply, each line with its code, lines separated by \n; empty: the usual one
	Delay time.Duration // wait before
	Store bool          // at DOT: keep the message whatever the reply says or however the connection ends
	Close bool          // close the connection after the reply, or instead of it when Reply is empty
	Reset bool          // close it with a TCP reset, without a reply
	Hang  bool          // never answer; ends when the client gives up or the server is closed
}

// ByAddress is what Options.Respond defaults to: the local part of a recipient says what happens to it.
//
//	rcpt-550@…        the recipient is refused with that code
//	data-451@…        DATA is answered with it
//	dot-554@…         the dot is answered with it
//	rcpt-close@…      the connection is closed instead of an answer; also data-close
//	dot-close@…       the message is kept and the connection closed without an answer
//	rcpt-hang@…       no answer ever comes; also data-hang and dot-hang (which keeps the message)
//	dot-slow@…        the answer to the dot takes half a second
//	dot-451-2@…       as dot-451, but only the first two times
//	…+anything@…      what follows a plus keeps addresses apart
func (s *Server) ByAddress(c Command) Action {
	phase := strings.ToLower(c.Verb)
	switch c.Verb {
	case "RCPT":
		return s.behaviour(phase, c.Arg)
	case "DATA", "DOT":
		for _, to := range c.To {
			if a := s.behaviour(phase, to); a != (Action{}) {
				return a
			}
		}
	}
	return Action{}
}

func (s *Server) behaviour(phase, address string) Action {
	local, _, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	rest, ok := strings.CutPrefix(local, phase+"-")
	if !ok {
		return Action{}
	}
	what, times, counted := strings.Cut(rest, "-")
	if counted {
		if n, err := strconv.Atoi(times); err != nil || s.times(address) > n {
			return Action{}
		}
	}
	switch what {
	case "close":
		return Action{Close: true, Store: phase == "dot"}
	case "hang":
		return Action{Hang: true, Store: phase == "dot"}
	case "slow":
		return Action{Delay: 500 * time.Millisecond}
	}
	if code, err := strconv.Atoi(what); err == nil && len(what) == 3 {
		return Action{Reply: cannedReply(code), Close: code == 421}
	}
	return Action{}
}

// times counts how often an address came up.
func (s *Server) times(address string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[address]++
	return s.seen[address]
}

func cannedReply(code int) string {
	words := map[int]string{
		421: "4.3.2 Service shutting down",
		450: "4.2.0 Mailbox temporarily unavailable",
		451: "4.3.0 Temporary failure, try again later",
		452: "4.3.1 Insufficient system storage",
		550: "5.1.1 User unknown",
		552: "5.2.2 Mailbox full",
		554: "5.7.1 Message rejected",
	}[code]
	if words == "" {
		words = strconv.Itoa(code/100) + ".0.0 As you wished"
	}
	return strconv.Itoa(code) + " " + words
}
