package e2e_test

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// killing kills the process that erases a person.
type killing struct {
	t    *testing.T
	db   *redisdb.DB
	line *testproxy.Proxy // to Redis; slow enough for kills to meet each place
	set  map[string]string
	p    *apptest.Process
	id   string // the erasure's
}

// step returns the place that is being visited, and whether the erasure has ended.
func (k *killing) step() (step int, done bool) {
	var r struct {
		Step  int
		State string
	}
	raw, err := k.db.Client().Get(k.t.Context(), "postroom:{0}:erasure:"+k.id).Bytes()
	if err != nil || json.Unmarshal(raw, &r) != nil {
		k.t.Fatalf("read the erasure: %s, %v", raw, err)
	}
	return r.Step, r.State == api.ErasureDone
}

// commands returns how many commands Redis has processed.
func (k *killing) commands() int {
	n, _ := strconv.Atoi(k.db.Client().InfoMap(k.t.Context(), "Stats").Item("Stats", "total_commands_processed"))
	return n
}

// at kills the process when the erasure has come to a place, and so many commands later. It reports whether
// the erasure was still under way.
func (k *killing) at(place, commands int) bool {
	k.t.Helper()
	var step int
	var done bool
	apptest.Eventually(k.t, "the erasure comes to its place", func() bool {
		step, done = k.step()
		return done || step >= place
	})
	from := k.commands()
	apptest.Eventually(k.t, "so many commands", func() bool {
		_, done = k.step()
		return done || k.commands() >= from+commands
	})
	k.p.Kill()
	k.line.Cut() // what the process had sent may have come; nothing else does
	if _, done = k.step(); done {
		return false
	}
	// as if its lease had ended
	k.db.Client().ZAddXX(k.t.Context(), "postroom:{0}:erasures", redis.Z{Score: 1, Member: k.id})
	k.p = apptest.Spawn(k.t, k.set)
	return true
}

// TestErasureSurvivesKills kills the process at random moments of an erasure. The process that continues
// counts everything, and leaves nothing about the person.
func TestErasureSurvivesKills(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // chaos, not secrets
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	server := testredis.Server(t, "--rdbcompression", "no") // DUMP shows the bytes as they are
	k := &killing{t: t, db: apptest.Connect(t, server.URL()), line: testproxy.New(t, "unix", server.Socket())}
	k.set = map[string]string{"redis.url": "redis://" + k.line.Addr(), "redis.partitions": "2",
		"smtp": relay.URL(), "from": "Shop <shop@example.com>", "data": t.TempDir(),
		"webhooks.allowPrivate": "true", "serviceUrl": "https://mail.example.com", "relays.allowPrivate": "true"}
	k.p = apptest.Spawn(t, k.set)
	const several, bob = 8, "bob@example.net"
	ctx, client := t.Context(), k.p.Client
	if _, err := api.CreateEndpoint.Do(ctx, client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	apptest.People(t, client, "weekly", apptest.Gone, bob)
	apptest.People(t, client, "daily", apptest.Gone)
	apptest.Draft(t, client, "first", "weekly", func(c *api.Campaign) { c.KeepLog = true })
	apptest.SendNow(t, client, "first")
	apptest.Reaches(t, client, "first", api.CampaignSent)
	later := time.Now().Add(time.Hour)
	for range several {
		apptest.SubmitTo(t, client, api.SubmitRequest{}, apptest.Gone)
		apptest.SubmitTo(t, client, api.SubmitRequest{}, apptest.Gone, bob)
		apptest.SubmitTo(t, client, api.SubmitRequest{SendAt: &later}, apptest.Gone)
	}
	relay.Wait(2 + 2*several)
	apptest.Finds(t, client, "to:"+apptest.Gone, 3*several)
	_, err := api.AddSuppressions.Do(ctx, client, api.SuppressionRequest{
		NewSuppression: api.NewSuppression{Email: apptest.Gone}})
	if err != nil {
		t.Fatal(err)
	}

	k.line.Delay(time.Millisecond)
	made, err := api.ErasePerson.Do(ctx, client, api.ErasureRequest{Email: apptest.Gone})
	if err != nil {
		t.Fatal(err)
	}
	k.id = made.ID
	places := make([]int, 3)
	for i := range places {
		places[i] = dice.IntN(7)
	}
	slices.Sort(places)
	for _, place := range places {
		commands := dice.IntN(60)
		if !k.at(place, commands) {
			break
		}
		t.Logf("killed %d commands after the beginning of place %d", commands, place)
	}
	k.line.Delay(0)
	if k.p.Ended == nil { // the erasure was over before the last kill
		k.p = apptest.Spawn(t, k.set)
	}
	apptest.Eventually(t, "the person is erased", func() bool { _, done := k.step(); return done })
	k.wasErased(several, bob)
}

// wasErased checks the receipt, and searches every byte.
func (k *killing) wasErased(several int, bob string) {
	k.t.Helper()
	receipt, err := api.GetErasure.Do(k.t.Context(), k.p.Client, k.id)
	if err != nil {
		k.t.Fatal(err)
	}
	got := receipt.Places
	for _, one := range []struct {
		place    string
		got, min int
	}{{"subscribers", got.Subscribers, 1}, {"lists", got.Lists, 2}, {"campaigns", got.Campaigns, 1},
		{"suppressions", got.Suppressions, 1}, {"outbox", got.Outbox, several},
		{"messages", got.Messages, 2 * several},
		{"documents", got.Documents, 3 * several}, {"events", got.Events, 1}, {"deliveries", got.Deliveries, 1}} {
		if one.got < one.min {
			k.t.Errorf("%s: %d are counted, want %d at least", one.place, one.got, one.min)
		}
	}
	left := slices.DeleteFunc(naming(k.t, k.db), func(key string) bool {
		return key == "postroom:{0}:audit" // somebody suppressed the person: see remaining in erasure.go
	})
	if len(left) > 0 {
		k.t.Errorf("Redis has the person in %v", left)
	}
	apptest.Eventually(k.t, "no file of the index has the person", func() bool {
		return !inFiles(filepath.Join(k.set["data"], "documents"))
	})
	if _, err := api.GetSubscriber.Do(k.t.Context(), k.p.Client, api.SubscriberAccount{}, bob); err != nil {
		k.t.Errorf("another subscriber: %v", err)
	}
	apptest.Finds(k.t, k.p.Client, "to:"+bob, several)
}
