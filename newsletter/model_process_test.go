package newsletter

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// process is one Postroom of the model: its objects with their memory, and its connection to Redis.
type process struct {
	*Campaigns
	m        *model
	name     string
	db       *redisdb.DB
	outbox   *outbox.Outbox
	audience *audience.Subscribers
	bars     *suppression.Store
	ctx      context.Context // ends when it is killed
	cancel   context.CancelFunc

	mu   sync.Mutex
	op   *operation // that runs, or has stalled; nil if none
	dead bool       // its connections are cut
}

// operation is what a process does in one step of a history. It runs alone, until it ends or stalls.
type operation struct {
	name    string
	what    blow
	at      int // the step that the blow meets, counted from 0
	from    int // the attempt from which steps are counted; 0 if they are from the beginning
	tried   int // attempts so far
	began   int // when, in ticks of the model
	run     int // the last one then
	reached int // when its last step took effect
	steps   int
	struck  bool // the blow has met it
	claimed bool // it has a batch
	late    bool // the lease of that has ended
	resumed int  // when it continued after it had stalled; 0 if it did not stall
	went    bool // an attempt was made since
	asked   int  // when the campaign was asked about a message of the outbox, before its attempt
	stalled chan struct{}
	resume  chan struct{}
	ended   chan struct{}
	about   []*person // whom it changes, or their mail of an earlier run
	then    func()    // what its answer tells the model; nil: nothing
}

// blow is a fault that meets a step: a call to Redis (a pipeline is one), or a final dot.
type blow string

const (
	nothing     blow = ""
	dieBefore   blow = "dies before"
	dieAfter    blow = "dies after"
	stallBefore blow = "stalls before"
	stallAfter  blow = "stalls after"
	repeat      blow = "sends twice"
	loseAnswer  blow = "loses the answer"
)

// blows are all faults with their weights. A lost answer costs a real pause before the product repeats it.
var blows = []blow{nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, dieBefore,
	dieAfter, dieBefore, dieAfter, stallBefore, stallAfter, stallBefore, stallAfter, stallBefore, stallAfter,
	repeat, loseAnswer}

// errKilled is the error of each call after a process was killed. The product takes it for no outage, so that
// what is left of an operation ends soon.
var errKilled = errors.New("the process was killed")

// step makes a step of the operation that runs, with its blow.
func (p *process) step(do func() error) error {
	p.mu.Lock()
	op, n := p.op, 0
	if op != nil {
		n = op.steps
		op.steps++
	}
	p.mu.Unlock()
	switch {
	case p.killed():
		return errKilled
	case op == nil:
		return do()
	case n != op.at || op.tried < op.from || op.what == nothing || op.struck:
		return p.reach(op, do)
	}
	op.struck = true
	switch op.what {
	case dieBefore:
		p.die()
		return errKilled
	case stallBefore:
		op.stall()
		if p.killed() {
			return errKilled
		}
	}
	err := p.reach(op, do)
	switch op.what {
	case dieAfter:
		p.die()
		return errKilled
	case stallAfter:
		op.stall()
		if p.killed() {
			return errKilled
		}
	case repeat:
		return do()
	case loseAnswer:
		return io.EOF
	}
	return err
}

// reach lets a step take effect. A script that the server did not know is sent again, in another step.
func (p *process) reach(op *operation, do func() error) error {
	err := do()
	p.mu.Lock()
	defer p.mu.Unlock()
	op.reached = int(p.m.tick.Load())
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		op.steps--
	}
	return err
}

func (op *operation) stall() {
	close(op.stalled)
	<-op.resume
}

// stalled names the operation that stalls; empty if none does.
func (p *process) stalled() string {
	if p.op == nil {
		return ""
	}
	return p.op.name
}

func (p *process) killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// tries notes that an attempt begins.
func (p *process) tries() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op.tried++; p.op.tried == p.op.from {
		p.op.steps = 0
	}
}

// takes makes an operation the one that runs; nil if none does.
func (p *process) takes(op *operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.op = op
}

// die cuts the connections of a process, so that it writes nothing more.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	p.cancel()
}

// striking strikes the calls of a process to Redis.
type striking struct{ p *process }

// DialHook implements redis.Hook.
func (striking) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s striking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !touches(cmd) {
			return next(ctx, cmd)
		}
		return s.p.step(func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s striking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.ContainsFunc(cmds, touches) { // the greeting of a new connection
			return next(ctx, cmds)
		}
		err := s.p.step(func() error { return next(ctx, cmds) })
		if errors.Is(err, errKilled) || err == io.EOF { //nolint:errorlint // the very error of step
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// touches reports whether a command is about what is stored. Contents are read when a cache lacks them.
func touches(cmd redis.Cmder) bool {
	if args := cmd.Args(); cmd.Name() == "get" && strings.Contains(args[1].(string), ":shared:") {
		return false
	}
	return slices.ContainsFunc(cmd.Args(), func(arg any) bool {
		text, _ := arg.(string)
		return strings.HasPrefix(text, "postroom:{") || strings.HasPrefix(text, "asynq:")
	})
}

// start starts a process again.
func (p *process) start() {
	p.ctx, p.cancel = context.WithCancel(p.m.ctx)
	p.mu.Lock()
	p.dead, p.op = false, nil
	p.mu.Unlock()
	m, now := p.m, p.m.clock.Now
	must := func(err error) {
		if err != nil {
			m.rt.Fatal(err)
		}
	}
	var err error
	p.bars, err = suppression.New(p.db, suppression.Options{Ring: m.ring, Now: now})
	must(err)
	relays, err := gateways.New(p.db, m.ring, gateways.Options{})
	must(err)
	senders, err := accounts.New(p.db, m.ring, relays, accounts.Options{Now: now, Default: &api.Account{
		Email: "news@example.com", SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}}})
	must(err)
	p.audience, err = audience.New(audience.Parts{DB: p.db, Suppressions: p.bars,
		Account:   func(ctx context.Context, id string) error { _, err := senders.Get(ctx, id); return err },
		Campaigns: func() audience.Campaigns { return p.Campaigns }}, audience.Options{Now: now})
	must(err)
	public := func() string { return "https://mail.example.com" }
	log := slog.New(slog.NewTextHandler(m.log, nil)).With("process", p.name)
	c := p.db.Client()
	p.outbox, err = outbox.New(outbox.Parts{DB: p.db, Queue: queue.NewClient(c, queue.Options{}),
		Control: queue.NewControl(c), Router: &relay{model: m, p: p}, Accounts: senders, Gateways: relays,
		Suppressions: p.bars, Tokens: m.tokens, Ring: m.ring,
		Campaign: func(ctx context.Context, id string) (outbox.Turn, error) {
			p.op.asked = int(m.tick.Load())
			return p.Turn(ctx, id)
		},
		MayReplay: func(ctx context.Context, id string) error { return p.MayReplay(ctx, id) }},
		outbox.Options{Attempts: func() int { return mostAttempts }, Backoff: queue.Backoff{Base: 5 * time.Second},
			ServiceURL: public, Now: now, Logger: log})
	must(err)
	bounds, err := limits.New(p.db, limits.Options{Now: now})
	must(err)
	p.Campaigns, err = New(Parts{DB: p.db, Audience: p.audience,
		Log: sendlog.New(p.db, time.Hour, p.bars.VersionKey()), Outbox: p.outbox, Limits: bounds,
		Suppressions: p.bars,
		Relays: func(_ context.Context, a accounts.Sender, _ string, _ api.Lane) ([]gateways.Relay, error) {
			return a.Relays, nil
		},
		Resting: func(context.Context) (bool, error) { return false, nil }},
		Options{Workers: 1, Connections: 1, ResendInDoubt: m.resend, ServiceURL: public, Now: now, Logger: log})
	must(err)
}

// forget drops what a process has in its caches, as a second does.
func (p *process) forget() {
	p.cached.Clear()
	p.byNo.Clear()
}

// The parts of Campaigns.Run, one step at a time. What sends campaigns in another way needs others.

// look does what the dispatcher does each second.
func (p *process) look(ctx context.Context) error {
	err := p.Campaigns.look(ctx)
	p.Campaigns.counts.Wait()
	return err
}

// mail takes a batch, and mails it. It reports whether there was one.
func (p *process) mail(ctx context.Context) bool {
	s, _, _ := p.scheduler.take(p.m.clock.Now())
	if s == nil {
		return false
	}
	b, err := p.Campaigns.claim(ctx, s)
	if err != nil {
		p.Campaigns.unclaimed(ctx, s, err)
	}
	if b == nil {
		return false
	}
	if op := p.op; op != nil { // its claim was its last step
		op.claimed, op.late = true, p.m.expired > op.reached
	}
	b.work(ctx, ctx)
	return true
}

// apply applies events.
func (p *process) apply(ctx context.Context, entries []redisdb.Entry) error {
	return p.Campaigns.apply(ctx, entries)
}
