package apisend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
)

// note is a small message to an address that its header does not name.
func note(number int, to string) smtpsend.Message {
	id := fmt.Sprintf("note-%d", number)
	raw := "From: Shop <shop@example.com>\r\nTo: undisclosed-recipients:;\r\nSubject: Note\r\nMessage-ID: <" +
		id +
		"@example.com>\r\n\r\nHello.\r\n"
	return smtpsend.Message{From: "shop@example.com", To: []string{to}, Body: smtpsend.Bytes(raw),
		Labels: smtpsend.Labels{ID: id, Proof: func() string { return id }}}
}

// crowd are messages that are sent at the same time, each by its own caller.
type crowd struct {
	*testapi.Server
	s       *Sender
	to      Target
	release chan struct{} // continues the first request
	group   sync.WaitGroup
	first   sync.WaitGroup
	came    atomic.Int64 // messages whose request was made
}

// gathering is a target whose only request is under way until release is closed, so that all others gather.
func gathering(t *testing.T, kind api.GatewayType, batch int, o ...testapi.Options) *crowd {
	t.Helper()
	c := &crowd{release: make(chan struct{})}
	c.Server, c.s, c.to = mapped(t, kind, append(o, testapi.Options{})[0])
	c.to.Connections, c.to.Batch = 1, batch
	c.Fail(testapi.Fault{At: testapi.Headers, Wait: c.release})
	c.first.Go(func() {
		if _, err := c.s.Send(context.Background(), c.to, note(0, "first@example.net")); err != nil {
			t.Error(err)
		}
	})
	for len(c.Requests()) == 0 {
		runtime.Gosched()
	}
	return c
}

// send sends messages and returns their results when all have one.
func (c *crowd) send(all ...smtpsend.Message) []smtpsend.RecipientResult {
	results := make([]smtpsend.RecipientResult, len(all))
	for i, m := range all {
		c.group.Go(func() {
			results[i] = c.one(context.Background(), m)
		})
		if len(all) < 5 {
			c.gathered(int64(i + 1)) // in their order
		}
	}
	c.gathered(int64(len(all)))
	close(c.release)
	c.group.Wait()
	c.first.Wait()
	return results
}

// one sends a message that goes to one recipient.
func (c *crowd) one(ctx context.Context, m smtpsend.Message) smtpsend.RecipientResult {
	id := m.Labels.ID
	m.Labels.Proof = func() string { c.came.Add(1); return id }
	r, _ := c.s.Send(ctx, c.to, m)
	return r.Recipients[0]
}

// gathered waits until so many messages wait for their turn.
func (c *crowd) gathered(n int64) {
	for c.came.Load() < n {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // from the making of the request to the list
}

// outcome is a result in short.
func outcome(r smtpsend.RecipientResult) string {
	switch e := r.Err; {
	case e == nil:
		return "sent"
	case e.InDoubt:
		return "doubt"
	case errors.Is(e, smtpsend.ErrAborted):
		return "aborted"
	default:
		return string(e.Verdict) + " " + string(e.Scope)
	}
}

// TestListsAreExact: one of each thousand of 10,000 messages has a wrong address, and one an inactive one.
// Everybody gets their own result, no one gets a message twice.
func TestListsAreExact(t *testing.T) {
	t.Parallel()
	const all = 10_000
	for _, kind := range mappedTypes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			inactive := map[string]string{}
			address := func(i int) string {
				if i%1000 == 500 {
					return fmt.Sprintf("r%d@under_score.example", i)
				}
				return fmt.Sprintf("r%d@example.net", i)
			}
			for i := 250; i < all; i += 1000 {
				inactive[address(i)] = ""
			}
			server, s, to := mapped(t, kind, testapi.Options{Inactive: inactive})
			to.Connections = 4
			var next atomic.Int64
			results := make([]smtpsend.RecipientResult, all)
			var group sync.WaitGroup
			for range 1000 {
				group.Go(func() {
					for i := next.Add(1) - 1; i < all; i = next.Add(1) - 1 {
						r, _ := s.Send(context.Background(), to, note(int(i), address(int(i))))
						results[i] = r.Recipients[0]
					}
				})
			}
			group.Wait()
			got, ids := map[string]int{}, map[string]string{}
			for _, d := range server.Delivered() {
				got[d.To]++
				ids[d.To] = d.ID
			}
			for i, r := range results {
				want, times := "sent", 1
				switch {
				case i%1000 == 500:
					want, times = "policy recipient", 0
				case i%1000 == 250 && kind == api.GatewayPostmark:
					want, times = "hard recipient", 0
				case i%1000 == 250: // it takes them, and reports them later
					times = 0
				}
				if outcome(r) != want || got[address(i)] != times || times == 1 && r.ProviderID != ids[address(i)] {
					t.Fatalf("%s: %s with id %q, %v; delivered %d times with id %q", address(i), outcome(r),
						r.ProviderID, r.Err, got[address(i)], ids[address(i)])
				}
			}
			if n := len(server.Requests()); n > all/10 {
				t.Errorf("%d requests for %d messages", n, all)
			}
		})
	}
}

// TestAListWithoutSomeMarks: a message whose mark fails is left out, before anything is delivered.
func TestAListWithoutSomeMarks(t *testing.T) {
	t.Parallel()
	for _, kind := range mappedTypes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := gathering(t, kind, 50)
			var marks [50]atomic.Int64
			var all []smtpsend.Message
			for i := range 50 {
				m := note(i+1, fmt.Sprintf("r%d@example.net", i))
				m.BeforeDot = func(_ context.Context, to []string) error {
					if len(to) != 1 || to[0] != m.To[0] {
						t.Errorf("marked %v, want %v", to, m.To)
					}
					if marks[i].Add(1); i == 7 {
						return errors.New("suppressed")
					}
					return nil
				}
				m.AtDot = func() error {
					if i == 23 {
						return errors.New("the lease is lost")
					}
					return nil
				}
				all = append(all, m)
			}
			for i, r := range c.send(all...) {
				want, times := "sent", 1
				if i == 7 || i == 23 {
					want, times = "aborted", 0
				}
				if outcome(r) != want || c.Count(r.Address) != times || marks[i].Load() != 1 {
					t.Errorf("%s: %s, delivered %d times, marked %d times: %v", r.Address, outcome(r), c.Count(r.Address),
						marks[i].Load(), r.Err)
				}
			}
			for _, r := range c.Requests() {
				if r.Complete && bytes.Contains(r.Body, []byte("r7@example.net")) {
					t.Error("a complete request has a message without its mark")
				}
			}
		})
	}
}

// TestACallerLeavesItsList: before the last byte has left it takes its message along. After that the message
// is in doubt. The others stay.
func TestACallerLeavesItsList(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	for name, row := range map[string]struct {
		late  bool
		want  string
		times int
	}{"before the last byte": {false, "soft", 0}, "after it": {true, "doubt", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := gathering(t, api.GatewayPostmark, 0)
			ctx, leave := context.WithCancelCause(t.Context())
			answer, marking := make(chan struct{}), make(chan struct{})
			c.Fail(testapi.Fault{At: testapi.Read, Wait: answer}, testapi.Fault{At: testapi.Read, Wait: answer})
			var gone, stays smtpsend.RecipientResult
			other := note(1, "stays@example.net")
			other.BeforeDot = func(context.Context, []string) error {
				if !row.late {
					close(marking)
					<-ctx.Done()
				}
				return nil
			}
			c.group.Go(func() {
				gone = c.one(ctx, note(2, "leaves@example.net"))
				close(answer)
			})
			c.group.Go(func() {
				stays = c.one(t.Context(), other)
			})
			c.gathered(2)
			close(c.release)
			if row.late {
				for len(c.Requests()) < 2 || !c.Requests()[1].Complete {
					time.Sleep(time.Millisecond)
				}
			} else {
				<-marking
			}
			leave(left)
			c.group.Wait()
			c.first.Wait()
			if !strings.HasPrefix(outcome(gone), row.want) && outcome(gone) != "aborted" || !errors.Is(gone.Err,
				left) ||
				gone.Err.InDoubt != row.late || c.Count("leaves@example.net") != row.times {
				t.Errorf("%s, delivered %d times: %v", outcome(gone), c.Count("leaves@example.net"), gone.Err)
			}
			if outcome(stays) != "sent" || c.Count("stays@example.net") != 1 {
				t.Errorf("the other: %s, %v", outcome(stays), stays.Err)
			}
		})
	}
}

// TestEveryMarkComesBeforeTheLastByte: a process that ends in between leaves marks of all messages and no
// complete request.
func TestEveryMarkComesBeforeTheLastByte(t *testing.T) {
	t.Parallel()
	for _, kind := range mappedTypes {
		c := gathering(t, kind, 0)
		var marks atomic.Int64
		var all []smtpsend.Message
		for i := range 20 {
			m := note(i+1, fmt.Sprintf("r%d@example.net", i))
			m.BeforeDot = func(context.Context, []string) error { marks.Add(1); return nil }
			m.AtDot = func() error {
				if marks.Load() != 20 {
					t.Error("the last byte may leave before all marks are set")
				}
				for _, r := range c.Requests()[1:] {
					if r.Complete {
						t.Error("the request is complete")
					}
				}
				return errors.New("crash")
			}
			all = append(all, m)
		}
		for _, r := range c.send(all...) {
			if outcome(r) != "aborted" {
				t.Errorf("%s: %v", outcome(r), r.Err)
			}
		}
		if n := c.Count(""); n != 1 {
			t.Errorf("%d delivered, want the first only", n)
		}
	}
}

// TestAnswersToLists: what speaks of the list is for all, what contradicts itself puts all in doubt, and an
// item that says nothing puts its message in doubt.
func TestAnswersToLists(t *testing.T) {
	t.Parallel()
	html := map[string]string{"Content-Type": "text/html"}
	firstNull := func(a any) any {
		switch v := a.(type) {
		case []any:
			v[0] = nil
		case map[string]any:
			for _, name := range []string{"data", "Messages"} {
				if list, ok := v[name].([]any); ok {
					list[0] = nil
				}
			}
		}
		return a
	}
	for name, row := range map[string]struct {
		fault testapi.Fault
		want  string // the first message's, and the others'
	}{
		"nothing":   {testapi.Fault{}, "sent, sent"},
		"key":       {testapi.Fault{Expire: true}, "auth account, auth account"},
		"throttled": {testapi.Fault{Say: testapi.Throttled}, "throttle account, throttle account"},
		"503":       {testapi.Fault{Status: 503, Header: html, Body: "busy"}, "soft connection, soft connection"},
		"too large": {testapi.Fault{Status: 413, Header: html, Body: "too large"}, "sent, sent"},
		"malformed": {testapi.Fault{Status: 400, Header: html, Body: "no"}, "sent, sent"},
		"cut":       {testapi.Fault{At: testapi.Answer, Taken: true}, "doubt, doubt"},
		"a page":    {testapi.Fault{Status: 200, Header: html, Body: "<html>"}, "doubt, doubt"},
		"an object": {testapi.Fault{Status: 200, Body: `{"ErrorCode":0,"MessageID":"m","id":"m"}`},
			"doubt, doubt"},
		"null":       {testapi.Fault{Lie: testapi.Null, Taken: true}, "doubt, doubt"},
		"one less":   {testapi.Fault{Lie: testapi.Missing, Taken: true}, "doubt, doubt"},
		"one more":   {testapi.Fault{Lie: testapi.Twice, Taken: true}, "doubt, doubt"},
		"empty item": {testapi.Fault{Lie: firstNull, Taken: true}, "doubt, sent"},
		"numbers":    {testapi.Fault{Lie: testapi.WrongType, Taken: true}, "doubt, doubt"},
	} {
		for _, kind := range mappedTypes {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				c := gathering(t, kind, 0)
				c.s.o.Wait = func(context.Context, time.Duration) bool { return false }
				var all []smtpsend.Message
				for i := range 9 {
					all = append(all, note(i+1, fmt.Sprintf("r%d@example.net", i)))
				}
				c.Fail(row.fault)
				results := c.send(all...)
				first := c.Requests()[1].Body
				want := strings.Split(row.want, ", ")
				for _, r := range results {
					w := want[1]
					if at := bytes.Index(first, []byte("@example.net")); want[0] != want[1] &&
						bytes.HasSuffix(first[:at], []byte(strings.TrimSuffix(r.Address, "@example.net"))) {
						w = want[0]
					}
					if got := outcome(r); got != w && (kind != api.GatewayResend || name != "numbers") {
						t.Errorf("%s: %s, want %s: %v", r.Address, got, w, r.Err)
					}
					if outcome(r) != "doubt" && (c.Count(r.Address) == 1) != (r.Err == nil) {
						t.Errorf("%s: %s, delivered %d times", r.Address, outcome(r), c.Count(r.Address))
					}
				}
			})
		}
	}
}

// TestAKeyOfAList: the same messages are sent again with the same key, or none.
func TestAKeyOfAList(t *testing.T) {
	t.Parallel()
	c := gathering(t, api.GatewayResend, 0)
	c.s.o.Wait = func(context.Context, time.Duration) bool { return true }
	c.Fail(testapi.Fault{At: testapi.Read, Taken: true}, testapi.Fault{At: testapi.Answer, Taken: true})
	var all []smtpsend.Message
	for i := range 5 {
		all = append(all, note(i+1, fmt.Sprintf("r%d@example.net", i)))
	}
	for _, r := range c.send(all...) {
		if outcome(r) != "sent" || c.Count(r.Address) != 1 {
			t.Errorf("%s: %s, delivered %d times: %v", r.Address, outcome(r), c.Count(r.Address), r.Err)
		}
	}
	requests := c.Requests()[1:]
	for _, r := range requests[1:] {
		if !bytes.Equal(r.Body, requests[0].Body) || r.Header.Get("Idempotency-Key") == "" ||
			r.Header.Get("Idempotency-Key") != requests[0].Header.Get("Idempotency-Key") {
			t.Error("the repeat has another key, or other bytes")
		}
	}
	doubted := note(1, "r0@example.net")
	doubted.Labels.Doubted = true
	d := gathering(t, api.GatewayResend, 0)
	d.send(note(2, "a@example.net"), doubted, note(3, "b@example.net"))
	if n := len(d.Requests()); n != 3 {
		t.Errorf("%d requests, want one for the message in doubt", n)
	}
}

// TestListsAreFormed: alone a message leaves at once as one, batch bounds a list, other authors and other
// lanes are in other lists, and no one waits longer than they want.
func TestListsAreFormed(t *testing.T) {
	t.Parallel()
	paths := func(c *crowd) string {
		var all []string
		for _, r := range c.Requests()[1:] {
			all = append(all, fmt.Sprintf("%s %d", r.Path, bytes.Count(r.Body, []byte("@example.net"))))
		}
		return strings.Join(all, ", ")
	}
	c := gathering(t, api.GatewayPostmark, 0)
	c.send(note(1, "a@example.net"))
	if got := paths(c); got != "/email 1" {
		t.Errorf("one message: %s", got)
	}
	c = gathering(t, api.GatewayPostmark, 2)
	c.send(note(1, "a@example.net"), note(2, "b@example.net"), note(3, "c@example.net"), note(4,
		"d@example.net"))
	if got := paths(c); got != "/email/batch 2, /email/batch 2" {
		t.Errorf("at most two: %s", got)
	}
	c = gathering(t, api.GatewayPostmark, 0)
	other, bulk := note(1, "a@example.net"), note(2, "b@example.net")
	other.Body = smtpsend.Bytes(strings.ReplaceAll(string(other.Body.(smtpsend.Bytes)), "shop@", "news@"))
	bulk.Bulk = true
	c.send(other, bulk, note(3, "c@example.net"), note(4, "d@example.net"))
	if got := paths(c); strings.Count(got, "/email 1") != 2 || strings.Count(got, "/email/batch 2") != 1 {
		t.Errorf("others: %s", got)
	}
	c = gathering(t, api.GatewayPostmark, 0)
	hurried := note(1, "a@example.net")
	hurried.Patience = 5 * time.Millisecond
	c.group.Go(func() {
		if e := c.one(context.Background(), hurried).Err; e == nil || e.Verdict != smtpsend.Throttle ||
			e.Phase != smtpsend.PhaseConnect {
			t.Errorf("without patience: %v", e)
		}
	})
	c.group.Wait()
	c.came.Store(0)
	for _, r := range c.send(note(2, "b@example.net"), note(3, "c@example.net")) {
		if outcome(r) != "sent" {
			t.Error(r.Err)
		}
	}
	if c.Count("a@example.net") != 0 {
		t.Error("a message without a turn was delivered")
	}
}

// TestMostUnderWay: for lists it is requests times messages, within bounds.
func TestMostUnderWay(t *testing.T) {
	for _, row := range []struct {
		kind                 api.GatewayType
		connections, batch   int
		want, list, requests int
	}{
		{api.GatewayHTTP, 0, 0, 20, 1, 20}, {api.GatewayPostmark, 0, 0, 1000, 500, 20},
		{api.GatewayPostmark, 1, 0, 500, 500, 1}, {api.GatewayPostmark, 4, 1, 4, 1, 4},
		{api.GatewayMailjet, 4, 0, 200, 50, 4}, {api.GatewayResend, 2000, 0, 2000, 100, 2000},
		{api.GatewayMailjet, 2, 500, 100, 50, 2},
	} {
		to := Target{Type: row.kind, Connections: row.connections, Batch: row.batch}
		if to.Most() != row.want || to.list() != row.list || to.requests() != row.requests {
			t.Errorf("%+v: %d, %d, %d", row, to.Most(), to.list(), to.requests())
		}
	}
}
