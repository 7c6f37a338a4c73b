package outbox

import (
	"bufio"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/smtpsend"
)

var update = flag.Bool("update", false, "write what the stories say now into testdata")

// TestStories runs the transcripts in testdata/*.txt: a line "> verb arguments" is run, and the lines below
// it are the expected output.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newStory(t, string(want)).play()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story goes otherwise (-told +played):\n%s", diff)
			}
		})
	}
}

// story is one transcript: an outbox with a clock that only "advance" moves.
type story struct {
	*bundle
	t    *testing.T
	text string
	ids  []string
	seen map[string]string // last event read, by partition's stream
}

func newStory(t *testing.T, text string) *story {
	first, _, _ := strings.Cut(text, "\n")
	o := Options{Backoff: queue.Backoff{Base: 5 * time.Second, Factor: 2}}
	o.HoldInDoubt = strings.Contains(first, "in doubt: hold")
	if strings.Contains(first, "dead letters: off") {
		o.KeepDeadLetters = -1
	}
	b := setup(t, o)
	b.people.hold = strings.Contains(first, "account trouble: hold")
	return &story{bundle: b, t: t, text: text, seen: map[string]string{}}
}

func (s *story) play() string {
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(s.text))
	for lines.Scan() {
		l := lines.Text()
		switch {
		case strings.HasPrefix(l, "#"), l == "":
			out.WriteString(l + "\n")
		case strings.HasPrefix(l, "> "):
			out.WriteString(l + "\n")
			for _, line := range s.do(strings.Fields(l[2:])) {
				out.WriteString("  " + line + "\n")
			}
		}
	}
	return out.String()
}

func (s *story) do(words []string) []string {
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	ctx := s.t.Context()
	switch verb := words[0]; verb {
	case "submit":
		return s.submit(ctx, args)
	case "relay": // relay ann@x.test 451 4.7.1 greylisted
		s.sender.replies[words[1]] = strings.Join(words[2:], " ")
		return nil
	case "advance":
		d, err := time.ParseDuration(words[1])
		s.must(err)
		s.clock.Advance(d)
		return nil
	case "work":
		return s.work(ctx)
	case "limit": // limit 30s: until then the relay takes no more
		d, err := time.ParseDuration(words[1])
		s.must(err)
		s.sender.full = s.clock.Now().Add(d)
		return nil
	case "crowd": // crowd 30s: until then all connections are taken
		d, err := time.ParseDuration(words[1])
		s.must(err)
		s.sender.crowded = s.clock.Now().Add(d)
		return nil
	case "portion": // portion 2: recipients in one transaction
		n, err := strconv.Atoi(words[1])
		s.must(err)
		s.sender.portion = n
		return nil
	case "crash": // crash m1 before|after|between: the dot, or two transactions
		return s.crash(ctx, s.id(words[1]), words[2])
	case "sweep":
		s.must(s.Outbox.sweep(ctx))
		return nil
	case "show":
		return s.show(ctx)
	case "events":
		return s.events(ctx)
	case "log": // log m1: its attempts
		m, err := s.Reader.Get(ctx, s.id(words[1]))
		s.must(err)
		var lines []string
		for _, a := range m.Log {
			l := fmt.Sprintf("attempt %d: %s %d %s", a.Number, a.Error, a.Code, a.Line)
			if a.Held {
				l += " (held)"
			}
			lines = append(lines, l)
		}
		for _, r := range m.Recipients {
			lines = append(lines, fmt.Sprintf("%s has had %d attempts", r.Address, r.Attempts))
		}
		return lines
	case "get":
		m, err := s.Reader.Get(ctx, s.id(words[1]))
		if err != nil {
			return []string{s.plain(err)}
		}
		return []string{string(m.State)}
	case "cancel":
		a, err := s.Operations.Cancel(ctx, s.id(words[1]), ReasonAPI)
		s.must(err)
		return []string{strings.TrimSpace(fmt.Sprintf("deleted=%t %s", a.Deleted, a.Code))}
	case "retry":
		m, err := s.Operations.Retry(ctx, s.id(words[1]))
		if err != nil {
			return []string{s.plain(err)}
		}
		return []string{string(m.State)}
	case "archive":
		return []string{s.plain(s.Operations.TaskArchived(ctx, taskID(s.id(words[1]), "1")))}
	case "patch":
		return s.patch(ctx, s.id(words[1]), args)
	}
	s.t.Fatalf("unknown verb in a story: %q", words)
	return nil
}

func (s *story) submit(ctx context.Context, args map[string]string) []string {
	req := api.SubmitRequest{Subject: args["subject"], Text: "hello", IdempotencyKey: args["key"],
		Lane: api.Lane(args["lane"]), Gateway: args["gateway"]}
	for _, to := range strings.Split(args["to"], ",") {
		req.To = append(req.To, api.Address{Address: to})
	}
	if v := args["attempts"]; v != "" {
		n, err := strconv.Atoi(v)
		s.must(err)
		req.DeliveryAttempts = n
	}
	for key, field := range map[string]**time.Time{"at": &req.SendAt, "by": &req.DeliverBy} {
		if v := args[key]; v != "" {
			d, err := time.ParseDuration(v)
			s.must(err)
			at := s.clock.Now().Add(d)
			*field = &at
		}
	}
	a, err := s.Intake.Submit(ctx, req)
	if err != nil {
		return []string{s.plain(err)}
	}
	if !slices.Contains(s.ids, a.QueueID) {
		s.ids = append(s.ids, a.QueueID)
	}
	text := fmt.Sprintf("%s %s at %s", s.name(a.QueueID), a.Response, s.offset(*a.SendAt))
	if a.Idempotency != nil {
		text += " " + a.Idempotency.Status
	}
	return []string{text}
}

func (s *story) work(ctx context.Context) []string {
	var lines []string
	for i, id := range s.ids {
		v := s.Delivery.Deliver(ctx, queue.Task{Queue: queue.Submit, ID: taskID(id, "1")})
		lines = append(lines, fmt.Sprintf("m%d %s", i+1, v))
	}
	return lines
}

// crash begins a message as a worker does and then dies.
func (s *story) crash(ctx context.Context, id, when string) []string {
	c, v, err := s.Delivery.begin(ctx, id)
	s.must(err)
	if c == nil {
		return []string{v.String()}
	}
	if when != "before" {
		s.must(s.Delivery.doubt(ctx, c))
	}
	if when == "between" {
		first := c.envelope.To[c.status.having(rcptQueued)[0]]
		s.must(s.Delivery.progress(ctx, c, []smtpsend.RecipientResult{{Address: first,
			Response: "250 2.0.0 queued"}}))
	}
	return nil
}

func (s *story) patch(ctx context.Context, id string, args map[string]string) []string {
	var p api.OutboxPatch
	if v := args["at"]; v != "" {
		d, err := time.ParseDuration(v)
		s.must(err)
		at := s.clock.Now().Add(d)
		p.SendAt = &at
	}
	if v := args["attempts"]; v != "" {
		n, err := strconv.Atoi(v)
		s.must(err)
		p.DeliveryAttempts = &n
	}
	m, err := s.Operations.Patch(ctx, id, p)
	if err != nil {
		return []string{s.plain(err)}
	}
	return []string{fmt.Sprintf("%s next=%s", m.State, s.next(m))}
}

func (s *story) show(ctx context.Context) []string {
	page, err := s.Reader.List(ctx, api.OutboxQuery{})
	s.must(err)
	lines := []string{}
	for _, m := range page.Messages {
		l := fmt.Sprintf("%s %s %s %d/%d next=%s", s.name(m.QueueID), m.State, m.Progress.Status, m.AttemptsMade,
			m.Attempts, s.next(m))
		if m.InDoubt > 0 {
			l += fmt.Sprintf(" inDoubt=%d", m.InDoubt)
		}
		if e := m.Progress.Error; e != nil {
			l += fmt.Sprintf(" error=%s", e.Code)
		}
		if m.Reason != "" {
			l += fmt.Sprintf(" reason=%q", m.Reason)
		}
		for _, r := range m.Recipients {
			l += fmt.Sprintf(" %s=%s", r.Address, r.Status)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return []string{"(empty)"}
	}
	return lines
}

func (s *story) next(m api.OutboxMessage) string {
	if m.NextAttempt.Time == nil {
		return "false"
	}
	return s.offset(*m.NextAttempt.Time)
}

func (s *story) events(ctx context.Context) []string {
	var lines []string
	for p := range s.store.DB.Partitions() {
		key := s.store.keys.events(p)
		from := s.seen[key]
		if from == "" {
			from = "-"
		} else {
			from = "(" + from
		}
		entries, err := s.store.DB.Client().XRange(ctx, key, from, "+").Result()
		s.must(err)
		for _, e := range entries {
			s.seen[key] = e.ID
			lines = append(lines, s.describe(e.Values["e"].(string)))
		}
	}
	return lines
}

func (s *story) describe(raw string) string {
	e, err := event.Parse([]byte(raw))
	s.must(err)
	var d struct {
		event.Failed
		Accepted []string `json:"accepted"`
		Reason   string   `json:"reason"`
	}
	s.must(json.Unmarshal(e.Data, &d))
	text := fmt.Sprintf("%s %s to=%s", e.Type, s.name(d.QueueID), strings.Join(d.Envelope.To, ","))
	if d.Error != "" {
		text += fmt.Sprintf(" error=%q code=%s", d.Error, d.ErrorCode)
	}
	if d.Job.Attempts > 0 {
		text += fmt.Sprintf(" attempt=%d/%d", d.Job.AttemptsMade, d.Job.Attempts)
	}
	if d.Job.NextAttempt != nil {
		text += " next=" + s.offset(*d.Job.NextAttempt)
	}
	if d.InDoubt {
		text += " inDoubt"
	}
	if d.DeadLetter != "" {
		text += " deadLetter=" + s.name(d.DeadLetter)
	}
	if d.Reason != "" {
		text += " reason=" + strconv.Quote(d.Reason)
	}
	return text
}

// id and name turn m1, m2… into queue ids and back: queue ids are random.
func (s *story) id(name string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "m"))
	if err != nil || n < 1 || n > len(s.ids) {
		return name
	}
	return s.ids[n-1]
}

func (s *story) name(id string) string {
	if i := slices.Index(s.ids, id); i >= 0 {
		return "m" + strconv.Itoa(i+1)
	}
	return "m?"
}

// offset returns a time as seconds since the beginning of the story.
func (s *story) offset(at time.Time) string { return at.Sub(storyBegin).String() }

func (s *story) plain(err error) string {
	if err == nil {
		return "ok"
	}
	text := err.Error()
	for i, id := range s.ids {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("m%d", i+1))
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code != "" {
		return f.Code + ": " + text
	}
	return text
}

func (s *story) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// scriptedSender is a relay: its reply for each recipient is the story's, or 250.
type scriptedSender struct {
	clock   *testkit.Clock
	replies map[string]string
	portion int // recipients in a transaction; 0 means all
	got     func(m smtpsend.Message)
	full    time.Time     // until then a limit is reached
	of      string        // the destination whose limit it is; empty: the relay's
	direct  bool          // a failure may be one destination's
	crowded time.Time     // until then all connections are taken
	host    string        // the relay's; defaults to relay.test:25
	path    gateways.Path // the last message's
	instead string        // relay that serves instead of one that does not answer; empty if all do

	refusals map[string]*smtpsend.Error // by recipient, instead of replies
}

func (f *scriptedSender) Send(ctx context.Context, d routing.Dispatch) routing.Sent {
	if now := f.clock.Now(); now.Before(f.full) && d.Reservation == "" {
		return routing.Sent{Wait: f.full, Reservation: "mine", Reason: "the limit of the relay",
			Destination: f.of}
	}
	if f.clock.Now().Before(f.crowded) {
		return routing.Sent{Wait: f.clock.Now().Add(time.Second), Relay: routing.Scope(d.Account.ID, d.Gateway),
			Reason: "the relay: all connections are taken"}
	}
	if f.got != nil {
		f.got(d.Message)
	}
	f.path = d.Path
	start := f.clock.Now()
	r, err := f.send(ctx, d.Message)
	r.Dialogue = dialogueOf(r)
	host, _, _ := strings.Cut(f.host, ":")
	routing.NameByReply(host, r)
	out := routing.Sent{Result: r, Err: err}
	out.Tries = []routing.Try{{Gateway: d.Gateway, Direct: f.direct, Host: stdcmp.Or(f.host, "relay.test:25"),
		Start: start,
		End:   f.clock.Now(), Result: r, Err: err}}
	return out
}

// dialogueOf returns a dialogue that names the recipients, if one of them did not get the message.
func dialogueOf(r smtpsend.Result) (lines []smtpsend.DialogueLine) {
	failed := false
	for i, one := range r.Recipients {
		at := time.Duration(i) * time.Millisecond
		lines = append(lines,
			smtpsend.DialogueLine{At: at, From: smtpsend.FromClient, Text: "RCPT TO:<" + one.Address + ">"},
			smtpsend.DialogueLine{At: at, From: smtpsend.FromServer, Text: stdcmp.Or(one.Response, "250 ok")})
		failed = failed || one.Err != nil
	}
	if !failed {
		return nil
	}
	return lines
}

// ExpectWaiting implements outbox.Router.
func (*scriptedSender) ExpectWaiting(string, int) {}

// Answers implements outbox.Router.
func (f *scriptedSender) Answers(string) bool { return f.instead == "" }

// Instead implements outbox.Router.
func (f *scriptedSender) Instead(accounts.Sender, api.Lane, string) string { return f.instead }

// Slots implements Router.
func (f *scriptedSender) Slots(string, api.Lane) int {
	if f.clock.Now().Before(f.crowded) {
		return 0
	}
	return 1
}

// send makes transactions of portion recipients.
func (f *scriptedSender) send(ctx context.Context, m smtpsend.Message) (smtpsend.Result, error) {
	var all smtpsend.Result
	var failure error
	for rest := m.To; len(rest) > 0; {
		n := len(rest)
		if f.portion > 0 {
			n = min(n, f.portion)
		}
		m.To, rest = rest[:n], rest[n:]
		r, err := f.transact(ctx, m)
		all.Response = r.Response
		all.Recipients = append(all.Recipients, r.Recipients...)
		if err != nil {
			failure = err
			break
		}
		if len(rest) > 0 && m.Answered != nil {
			if err := m.Answered(ctx, r.Recipients); err != nil {
				return all, err
			}
		}
	}
	for _, r := range all.Recipients {
		if r.Err == nil {
			return all, nil
		}
		failure = r.Err
	}
	return all, failure
}

func (f *scriptedSender) transact(ctx context.Context, m smtpsend.Message) (smtpsend.Result, error) {
	var r smtpsend.Result
	var accepted []string
	for _, to := range m.To {
		reply := f.replies[to]
		if reply == "" || reply[0] == '2' || strings.HasPrefix(reply, "dies") {
			accepted = append(accepted, to)
		}
	}
	if len(accepted) > 0 {
		if err := m.BeforeDot(ctx, accepted); err != nil {
			return f.all(m, &smtpsend.Error{Phase: smtpsend.PhaseBody, Verdict: smtpsend.Soft,
				Err: fmt.Errorf("%w: %w", smtpsend.ErrAborted, err)})
		}
	}
	for _, to := range m.To {
		switch reply := f.replies[to]; {
		case f.refusals[to] != nil:
			r.Recipients = append(r.Recipients, smtpsend.RecipientResult{Address: to, Err: f.refusals[to],
				Response: f.refusals[to].Line})
		case strings.HasPrefix(reply, "dies"):
			return f.all(m, &smtpsend.Error{Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft, InDoubt: true,
				Err: errors.New("EOF")})
		case reply != "" && reply[0] != '2':
			r.Recipients = append(r.Recipients, smtpsend.RecipientResult{Address: to, Err: refusal(reply),
				Response: reply})
		default:
			r.Response = stdcmp.Or(reply, "250 2.0.0 queued")
			r.Recipients = append(r.Recipients, smtpsend.RecipientResult{Address: to, Response: r.Response})
		}
	}
	return r, nil
}

func (f *scriptedSender) all(m smtpsend.Message, err *smtpsend.Error) (smtpsend.Result, error) {
	var r smtpsend.Result
	for _, to := range m.To {
		r.Recipients = append(r.Recipients, smtpsend.RecipientResult{Address: to, Err: err})
	}
	return r, err
}

func refusal(reply string) *smtpsend.Error {
	code, _ := strconv.Atoi(reply[:3])
	e := &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Command: "RCPT TO", Code: code, Line: reply,
		Verdict: smtpsend.Soft, Scope: smtpsend.ScopeRecipient}
	switch {
	case code == 535:
		e.Phase, e.Command, e.Verdict, e.Scope = smtpsend.PhaseAuth, "AUTH", smtpsend.Auth, smtpsend.ScopeAccount
	case code >= 500:
		e.Verdict = smtpsend.Hard
	}
	return e
}
