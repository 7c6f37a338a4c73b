package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// The tests here stop a process with SIGSTOP in the middle of a delivery, and continue it later. A paused
// container, a suspended host or a debugger does the same. The process does not notice the time that has
// passed.

// stage is a message in delivery by a process that can be stopped. Two processes share one Redis. Each has
// its own relay, which shows who delivered.
type stage struct {
	t     *testing.T
	db    *redisdb.DB
	first *apptest.Process
	slow  *apptest.Gate    // the first process' relay's
	relay *testsmtp.Server // the first process'
	other *testsmtp.Server
	set   map[string]string // the second process'
	id    string            // the message's
}

const onStage = "ann@example.net"

// newStage has the first process send a message to its relay. The relay delays the answer to a command.
func newStage(t *testing.T, redis *testredis.Process, verb string, set map[string]string) *stage {
	t.Helper()
	s := &stage{t: t, db: apptest.Connect(t, redis.URL()), slow: apptest.NewGate(verb),
		other: testsmtp.Start(t, testsmtp.Options{})}
	s.relay = testsmtp.Start(t, testsmtp.Options{Respond: s.slow.Respond})
	t.Cleanup(s.slow.Open) // before the relay is closed
	mine := apptest.SettingsFor(t, redis.URL(), s.relay)
	maps.Copy(mine, set)
	s.set = maps.Clone(mine)
	s.set["redis.url"], s.set["smtp"] = redis.URL(), s.other.URL()
	s.first = apptest.Spawn(t, mine)
	answer, err := api.Submit.Do(t.Context(), s.first.Client, api.SubmitRequest{
		To: api.Addresses{{Address: onStage}}, Subject: "Hello", Text: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	s.id = answer.QueueID
	apptest.Eventually(t, "the relay is asked", s.slow.Reached)
	return s
}

// end stops the first process with SIGTERM, so that its remaining work is done. Then it checks the copies at
// either relay, and whether the message is reported as in doubt.
func (s *stage) end(mine, others int, doubted bool) {
	s.t.Helper()
	s.first.Stop(s.t)
	if n, m := s.relay.Count(), s.other.Count(); n != mine || m != others {
		s.t.Errorf("the stopped process delivered %d copies and the other one %d; want %d and %d", n, m, mine,
			others)
	}
	got := take(s.t, s.other, s.db)
	if got.terminal[onStage] != 1 || got.doubted[onStage] != doubted {
		s.t.Errorf("%d last words, in doubt: %t; want 1, %t", got.terminal[onStage], got.doubted[onStage], doubted)
	}
}

// record returns a field of the message's record.
func (s *stage) record(field string) string {
	s.t.Helper()
	value, err := s.db.Client().HGet(s.t.Context(), redisdb.Key(0, "message", s.id), field).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // go-redis documents the comparison
		s.t.Fatal(err)
	}
	return value
}

// TestStoppedBeforeItsDot: a process is stopped before the final dot for longer than its lease. Another one
// delivers. When the first continues, its connection is ready for the dot, and it does not write it.
func TestStoppedBeforeItsDot(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"RCPT", "DATA"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, testredis.Server(t), verb, nil)
			freeze(t, s.first)
			s.slow.Open()
			apptest.Spawn(t, s.set)
			s.other.Wait(1)
			apptest.Eventually(t, "the message is gone", func() bool { return s.record("state") == "" })
			thaw(t, s.first)
			apptest.Eventually(t, "the stopped process gives its connection up",
				func() bool { return s.relay.Open() == 0 })
			s.end(0, 1, false)
		})
	}
}

// TestStoppedAfterItsDot: the dot was written and the answer not read. No sender can tell that from a lost
// message. The setting decides whether it is sent again; either way the doubt is recorded. The answer that
// the first process reads later changes nothing.
func TestStoppedAfterItsDot(t *testing.T) {
	t.Parallel()
	for inDoubt, others := range map[string]int{"resend": 1, "hold": 0} {
		t.Run(inDoubt, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, testredis.Server(t), "DOT", map[string]string{"delivery.inDoubt": inDoubt})
			freeze(t, s.first)
			s.slow.Open()
			s.relay.Wait(1)
			apptest.Spawn(t, s.set)
			apptest.Eventually(t, "the message is done, or set aside",
				func() bool { st := s.record("state"); return st == "" || st == "failed" })
			thaw(t, s.first)
			s.end(1, others, true)
		})
	}
}

// TestKilledWorkerIsReplaced kills a process during a delivery, under the default settings. Another process
// delivers the message after the lease has expired, which takes four seconds.
func TestKilledWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStage(t, testredis.Server(t), "RCPT", map[string]string{"delivery.lease": "4s"})
	apptest.Spawn(t, s.set)
	s.first.Kill()
	killed := time.Now()
	if left, err := s.leaseLeft(); err != nil || left > 4*time.Second {
		t.Errorf("the lease of the killed process has %s left, %v", left, err)
	}
	s.other.Wait(1)
	t.Logf("delivered %s after the kill", time.Since(killed).Round(time.Millisecond))
	apptest.Eventually(t, "the delivery is recorded", func() bool { return s.record("state") == "" })
	take(t, s.other, s.db).check(t, []string{onStage})
}

// TestStoppedAlone: a process stopped after its dot, without another to take over, reads the answer when it
// continues. However late, that is in time: nothing is in doubt, and nothing is sent twice.
func TestStoppedAlone(t *testing.T) {
	t.Parallel()
	// half of the lease is for recording the answer
	s := newStage(t, testredis.Server(t), "DOT", map[string]string{"delivery.lease": "8s"})
	freeze(t, s.first)
	s.slow.Open()
	s.relay.Wait(1)
	s.waitForLease(-time.Second)
	thaw(t, s.first)
	apptest.Empty(t, s.first.Client)
	s.end(1, 0, false)
}

// TestStoppedForLessThanItsLease: the stop has no effect.
func TestStoppedForLessThanItsLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, testredis.Server(t), "DATA", map[string]string{"delivery.lease": "10s"})
	second := apptest.Spawn(t, s.set)
	freeze(t, s.first)
	s.slow.Open()
	s.waitForLease(6 * time.Second)
	thaw(t, s.first)
	apptest.Empty(t, second.Client)
	s.end(1, 0, false)
}

// leaseLeft returns how long the message's lease lasts, by Redis' clock.
func (s *stage) leaseLeft() (time.Duration, error) {
	s.t.Helper()
	now, errTime := s.db.Client().Time(s.t.Context()).Result()
	until, err := strconv.ParseInt(s.record("lease"), 10, 64)
	return time.UnixMilli(until).Sub(now), errors.Join(err, errTime)
}

// waitForLease waits until at most this much of the message's lease is left.
func (s *stage) waitForLease(most time.Duration) {
	s.t.Helper()
	apptest.Eventually(s.t, "the lease grows old", func() bool {
		left, err := s.leaseLeft()
		return err == nil && left <= most
	})
}

// TestStoppedBetweenMarkAndDot stops a process between the last check of its lease and the dot. The process
// checks the clock before it writes the dot, and leaves the message to the process that took it over. That
// one can't know this, and reports the message as in doubt.
func TestStoppedBetweenMarkAndDot(t *testing.T) {
	t.Parallel()
	redis := testredis.Server(t)
	line := testproxy.New(t, "unix", redis.Socket())
	s := newStage(t, redis, "DATA", map[string]string{"redis.url": "redis://" + line.Addr(),
		"delivery.lease": "8s"})
	line.Delay(2 * time.Second) // the mark is set at Redis; its answer is delayed for long enough
	s.slow.Open()
	apptest.Eventually(t, "the mark is set", func() bool { return s.record("doubt") != "" })
	freeze(t, s.first)
	apptest.Spawn(t, s.set)
	s.other.Wait(1)
	line.Up()
	thaw(t, s.first)
	apptest.Eventually(t, "the stopped process gives its connection up",
		func() bool { return s.relay.Open() == 0 })
	s.end(0, 1, true)
}

// freeze stops the process and waits until it has stopped.
func freeze(t *testing.T, p *apptest.Process) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the process stands still", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
		_, state, _ := bytes.Cut(stat, []byte(") ")) // after the name of the program
		return err != nil || bytes.HasPrefix(state, []byte("T"))
	})
}

// thaw continues the process.
func thaw(t *testing.T, p *apptest.Process) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
