package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestMasterLostUnderLoad kills the master of a Sentinel set while mail is submitted and delivered. Postroom
// waits for both replicas, so whichever the Sentinels reach on a busy machine, the next master has all that
// was accepted and all that was sent. Mail is accepted again once the killed one is its replica.
func TestMasterLostUnderLoad(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinel(t, testredis.Topology{Replicas: 2, Args: []string{"--min-replicas-to-write", "1"}})
	relay := apptest.SlowRelay(t, 5*time.Millisecond)
	set := apptest.SettingsFor(t, g.URL(), relay)
	set["redis.waitReplicas"] = "2"
	one, other := apptest.SpawnAs(t, set, "api"), apptest.SpawnAs(t, set, "all")
	clients := newCrowd(one.Client, other.Client)
	clients.start(t)
	relay.Wait(100)

	g.Masters[0].Kill()
	lost := time.Now()
	apptest.Eventually(t, "submits to be refused", func() bool { return clients.refusals() > 0 })
	apptest.Eventually(t, "a replica to be the master", func() bool {
		return slices.ContainsFunc(g.Replicas, func(p *testredis.Process) bool {
			role, err := p.Client(t).Do(t.Context(), "role").Slice()
			return err == nil && role[0] == "master"
		})
	})
	g.Masters[0].Restart(t)
	before := clients.successes()
	apptest.Eventually(t, "submits to be taken again", func() bool { return clients.successes() > before+100 })
	t.Logf("100 more messages were accepted %s after the master was lost; %d submits were refused",
		time.Since(lost).Round(time.Millisecond), clients.refusals())
	accepted := clients.stop()

	apptest.Empty(t, one.Client)
	db := apptest.Connect(t, g.URL())
	if db.Mode() != redisdb.Sentinel {
		t.Errorf("mode %s", db.Mode())
	}
	take(t, relay, db).check(t, accepted)
	tellsReplicas(t, one, 2)
}

// tellsReplicas waits until /ready reports the wanted number of replicas.
func tellsReplicas(t *testing.T, p *apptest.Process, want int) {
	t.Helper()
	apptest.Eventually(t, "ready says what the new master gives", func() bool {
		ready, err := api.GetReady.Do(t.Context(), p.Client)
		return err == nil && ready.Ready && ready.Durability.Mode == "sentinel" && ready.Durability.Replicas == want
	})
}

// crowd submits to several APIs until it is stopped. Each message has its own key and is repeated until it is
// accepted.
type crowd struct {
	apis []*api.Client
	end  context.CancelFunc
	all  sync.WaitGroup

	mu       sync.Mutex
	accepted []string
	refused  int
}

func newCrowd(apis ...*api.Client) *crowd { return &crowd{apis: apis} }

func (c *crowd) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c.end = cancel
	t.Cleanup(func() { c.stop() })
	for n := range 8 {
		c.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.submit(ctx, t, fmt.Sprintf("ann%d.%d@example.net", n, i), c.apis[i%len(c.apis)], i%2 == 0)
			}
		})
	}
}

// submit repeats a message with a key until it is accepted: with a key, a repetition is harmless. Without
// one, it stops at a refusal.
func (c *crowd) submit(ctx context.Context, t *testing.T, to string, client *api.Client, keyed bool) {
	req := api.SubmitRequest{To: api.Addresses{{Address: to}}, Text: "x"}
	if keyed {
		req.IdempotencyKey = to
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := api.Submit.Do(t.Context(), client, req)
		c.mu.Lock()
		if err == nil {
			c.accepted = append(c.accepted, to)
			c.mu.Unlock()
			return
		}
		c.refused++
		c.mu.Unlock()
		if failure, ok := errors.AsType[*api.Failure](err); !ok ||
			failure.Problem.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("submit: %v, want 503", err)
			return
		}
		if !redisdb.Pause(ctx, 10*time.Millisecond) || !keyed || time.Now().After(deadline) {
			return
		}
	}
}

func (c *crowd) successes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.accepted)
}

func (c *crowd) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// stop ends all submits and returns the recipients of the accepted messages.
func (c *crowd) stop() []string {
	c.end()
	c.all.Wait()
	return c.accepted
}

// TestReplicasGoneIsSaid: a master that has lost its replicas accepts nothing, and reports why.
func TestReplicasGoneIsSaid(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	set := apptest.SettingsFor(t, g.URL(), testsmtp.Start(t, testsmtp.Options{}))
	set["redis.waitReplicas"] = "1"
	p := apptest.SpawnAs(t, set, "all")
	apptest.Eventually(t, "it is ready",
		func() bool { r, err := api.GetReady.Do(t.Context(), p.Client); return err == nil && r.Ready })
	g.Replicas[0].Kill()
	apptest.Eventually(t, "it is not ready, and says why", func() bool {
		status, body := apptest.Look(t, p.URL+"/ready", "")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "redis.waitReplicas is 1")
	})
	g.Replicas[0].Restart(t)
	apptest.Eventually(t, "it is ready again",
		func() bool { r, err := api.GetReady.Do(t.Context(), p.Client); return err == nil && r.Ready })
}
