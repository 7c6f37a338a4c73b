package outbox

import (
	"context"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// fate is a fault that is injected into one step of an operation. A step is a call to Redis (a pipeline is
// one), or the writing of a final dot. The context of the operation carries it.
type fate struct {
	at   int  // the step, counted from 0
	what blow // empty means no fault
	part int  // where a pipeline is cut in two

	steps   int
	ghost   func()        // repeats the call, to arrive later
	stalled chan struct{} // closed when the operation stalls
	resume  chan bool     // then waited for: true to continue, false to die
}

func newFate(what blow) *fate {
	return &fate{what: what, stalled: make(chan struct{}), resume: make(chan bool)}
}

// blow is a kind of fault. In all of them except dieBefore, stallBefore and failBefore, Redis executes the
// call.
type blow string

const (
	nothing     blow = ""
	dieBefore   blow = "dies before"
	dieAfter    blow = "dies after"
	diePart     blow = "dies within a pipeline"
	stallBefore blow = "stalls before"
	stallAfter  blow = "stalls after"
	repeat      blow = "is sent twice"
	repeatLate  blow = "is sent again after a stall" // as go-redis does after a time-out
	haunt       blow = "is sent twice and arrives much later once more"
	failBefore  blow = "fails without effect"
	failAfter   blow = "fails with effect"
)

// blows are all faults with their weights. A call that fails costs a real pause before the outbox repeats it.
var blows = []blow{
	nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, dieBefore, dieAfter, dieBefore,
	dieAfter, diePart, stallBefore,
	stallAfter, stallBefore, stallAfter, stallBefore, stallAfter, repeat, repeatLate, haunt, haunt, failBefore,
	failAfter,
}

type fateKey struct{}

// under returns a context with a fate.
func under(ctx context.Context, f *fate) context.Context { return context.WithValue(ctx, fateKey{}, f) }

// errCut is the error of a connection that was cut.
var errCut = io.EOF

// strike counts a step in ctx's operation, and applies its fate. To die means that the goroutine ends: none
// of its code runs after that, as in a killed process.
func strike(ctx context.Context, do, part func() error, ghost func()) error {
	f, _ := ctx.Value(fateKey{}).(*fate)
	if f == nil {
		return do()
	}
	n := f.steps
	f.steps++
	if n != f.at {
		return f.counted(do())
	}
	switch f.what {
	case dieBefore:
		runtime.Goexit()
	case diePart:
		_ = part()
		runtime.Goexit()
	case stallBefore:
		f.stall()
	case failBefore:
		return errCut
	}
	err := f.counted(do())
	if f.steps == n {
		return err // the script was unknown and is sent again in full: the fault applies then
	}
	switch f.what {
	case dieAfter:
		runtime.Goexit()
	case stallAfter:
		f.stall()
	case haunt:
		f.ghost = ghost
	case repeat:
		return do()
	case repeatLate:
		f.stall()
		return do()
	case failAfter:
		return errCut
	}
	return err
}

// counted does not count the step of a script that the server did not know: how often that happens depends on
// the tests before.
func (f *fate) counted(err error) error {
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		f.steps--
	}
	return err
}

func (f *fate) stall() {
	f.at = -1
	close(f.stalled)
	if !<-f.resume {
		runtime.Goexit()
	}
}

// fates applies the fate of each context to its calls.
type fates struct{}

// withFates does so for all calls of db.
func withFates(db *redisdb.DB) { db.Client().AddHook(fates{}) }

// DialHook implements redis.Hook.
func (fates) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (fates) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !touches(cmd) {
			return next(ctx, cmd)
		}
		return strike(ctx, func() error { return next(ctx, cmd) }, func() error { return nil }, func() {
			_ = next(context.WithoutCancel(ctx), redis.NewCmd(ctx, cmd.Args()...))
		})
	}
}

// touches reports whether a command belongs to one operation. Others (the state of Redis, shared content) are
// sent now and then for all operations: if one of them stalled, operations would stall that the model lets
// continue.
func touches(cmd redis.Cmder) bool {
	if args := cmd.Args(); cmd.Name() == "get" && strings.Contains(args[1].(string), ":shared:") {
		return false
	}
	return slices.ContainsFunc(cmd.Args(), func(arg any) bool {
		text, _ := arg.(string)
		return strings.HasPrefix(text, "postroom:{") || strings.HasPrefix(text, "asynq:")
	})
}

// ProcessPipelineHook implements redis.Hook.
func (fates) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.ContainsFunc(cmds, touches) { // the greeting of a new connection
			return next(ctx, cmds)
		}
		f, _ := ctx.Value(fateKey{}).(*fate)
		err := strike(ctx, func() error { return next(ctx, cmds) },
			func() error { return next(ctx, cmds[:1+f.part%len(cmds)]) }, func() {
				for _, cmd := range cmds {
					_ = next(context.WithoutCancel(ctx), []redis.Cmder{redis.NewCmd(ctx, cmd.Args()...)})
				}
			})
		if err == errCut { //nolint:errorlint // the very sentinel
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}
