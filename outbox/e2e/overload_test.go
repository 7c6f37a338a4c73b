package e2e_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestOverloadIsRefusedBeforeRedisIsFull has clients submit large messages faster than they are delivered, to
// a Redis with little memory. They get 503 with Retry-After before Redis is full. Every accepted message and
// webhook is delivered, Redis is never full, and afterwards mail is accepted again.
func TestOverloadIsRefusedBeforeRedisIsFull(t *testing.T) {
	const (
		maxMemory = 64 << 20
		size      = 512 << 10
		clients   = 6
		submits   = 160
	)
	server := testredis.Server(t, "--maxmemory", fmt.Sprint(maxMemory), "--maxmemory-policy", "noeviction")
	relay := testsmtp.Start(t, testsmtp.Options{Discard: true})
	hooks := apptest.Receive(t)
	a := apptest.Run(t, map[string]string{
		"redis.url": server.URL(), "smtp": relay.URL(), "from": "shop@example.com", "webhooks.allowPrivate": "true",
	})
	client := api.NewClient(a.URL(), a.Token(), &http.Client{Timeout: time.Minute})
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(true)}, "submit"); err != nil {
		t.Fatal(err)
	}
	flood := flood{client: client, content: make([]byte, size)}
	if _, err := rand.Read(flood.content); err != nil { // incompressible content
		t.Fatal(err)
	}
	flood.run(t, clients, submits)
	db := apptest.Connect(t, server.URL())
	t.Logf("%d accepted, %v", len(flood.accepted), flood.refused)
	if flood.refused["OutboxFull"] == 0 || len(flood.accepted) < maxMemory/size/5 {
		t.Errorf("%d messages were accepted, and refused: %v", len(flood.accepted), flood.refused)
	}
	// what a slow disk and slow clients have not taken yet is in Redis' memory, too
	apptest.Eventually(t, "Redis uses less than 85 % of its memory", func() bool {
		memory, err := db.MemoryShare(t.Context())
		return err == nil && memory < 0.85
	})

	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(false)}, "submit"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "all that was accepted is delivered",
		func() bool { return relay.Count() >= len(flood.accepted) })
	apptest.Eventually(t, "each has its last webhook", func() bool {
		sent := told(hooks, event.MessageSent)
		return !slices.ContainsFunc(flood.accepted, func(id string) bool { return !slices.Contains(sent, id) })
	})
	// submits whose answer took too long may have been accepted
	if extra := relay.Count() - len(flood.accepted); extra > flood.refused["RedisAway"]+
		flood.refused["unanswered"] {
		t.Errorf("%d messages accepted, %d delivered; refused were %v", len(flood.accepted), relay.Count(),
			flood.refused)
	}
	apptest.Eventually(t, "there is room again", func() bool {
		_, err := api.Submit.Do(t.Context(), client, flood.request(submits))
		return err == nil
	})
}

// flood is a number of concurrent submits and their results.
type flood struct {
	client  *api.Client
	content []byte

	mu       sync.Mutex
	accepted []string
	refused  map[string]int // by code
}

func (f *flood) run(t *testing.T, clients, n int) {
	t.Helper()
	f.refused = map[string]int{}
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := c; i < n; i += clients {
				answer, err := api.Submit.Do(t.Context(), f.client, f.request(i))
				f.note(t, answer, err)
			}
		})
	}
	group.Wait()
}

func (f *flood) note(t *testing.T, answer api.SubmitAnswer, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failure *api.Failure
	switch {
	case err == nil:
		f.accepted = append(f.accepted, answer.QueueID)
	case !errors.As(err, &failure):
		f.refused["unanswered"]++ // a busy host; the message may have been accepted
	case failure.Problem.StatusCode != http.StatusServiceUnavailable || failure.RetryAfter <= 0:
		t.Errorf("submit: %v, to be repeated after %s", err, failure.RetryAfter)
	default:
		f.refused[failure.Problem.Code]++
	}
}

func (f *flood) request(i int) api.SubmitRequest {
	return api.SubmitRequest{
		To: api.Addresses{{Address: "ann" + strconv.Itoa(i) + "@example.net"}}, Subject: "large", Text: "x",
		Attachments: []api.Attachment{{Filename: "x.bin", Content: f.content}},
	}
}

// TestTheEmbeddedRedisHasALimit: a share of the memory that there is, a size, or none.
func TestTheEmbeddedRedisHasALimit(t *testing.T) {
	t.Parallel()
	all, err := redisdb.MachineMemory()
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]int64{"": all / 2, "10%": all / 10, "300MB": 300_000_000, "0": 0} {
		set := map[string]string{"redis.maxMemory": setting}
		if setting == "" {
			delete(set, "redis.maxMemory")
		}
		apptest.Run(t, set)
		db := apptest.Connect(t, redisdb.Running(t.Context(), set["data"]))
		d, err := db.Durability(t.Context())
		if off := d.MaxMemory - want; err != nil || off < -10 || off > 10 {
			t.Errorf("redis.maxMemory %q: %d bytes, want %d, %v", setting, d.MaxMemory, want, err)
		}
	}
}

// told returns the messages that webhooks of a type are about.
func told(r *apptest.Receiver, kind event.Type) []string {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	var ids []string
	for _, h := range r.Got {
		if h.Event == kind && !slices.Contains(ids, h.Data.QueueID) {
			ids = append(ids, h.Data.QueueID)
		}
	}
	return ids
}
