package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// calls are the calls of a group, each of which takes a second.
type calls struct {
	mu  sync.Mutex
	all []string
	err error
}

func (c *calls) send(_ context.Context, key string, asks []int) ([]string, error) {
	c.mu.Lock()
	c.all = append(c.all, fmt.Sprint(key, asks))
	c.mu.Unlock()
	time.Sleep(time.Second)
	answers := make([]string, len(asks))
	for i, ask := range asks {
		answers[i] = fmt.Sprint(key, ask)
	}
	return answers, c.err
}

// TestCallsThatWaitGoTogether: the first goes at once, and those that come meanwhile go as the next one, in
// order. Those for another key are not concerned.
func TestCallsThatWaitGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		g := redisdb.NewGroup(c.send)
		began := time.Now()
		var all sync.WaitGroup
		ask := func(key string, n int, within time.Duration) {
			all.Go(func() {
				answer, err := g.Do(t.Context(), key, n)
				if want := fmt.Sprint(key, n); answer != want || err != nil {
					t.Errorf("%q, %v; want %q", answer, err, want)
				}
				if took := time.Since(began); took != within {
					t.Errorf("%d was answered after %s, want %s", n, took, within)
				}
			})
			synctest.Wait()
		}
		ask("a", 0, time.Second)
		for n := 1; n <= 64; n++ {
			ask("a", n, 2*time.Second)
		}
		ask("a", 65, 3*time.Second) // 64 go together at most
		ask("b", 66, time.Second)
		all.Wait()
		second := make([]int, 64)
		for n := range second {
			second[n] = n + 1
		}
		if want := []string{"a[0]", "b[66]", fmt.Sprint("a", second), "a[65]"}; !slices.Equal(c.all, want) {
			t.Errorf("calls %v, want %v", c.all, want)
		}
		began = time.Now()
		ask("a", 67, time.Second) // nothing is under way any more
		all.Wait()
	})
}

// TestGroupFailsTogether: an error is everyone's, and the next call is made anyway. A caller whose context
// has ended gets the answer of its call.
func TestGroupFailsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{err: errors.New("away")}
		g := redisdb.NewGroup(c.send)
		ended, end := context.WithCancel(t.Context())
		end()
		var all sync.WaitGroup
		for n := range 3 {
			all.Go(func() {
				if _, err := g.Do(ended, "a", n); err != c.err { //nolint:errorlint // the very one
					t.Errorf("%d: %v", n, err)
				}
			})
		}
		all.Wait()
		if len(c.all) != 2 {
			t.Errorf("calls %v", c.all)
		}
	})
}
