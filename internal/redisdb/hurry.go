package redisdb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// hurry is what is known about Redis in a context of Hurried.
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
		h, _ := ctx.Value(hurryKey{}).(*hurry)
		if h == nil || h.answered.Load() {
			return next(ctx, cmd)
		}
		h.begin.Do(func() { h.until = time.Now().Add(pingTimeout) })
		ctx, cancel := context.WithDeadline(ctx, h.until)
		defer cancel()
		err := next(ctx, cmd)
		h.answered.CompareAndSwap(false, !Unavailable(err))
		return err
	}
}
