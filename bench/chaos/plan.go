package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// domain is where all recipients live.
const domain = "example.net"

// plan is the plan for one message. It follows from the seed and the message's number alone.
type plan struct {
	number int
	to     []string
	lane   api.Lane
	size   int           // bytes of text
	later  time.Duration // how far ahead it is scheduled; 0: now
	cancel time.Duration // how long after its acceptance it is withdrawn; 0 for never
	again  bool          // its submit is repeated after it was answered
}

// random is a separate source for each thing that has something to choose, so that none disturbs another.
func random(seed uint64, what string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(what))) //nolint:gosec // chaos, not secrets
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// planned makes the plan of a message.
func planned(seed uint64, number int) plan {
	r := random(seed, "message "+strconv.Itoa(number))
	p := plan{number: number, lane: api.Transactional, size: 200 + r.IntN(2000)}
	for k := range 1 + r.IntN(5) {
		p.to = append(p.to, fmt.Sprintf("m%dr%d@%s", number, k, domain))
	}
	if r.IntN(4) == 0 {
		p.lane = api.Bulk
	}
	if r.IntN(12) == 0 {
		p.size = 60_000 + r.IntN(100_000) // long enough to be broken off half-way
	}
	if r.IntN(4) == 0 {
		p.later = time.Second + time.Duration(r.IntN(6000))*time.Millisecond
	}
	switch r.IntN(15) {
	case 0:
		p.cancel = time.Millisecond // at once
	case 1:
		p.cancel = time.Duration(1+r.IntN(8000)) * time.Millisecond
	}
	p.again = r.IntN(10) == 0
	return p
}

// key is the message's idempotency key.
func (p *plan) key() string { return "chaos-" + strconv.Itoa(p.number) }

// endMark is the last line of a message: one that arrived without it was cut off.
func (p *plan) endMark() string { return fmt.Sprintf("end of message %d", p.number) }

// request is the submit of the message. It is the same however often it is repeated.
func (p *plan) request(now time.Time) api.SubmitRequest {
	const line = "All work and no play makes a dull boy.\n"
	req := api.SubmitRequest{
		Subject: "Message " + strconv.Itoa(p.number), Text: strings.Repeat(line, p.size/len(line)) + p.endMark() +
			"\n",
		IdempotencyKey: p.key(), Lane: p.lane, Headers: api.Headers{
			"X-Chaos": {api.HeaderValue(strconv.Itoa(p.number))}},
	}
	for _, to := range p.to {
		req.To = append(req.To, api.Address{Address: to})
	}
	if p.later > 0 {
		at := now.Add(p.later).UTC().Truncate(time.Millisecond)
		req.SendAt = &at
	}
	return req
}

// numberOf reads the message's number off a recipient; -1 if it isn't one of ours.
func numberOf(address string) int {
	local, _, _ := strings.Cut(address, "@")
	digits, _, ok := strings.Cut(strings.TrimPrefix(local, "m"), "r")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return -1
	}
	return n
}
