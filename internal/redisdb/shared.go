package redisdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Shared runs scripts for many goroutines in few round trips. A request that finds a free pipe is sent
// immediately, alone. While all pipes are busy requests collect, and the next free pipe sends them as one
// batch. So a busy process makes fewer round trips for each request, and an idle one never waits. In a
// Cluster each request is sent separately, because a hanging node would delay requests to the others. Results
// are the same as the client's, except that a request may still be executed after its deadline.
type Shared struct {
	client redis.UniversalClient
	apart  bool          // each request is sent separately
	wake   chan struct{} // one for each pipe that should look
	pipes  sync.WaitGroup

	mu      sync.Mutex
	waiting []*request
	closed  bool
}

// request is what one goroutine sends: one command, or a few in order. They belong to the pipe until done is
// closed.
type request struct {
	cmds     []*redis.Cmd
	size     int       // bytes of their arguments, about
	deadline time.Time // when it gives up; zero means never
	done     chan struct{}
}

const (
	sharedPipes   = 2                // concurrent round trips
	batchRequests = 128              // requests in one of them
	batchBytes    = 256 << 10        // and bytes: a larger request is sent alone
	batchTimeout  = 10 * time.Second // how long one may take at most, repetitions included
)

func newShared(client redis.UniversalClient) *Shared {
	s := &Shared{client: client, wake: make(chan struct{}, sharedPipes)}
	if _, s.apart = client.(*redis.ClusterClient); s.apart {
		return s
	}
	for range sharedPipes {
		s.pipes.Go(s.pipe)
	}
	return s
}

// Eval runs a script that is sent in full.
func (s *Shared) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, evalArgs("eval", source, keys, args))
}

// EvalSha runs a script that the server knows.
func (s *Shared) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, evalArgs("evalsha", sha, keys, args))
}

// evalArgs returns the command that runs a script, by its source or by its hash.
func evalArgs(name, script string, keys []string, args []any) []any {
	out := make([]any, 0, 3+len(keys)+len(args))
	out = append(out, name, script, len(keys))
	for _, key := range keys {
		out = append(out, key)
	}
	return append(out, args...)
}

// run sends one command.
func (s *Shared) run(ctx context.Context, args []any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	if err := s.do(ctx, cmd); err != nil {
		cmd = redis.NewCmd(ctx, args...) // the pipe may be writing to the other one
		cmd.SetErr(err)
	}
	return cmd
}

// do sends commands in one round trip, in order, and returns nil when they have their replies. After an
// error they must not be read.
func (s *Shared) do(ctx context.Context, cmds ...*redis.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, h, cancel := bound(ctx)
	defer cancel()
	r := &request{cmds: cmds, size: sizeOf(cmds), done: make(chan struct{})}
	r.deadline, _ = ctx.Deadline()
	if s.apart {
		s.send(ctx, []*request{r})
	} else if err := s.add(r); err != nil {
		return err
	} else if !s.await(ctx, r) {
		return context.DeadlineExceeded
	}
	for _, cmd := range cmds {
		if passingReply(cmd.Err()) {
			_ = s.client.Process(ctx, cmd) // which the client repeats; nothing was done yet
		}
	}
	h.note(cmds[0].Err())
	return nil
}

// await waits for the replies, and reports whether they came before the deadline. As with the client itself,
// only a deadline ends the wait, even in a context that was cancelled before, or whose Done never closes.
func (s *Shared) await(ctx context.Context, r *request) bool {
	var late <-chan time.Time
	if !r.deadline.IsZero() {
		timer := time.NewTimer(time.Until(r.deadline))
		defer timer.Stop()
		late = timer.C
	}
	for ended := ctx.Done(); ; {
		select {
		case <-r.done:
			return true
		case <-late:
		case <-ended:
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				ended = nil
				continue
			}
		}
		s.withdraw(r)
		return false
	}
}

// withdraw removes a request that has not been sent: a client repeats a failed submit, and Redis may be
// unavailable for long.
func (s *Shared) withdraw(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *request) bool { return other == r })
}

// add adds a request to the next batch.
func (s *Shared) add(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return redis.ErrClosed
	}
	s.waiting = append(s.waiting, r)
	select {
	case s.wake <- struct{}{}:
	default: // all pipes will look
	}
	return nil
}

// pipe makes round trips, one after the other.
func (s *Shared) pipe() {
	for range s.wake {
		for batch := s.next(); len(batch) > 0; batch = s.next() {
			ctx, cancel := context.WithDeadline(context.Background(), batchDeadline(batch, time.Now()))
			s.send(ctx, batch)
			cancel()
		}
	}
}

// next returns the next batch.
func (s *Shared) next() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.waiting) && n < batchRequests {
		if size += s.waiting[n].size; n > 0 && size > batchBytes {
			break
		}
		n++
	}
	batch := s.waiting[:n:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return batch
}

// batchDeadline returns when a round trip must end: at the latest when all callers have given up.
func batchDeadline(batch []*request, now time.Time) time.Time {
	last := now
	for _, r := range batch {
		if r.deadline.IsZero() {
			return now.Add(batchTimeout)
		}
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	if most := now.Add(batchTimeout); last.After(most) {
		return most
	}
	return last
}

// send makes one round trip. Each command has its own error afterwards.
func (s *Shared) send(ctx context.Context, batch []*request) {
	if len(batch) == 1 && len(batch[0].cmds) == 1 {
		_ = s.client.Process(ctx, batch[0].cmds[0])
	} else {
		pipe := s.client.Pipeline()
		for _, r := range batch {
			for _, cmd := range r.cmds {
				_ = pipe.Process(ctx, cmd) // only queues it
			}
		}
		_, err := pipe.Exec(ctx)
		unanswered(batch, err)
	}
	for _, r := range batch {
		close(r.done)
	}
}

// unanswered sets the error of a round trip on commands without a reply or an error.
func unanswered(batch []*request, err error) {
	for _, r := range batch {
		for _, cmd := range r.cmds {
			if err != nil && cmd.Err() == nil && cmd.Val() == nil {
				cmd.SetErr(err)
			}
		}
	}
}

// close makes later requests fail. The client is closed first, which ends the round trips in flight.
func (s *Shared) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.wake)
	s.mu.Unlock()
	s.pipes.Wait()
}

// sizeOf estimates the bytes of commands.
func sizeOf(cmds []*redis.Cmd) int {
	size := 0
	for _, cmd := range cmds {
		for _, arg := range cmd.Args() {
			switch arg := arg.(type) {
			case string:
				size += len(arg)
			case []byte:
				size += len(arg)
			default:
				size += 8
			}
		}
	}
	return size
}

// passingReply recognizes the replies of a server that did nothing yet, and may soon. The client itself
// repeats such commands, but not within a pipeline.
func passingReply(err error) bool {
	if err == nil {
		return false
	}
	for _, prefix := range [...]string{"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ",
		"NOREPLICAS ", "ERR max number of clients"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return strings.Contains(err.Error(), " -READONLY ") // in a script, before Redis 7
}
