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

// Shared runs scripts for many goroutines in few round trips. A call that finds a lane free travels at once, alone; while all lanes are on
// their way calls gather, and travel together. So a busy process asks Redis more rarely the busier it is, and an idle one waits for
// nobody. In a Cluster each call travels by itself, for a node that hangs would hold up what is asked of the others. A call is answered as
// by the client itself, except that what it had sent may still be done after its deadline made it return.
type Shared struct {
	client redis.UniversalClient
	apart  bool          // each call travels by itself
	wake   chan struct{} // one for each lane that should look
	lanes  sync.WaitGroup

	mu      sync.Mutex
	waiting []*ride
	closed  bool
}

// ride is what one goroutine sends: one command, or a few in order. Until done is closed they belong to the lane.
type ride struct {
	cmds     []*redis.Cmd
	size     int       // bytes of their arguments, about
	deadline time.Time // when it gives up; zero: never
	done     chan struct{}
}

const (
	sharedLanes = 2                // round trips under way at once
	tripRides   = 128              // rides in one of them
	tripBytes   = 256 << 10        // and bytes: what is larger travels alone
	tripTime    = 10 * time.Second // how long one may take at most, repetitions included
)

func newShared(client redis.UniversalClient) *Shared {
	s := &Shared{client: client, wake: make(chan struct{}, sharedLanes)}
	if _, s.apart = client.(*redis.ClusterClient); s.apart {
		return s
	}
	for range sharedLanes {
		s.lanes.Go(s.lane)
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

// evalArgs is the command that runs a script, by its source or by its hash.
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
		cmd = redis.NewCmd(ctx, args...) // the lane may be writing to the other one
		cmd.SetErr(err)
	}
	return cmd
}

// do sends commands in one round trip, in order, and returns nil when they carry their answers. After an error they must not be looked at.
func (s *Shared) do(ctx context.Context, cmds ...*redis.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := &ride{cmds: cmds, size: sizeOf(cmds), done: make(chan struct{})}
	r.deadline, _ = ctx.Deadline()
	if s.apart {
		s.travel(ctx, []*ride{r})
	} else if err := s.board(r); err != nil {
		return err
	} else if !s.await(ctx, r) {
		return context.DeadlineExceeded
	}
	for _, cmd := range cmds {
		if passingReply(cmd.Err()) {
			_ = s.client.Process(ctx, cmd) // which the client repeats; nothing was done yet
		}
	}
	return nil
}

// await waits for the answers, and says whether they came before the deadline. As with the client itself, only a deadline cuts a call short, and it
// does so also in a context that was cancelled before, or never tells its end.
func (s *Shared) await(ctx context.Context, r *ride) bool {
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
		s.leave(r)
		return false
	}
}

// leave takes back what has not been sent: whoever is told that a submit failed sends it again, and Redis may be away for long while many do.
func (s *Shared) leave(r *ride) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *ride) bool { return other == r })
}

// board lines up for the next round trip.
func (s *Shared) board(r *ride) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return redis.ErrClosed
	}
	s.waiting = append(s.waiting, r)
	select {
	case s.wake <- struct{}{}:
	default: // all lanes will look
	}
	return nil
}

// lane makes round trips, one after the other.
func (s *Shared) lane() {
	for range s.wake {
		for trip := s.next(); len(trip) > 0; trip = s.next() {
			ctx, cancel := context.WithDeadline(context.Background(), arrival(trip, time.Now()))
			s.travel(ctx, trip)
			cancel()
		}
	}
}

// next takes what travels together.
func (s *Shared) next() []*ride {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.waiting) && n < tripRides {
		if size += s.waiting[n].size; n > 0 && size > tripBytes {
			break
		}
		n++
	}
	trip := s.waiting[:n:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return trip
}

// arrival is when a round trip must be over: at the latest when all in it have given up, for what it repeats after that is done for nobody.
func arrival(trip []*ride, now time.Time) time.Time {
	last := now
	for _, r := range trip {
		if r.deadline.IsZero() {
			return now.Add(tripTime)
		}
		if r.deadline.After(last) {
			last = r.deadline
		}
	}
	if most := now.Add(tripTime); last.After(most) {
		return most
	}
	return last
}

// travel makes one round trip. Each command carries its own error afterwards.
func (s *Shared) travel(ctx context.Context, trip []*ride) {
	if len(trip) == 1 && len(trip[0].cmds) == 1 {
		_ = s.client.Process(ctx, trip[0].cmds[0])
	} else {
		pipe := s.client.Pipeline()
		for _, r := range trip {
			for _, cmd := range r.cmds {
				_ = pipe.Process(ctx, cmd) // only queues it
			}
		}
		_, err := pipe.Exec(ctx)
		unanswered(trip, err)
	}
	for _, r := range trip {
		close(r.done)
	}
}

// unanswered gives the error of a round trip to commands that were left without an answer or an error of their own.
func unanswered(trip []*ride, err error) {
	for _, r := range trip {
		for _, cmd := range r.cmds {
			if err != nil && cmd.Err() == nil && cmd.Val() == nil {
				cmd.SetErr(err)
			}
		}
	}
}

// close has calls fail from now on. The client is closed first, which ends the round trips under way.
func (s *Shared) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.wake)
	s.mu.Unlock()
	s.lanes.Wait()
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

// passingReply recognises the answers of a server that did nothing yet, and may soon. The client itself repeats such commands, but not
// within a pipeline.
func passingReply(err error) bool {
	if err == nil {
		return false
	}
	for _, prefix := range [...]string{"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "ERR max number of clients"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return strings.Contains(err.Error(), " -READONLY ") // in a script, before Redis 7
}
