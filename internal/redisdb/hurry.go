package redisdb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

// hurry is the state of Redis in a context of Hurried.
type hurry struct {
	begin    sync.Once
	until    time.Time // when commands fail
	answered atomic.Bool
}

type hurryKey struct{}

// Hurried returns a context for somebody who waits. Until Redis has answered a command of [DB.Client] in it,
// commands fail 2 seconds after the first one. Once it has answered, the usual times apply: a write under
// way, or a long export, isn't given up when Redis pauses for a few seconds.
func Hurried(ctx context.Context) context.Context {
	return context.WithValue(ctx, hurryKey{}, new(hurry))
}

// hurryHook applies [Hurried] to a client.
type hurryHook struct{}

// DialHook, ProcessHook and ProcessPipelineHook implement redis.Hook.
func (hurryHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hurryHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return hurried(next) }

func (hurryHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return hurried(next)
}

func hurried[C any](next func(context.Context, C) error) func(context.Context, C) error {
	return func(ctx context.Context, cmd C) error {
		ctx, h, cancel := bound(ctx)
		defer cancel()
		err := next(ctx, cmd)
		h.note(err)
		return err
	}
}

// bound returns the context for one wait for Redis, or for somebody who waits for it.
func bound(ctx context.Context) (context.Context, *hurry, context.CancelFunc) {
	h, _ := ctx.Value(hurryKey{}).(*hurry)
	if h == nil || h.answered.Load() {
		return ctx, nil, func() {}
	}
	h.begin.Do(func() { h.until = time.Now().Add(pingTimeout) })
	ctx, cancel := context.WithDeadline(ctx, h.until)
	return ctx, h, cancel
}

// note notes that Redis has answered, unless err says otherwise.
func (h *hurry) note(err error) {
	if h != nil && !Unavailable(err) {
		h.answered.Store(true)
	}
}

// Turn is a lock for callers that ask Redis one after the other. Make it with a capacity of 1. Its waiters
// look at their context, and give up like commands of [Hurried].
type Turn chan struct{}

// Take waits for the lock. The error is Unavailable if the wait took too long.
func (t Turn) Take(ctx context.Context) error {
	ctx, _, cancel := bound(ctx)
	defer cancel()
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return Failed(context.Cause(ctx), "wait for others who ask Redis")
	}
}

// Give ends what Take began.
func (t Turn) Give() { <-t }

// Await returns the result that several callers wait for. They give up like the callers of a [Turn].
func Await[T any](ctx context.Context, shared <-chan singleflight.Result) (v T, err error) {
	ctx, _, cancel := bound(ctx)
	defer cancel()
	select {
	case result := <-shared:
		v, _ = result.Val.(T)
		return v, result.Err
	case <-ctx.Done():
		return v, Failed(context.Cause(ctx), "wait for others who ask Redis")
	}
}
