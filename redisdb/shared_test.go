package redisdb_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

var echoScript = redisdb.NewScript("echo", `redis.call('INCR', KEYS[1]) return ARGV[1]`)

func TestSharedCallsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	key := redisdb.Key(0, "calls")
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			for j := range 20 {
				want := fmt.Sprintf("%d/%d", i, j)
				if j == 10 && i%50 == 0 {
					db.Client().ScriptFlush(t.Context()) // the next ones have to send it again
				}
				got, err := echoScript.Run(t.Context(), db.Shared(), []string{key}, want).Text()
				if got != want || err != nil {
					t.Errorf("answer %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	callers.Wait()
	if n, err := db.Client().Get(t.Context(), key).Int(); n != 4000 || err != nil {
		t.Errorf("%d calls ran, %v, want 4000", n, err)
	}
}
