package smtpd

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/postroom/postroom/server/peers"
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
	s.t.body = s.newBody()
	if err := s.t.body.readDots(s.wire.r); err != nil {
		return s.brokenOff(err)
	}
	if s.bounces != nil {
		return s.takeBounce(ctx)
	}
	return s.submit(ctx)
}

// newBody begins a message. Its memory is shared by accounts and tokens, on a bounce listener by addresses.
func (s *session) newBody() *body {
	owner := peers.Network(s.remote).String()
	if s.login != nil {
		owner = s.login.account + " " + s.login.tokenID
	}
	memory, _ := s.memory.Begin(owner) // there is no limit except for connections
	b := newBody(s.opts.MaxMessage, memory)
	if s.bounces != nil {
		b.most = keptOfBounce
	}
	return b
}

// bdat takes a chunk of a message (RFC 3030). Its octets follow the command even if it is refused.
func (s *session) bdat(ctx context.Context, arg string) reply {
	number, word, more := strings.Cut(arg, " ")
	last := strings.EqualFold(strings.TrimSpace(word), "LAST")
	size, err := strconv.ParseUint(number, 10, 62)
	// the octets that follow must not be read as commands, and their number is unknown
	if err != nil || more && !last {
		return reply{code: 501, enhanced: "5.5.4", text: "Syntax: BDAT octets [LAST]", close: true}
	}
	if int64(size) > s.opts.MaxMessage*2 {
		s.reset()
		return s.farTooLarge()
	}
	if len(s.t.to) == 0 {
		return s.skipChunk(int64(size))
	}
	if s.t.body == nil {
		s.t.body = s.newBody()
	}
	if err := s.t.body.readChunk(s.wire.r, int64(size)); err != nil {
		return s.brokenOff(err)
	}
	switch r := s.t.body.refused; {
	case r.code != 0:
		s.metrics.answered(r, "")
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

// brokenOff ends a conversation in the middle of a message. It keeps none of the message.
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

// farTooLarge refuses a message without reading it to its end, so it ends the conversation.
func (s *session) farTooLarge() reply {
	r := tooLarge(s.opts.MaxMessage)
	r.close = true
	return r
}

// submit passes the message to the outbox.
func (s *session) submit(ctx context.Context) reply {
	s.idle = 0
	s.t.body.refuseLoop()
	if r := s.t.body.refused; r.code != 0 {
		s.metrics.answered(r, "")
		s.log.refused(ctx, s, r, nil)
		return r
	}
	// A large message takes almost twice its memory more while it is submitted, and a processor: more of them
	// together would be done no sooner.
	if len(s.t.body.content) > largeMessage {
		if err := s.turns.Acquire(ctx, 1); err != nil {
			return tooMuchAtOnce
		}
		defer s.turns.Release(1)
	}
	answer, err := s.Submit(ctx, s.t.request(s.login, s.t.body.content))
	if err != nil {
		r := refusal(err)
		s.metrics.answered(r, "")
		s.log.refused(ctx, s, r, err)
		return r
	}
	repeated, result := answer.Idempotency != nil && answer.Idempotency.Status == "HIT", "queued"
	if repeated {
		result = "repeated"
	}
	s.metrics.messages.WithLabelValues(result).Inc()
	s.log.taken(ctx, s, answer, repeated)
	return reply{code: 250, enhanced: "2.0.0", text: "Ok: queued as " + answer.QueueID}
}

// maxHops is the number of servers that a message may have passed. More mean a loop (RFC 5321 section 6.3): a
// relay of an account hands messages back to this inlet.
const maxHops = 50

// refuseLoop refuses a message that has passed too many servers.
func (b *body) refuseLoop() {
	if hops(b.content) > maxHops {
		b.refuse(reply{code: 554, enhanced: "5.4.6",
			text: "The message went through too many servers: it goes in circles"})
	}
}

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
