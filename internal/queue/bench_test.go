package queue

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// BenchmarkEnqueue puts tasks into a queue, one or many in a round trip. One operation is one task.
func BenchmarkEnqueue(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("pipeline=%d", size), func(b *testing.B) {
			q := setup(b)
			b.ReportAllocs()
			tasks := make([]Task, 0, size)
			for n := 0; n < b.N; n += len(tasks) {
				tasks = tasks[:0]
				for i := range min(size, b.N-n) {
					tasks = append(tasks, task(fmt.Sprintf("b%d", n+i)))
				}
				q.enqueue(b, tasks...)
			}
		})
	}
}

// BenchmarkScript compares sending the enqueue script along with sending its hash, 100 in a round trip. One
// operation is one task.
func BenchmarkScript(b *testing.B) {
	for _, by := range []string{"source", "hash"} {
		b.Run(by, func(b *testing.B) {
			q := setup(b)
			b.ReportAllocs()
			var pipe redis.Pipeliner
			var sha string
			for n := range b.N {
				if n%100 == 0 {
					pipe = q.redis.Pipeline()
				}
				k, err := q.client.compose(b.Context(), task(fmt.Sprintf("b%d", n)))
				if err != nil {
					b.Fatal(err)
				}
				if n == 0 {
					sha = q.redis.ScriptLoad(b.Context(), k.source).Val()
				}
				if by == "source" {
					pipe.Eval(b.Context(), k.source, k.keys, k.args...)
				} else {
					pipe.EvalSha(b.Context(), sha, k.keys, k.args...)
				}
				if n%100 == 99 || n == b.N-1 {
					if _, err := pipe.Exec(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkProcess runs a handler that does nothing. One operation is one task, its enqueueing not counted.
func BenchmarkProcess(b *testing.B) {
	for _, servers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			q := setup(b)
			for n := 0; n < b.N; n += 500 {
				tasks := make([]Task, 0, 500)
				for i := range min(500, b.N-n) {
					tasks = append(tasks, task(fmt.Sprintf("b%d", n+i)))
				}
				q.enqueue(b, tasks...)
			}
			var handled atomic.Int64
			all := make(chan struct{})
			once := sync.OnceFunc(func() { close(all) })
			b.ReportAllocs()
			b.ResetTimer()
			stop := serve(b, q.redis,
				ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1}, Workers: 50, Servers: servers}}},
				map[string]Handler{"send": func(context.Context, Task) Verdict {
					if handled.Add(1) == int64(b.N) {
						once()
					}
					return Done()
				}})
			<-all
			b.StopTimer()
			stop()
		})
	}
}
