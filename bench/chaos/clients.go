package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// clients submit the messages, each at its time, and change their mind about some of them.
type clients struct {
	h      *testbed
	ledger *ledger
	seed   uint64
	all    sync.WaitGroup
	busy   chan struct{} // holds one for each submit under way
}

// atOnce is how many clients submit at a time. On a machine that can't keep up, more of them would only keep
// it busy with each other.
const atOnce = 200

func newClients(h *testbed) *clients {
	return &clients{h: h, ledger: h.ledger, seed: h.o.seed, busy: make(chan struct{}, atOnce)}
}

// load submits so many messages, evenly over so long, and fewer when Postroom is too slow for that many. It
// returns when the time is over; all reports when everybody is answered.
func (c *clients) load(ctx context.Context, first, messages int, length time.Duration) {
	ending, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	began := time.Now()
	for n := range messages {
		if rig.Wait(ending, time.Duration(n)*length/time.Duration(messages)-time.Since(began)) != nil {
			return
		}
		select {
		case c.busy <- struct{}{}:
		case <-ending.Done():
			return
		}
		p := planned(c.seed, first+n)
		c.ledger.open(p)
		c.all.Go(func() { c.live(ctx, p) })
	}
}

// live is what its client does about one message.
func (c *clients) live(ctx context.Context, p plan) {
	r := random(c.seed, "client "+strconv.Itoa(p.number))
	req := p.request(time.Now())
	id := c.submit(ctx, r, p, req)
	if id != "" && p.again {
		c.submit(ctx, r, p, req)
	}
	<-c.busy
	if id == "" {
		return
	}
	if p.cancel > 0 && rig.Wait(ctx, p.cancel) == nil {
		c.cancel(ctx, r, p, id)
	}
}

// some is any of the API processes.
func (c *clients) some(r *rand.Rand) *postroom { return c.h.apis[r.IntN(len(c.h.apis))] }

// submit hands a message in, with the same key for as long as it takes to get an answer.
func (c *clients) submit(ctx context.Context, r *rand.Rand, p plan, req api.SubmitRequest) (id string) {
	for try := 1; ; try++ {
		door := c.some(r)
		answer, err := api.Submit.Do(ctx, door.client, req)
		if err == nil {
			status := "without a key"
			if answer.Idempotency != nil {
				status = answer.Idempotency.Status
			}
			c.ledger.answered(p.number, answer.QueueID, door.name, status)
			return answer.QueueID
		}
		if ctx.Err() != nil {
			return ""
		}
		c.ledger.count("submit " + kindOf(err))
		c.ledger.note(p.number, "client: %s answered the submit with %v", door.name, err)
		if final(err) {
			c.ledger.about(p.number, func(s *story) string { s.refused = err.Error(); return "" })
			return ""
		}
		if pause(ctx, r, try) != nil {
			return ""
		}
	}
}

// cancel takes a message back, or learns that it can't be.
func (c *clients) cancel(ctx context.Context, r *rand.Rand, p plan, id string) {
	for try := 1; ; try++ {
		door := c.some(r)
		answer, err := api.CancelMessage.Do(ctx, door.client, id)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.ledger.count(strings.TrimSpace(fmt.Sprintf("cancel deleted=%t %s", answer.Deleted, answer.Code)))
			c.ledger.about(p.number, func(s *story) string {
				s.cancelled = s.cancelled || answer.Deleted
				return fmt.Sprintf("client: %s answered the cancel with deleted=%t %s", door.name, answer.Deleted,
					answer.Code)
			})
			return
		}
		c.ledger.count("cancel " + kindOf(err))
		c.ledger.note(p.number, "client: %s answered the cancel with %v", door.name, err)
		if final(err) || pause(ctx, r, try) != nil {
			return
		}
	}
}

// operate replays dead letters now and then, each from two places at once, as two impatient operators would;
// until ctx ends.
func (c *clients) operate(ctx context.Context) {
	r := random(c.seed, "operator")
	for rig.Wait(ctx, time.Second) == nil {
		page, err := api.ListDeadLetters.Do(ctx, c.some(r).client, api.DeadLetterQuery{})
		if err != nil {
			continue
		}
		for _, m := range page.DeadLetters {
			if numberOf(m.Envelope.To[0]) >= 0 && r.IntN(3) == 0 { // not the mail of campaigns
				c.replay(ctx, m)
			}
		}
	}
}

func (c *clients) replay(ctx context.Context, m api.OutboxMessage) {
	number := numberOf(m.Envelope.To[0])
	var both sync.WaitGroup
	for n := range 2 {
		door := c.h.apis[n%len(c.h.apis)]
		both.Go(func() {
			answer, err := api.ReplayDeadLetters.Do(ctx, door.client, api.ReplayRequest{IDs: []string{m.QueueID}})
			if err != nil {
				c.ledger.count("replay " + kindOf(err))
				c.ledger.note(number, "operator: %s answered the replay with %v", door.name, err)
				return
			}
			c.ledger.count(fmt.Sprintf("replay replayed=%d", answer.Replayed))
			c.ledger.about(number, func(s *story) string {
				s.replayed += answer.Replayed
				return fmt.Sprintf("operator: %s answered the replay with replayed=%d skipped=%d", door.name,
					answer.Replayed, answer.Skipped)
			})
		})
	}
	both.Wait()
}

// pause is what a patient client waits before it tries again: longer each time, up to two or three seconds.
func pause(ctx context.Context, r *rand.Rand, try int) error {
	longest := min(200<<min(try, 4), 3000)
	return rig.Wait(ctx, time.Duration(100+r.IntN(longest))*time.Millisecond)
}

// kindOf is an error as the table counts it.
func kindOf(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		return strconv.Itoa(f.Problem.StatusCode)
	}
	return "without an answer"
}

// final says whether repeating a request is of no use.
func final(err error) bool {
	f, ok := errors.AsType[*api.Failure](err)
	if !ok {
		return false
	}
	code := f.Problem.StatusCode
	return code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooEarly &&
		code != http.StatusTooManyRequests
}
