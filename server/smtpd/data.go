package smtpd

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
)

// data takes the content of a message (RFC 5321 section 4.1.1.4).
func (s *session) data(ctx context.Context, arg string) reply {
	switch {
	case arg != "":
		return syntax("DATA takes no parameters")
	case !s.t.begun || s.t.body != nil, len(s.t.to) == 0 && !s.t.refused:
		return badSequence
	case len(s.t.to) == 0:
		return reply{code: 554, enhanced: "5.5.1", text: "No valid recipients"}
	}
	s.wire.reply(reply{code: 354, text: "End data with <CR><LF>.<CR><LF>"})
	if err := s.wire.flush(); err != nil {
		return gone
	}
	defer s.reset()
	s.t.body = newBody(s.opts.MaxMessage, s.memory)
	if s.bounces != nil {
		s.t.body.most = keptOfBounce
	}
	if err := s.t.body.readDots(s.wire.r); err != nil {
		return s.brokenOff(err)
	}
	if s.bounces != nil {
		return s.takeBounce(ctx)
	}
	return s.submit(ctx)
}

// bdat takes a chunk of a message (RFC 3030). Its octets follow the command whatever comes of it.
func (s *session) bdat(ctx context.Context, arg string) reply {
	number, word, more := strings.Cut(arg, " ")
	last := strings.EqualFold(strings.TrimSpace(word), "LAST")
	size, err := strconv.ParseUint(number, 10, 62)
	if err != nil || more && !last { // how much follows is not known, and it must not be read as commands
		return reply{code: 501, enhanced: "5.5.4", text: "Syntax: BDAT octets [LAST]", close: true}
	}
	if int64(size) > s.opts.MaxMessage*2 { // more than it is worth reading to be polite
		s.reset()
		return s.farTooLarge()
	}
	if len(s.t.to) == 0 {
		return s.skipChunk(int64(size))
	}
	if s.t.body == nil {
		s.t.body = newBody(s.opts.MaxMessage, s.memory)
	}
	if err := s.t.body.readChunk(s.wire.r, int64(size)); err != nil {
		return s.brokenOff(err)
	}
	switch r := s.t.body.refused; {
	case r.code != 0:
		s.metrics.message(r)
		s.reset()
		return r
	case last:
		defer s.reset()
		return s.submit(ctx)
	}
	return ok
}

// skipChunk reads a chunk that belongs to no message.
func (s *session) skipChunk(size int64) reply {
	refused := s.t.refused
	s.reset()
	if err := s.wire.discard(size); err != nil {
		return s.brokenOff(err)
	}
	if refused {
		return reply{code: 554, enhanced: "5.5.1", text: "No valid recipients"}
	}
	return badSequence
}

// brokenOff ends a conversation in the middle of a message, of which nothing is kept.
func (s *session) brokenOff(err error) reply {
	s.metrics.messages.WithLabelValues("broken_off").Inc()
	if errors.Is(err, errFarTooLarge) {
		return s.farTooLarge()
	}
	if isTimeout(err) {
		return tooIdle
	}
	return gone
}

// farTooLarge refuses a message that is not worth reading, and so ends the conversation.
func (s *session) farTooLarge() reply {
	r := tooLarge(s.opts.MaxMessage)
	r.close = true
	return r
}

// submit hands the message that came in to the outbox.
func (s *session) submit(ctx context.Context) reply {
	s.idle = 0
	if hops(s.t.body.content) > maxHops {
		s.t.body.refuse(looping)
	}
	if r := s.t.body.refused; r.code != 0 {
		s.metrics.message(r)
		s.log.refused(ctx, s, r)
		return r
	}
	// A large message takes almost twice its memory more while it is worked on, and a processor: more of them at once would be done no sooner.
	if s.t.body.held > 0 {
		if err := s.turns.Acquire(ctx, 1); err != nil {
			return tooMuchAtOnce
		}
		defer s.turns.Release(1)
	}
	answer, err := s.Outbox.SubmitSMTP(ctx, s.t.request(s.login.account, s.t.body.content))
	if err != nil {
		r := refusal(err)
		s.metrics.message(r)
		s.log.notTaken(ctx, s, r, err)
		return r
	}
	repeated := answer.Idempotency != nil && answer.Idempotency.Status == "HIT"
	s.metrics.taken(repeated)
	s.log.taken(ctx, s, answer, repeated)
	return reply{code: 250, enhanced: "2.0.0", text: "Ok: queued as " + answer.QueueID}
}

// maxHops is how many servers a message may have gone through. More of them means that it goes in circles (RFC 5321 section 6.3): a relay
// of an account hands it back to this inlet.
const maxHops = 50

var looping = reply{code: 554, enhanced: "5.4.6", text: "The message went through too many servers: it goes in circles"}

// hops counts the Received fields of a message.
func hops(content []byte) (n int) {
	for len(content) > 0 {
		line, rest, _ := bytes.Cut(content, []byte("\n"))
		if len(bytes.TrimSuffix(line, []byte("\r"))) == 0 {
			return n
		}
		if name := []byte("received:"); len(line) >= len(name) && bytes.EqualFold(line[:len(name)], name) {
			n++
		}
		content = rest
	}
	return n
}
