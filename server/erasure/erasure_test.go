package erasure_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/server/erasure"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

const ann = "ann.quux@example.com"

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// process is one of several on a Redis.
func process(t *testing.T, db *redisdb.DB, places ...erasure.Store) *erasure.Erasures {
	t.Helper()
	ring, err := seal.New([]byte("a secret for tests of erasures, long"))
	if err != nil {
		t.Fatal(err)
	}
	stops, err := suppression.New(db, suppression.Options{Ring: ring})
	if err != nil {
		t.Fatal(err)
	}
	e, err := erasure.New(erasure.Parts{DB: db, Ring: ring, Digest: stops.Digest, Stores: places,
		Remaining: func(string) []string { return []string{"backups"} },
		Account: func(_ context.Context, account string) error {
			if account == "none" {
				return fault.New(fault.NotFound, "AccountNotFound", "no account")
			}
			return nil
		}}, erasure.Options{Lease: 300 * time.Millisecond, Every: 5 * time.Millisecond,
		Again: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// run runs a process until the test or stop ends it.
func run(t *testing.T, e *erasure.Erasures) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = e.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func has(n int, place string) erasure.Store {
	return erasure.Store{Name: place, Erase: func(_ context.Context, _ outbox.Whom, tally outbox.Tally) error {
		return tally(place, n)
	}}
}

func start(t *testing.T, e *erasure.Erasures, bound string, in api.ErasureRequest) api.Erasure {
	t.Helper()
	got, err := e.Start(t.Context(), bound, in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func isDone(t *testing.T, e *erasure.Erasures, id string) func() bool {
	return func() bool {
		got, err := e.Get(t.Context(), "", id)
		return err == nil && got.State == api.ErasureDone
	}
}

func TestErasureGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	var visits atomic.Int32
	inFirst := make(chan struct{})
	first := process(t, db, has(2, "messages"), erasure.Store{Name: "documents",
		Erase: func(ctx context.Context, _ outbox.Whom, tally outbox.Tally) error {
			if err := tally("documents", 1); err != nil {
				return err
			}
			close(inFirst)
			<-ctx.Done() // dies in the middle
			return ctx.Err()
		}})
	second := process(t, db, has(2, "messages"), erasure.Store{Name: "documents",
		Erase: func(_ context.Context, w outbox.Whom, tally outbox.Tally) error {
			visits.Add(1)
			if !w.Is("Ann.Quux@example.com") {
				t.Errorf("erases %s", w.Address())
			}
			return tally("documents", 3)
		}})
	stop := run(t, first)
	made := start(t, first, "", api.ErasureRequest{Email: " Ann.Quux@EXAMPLE.com"})
	<-inFirst
	for range 2 {
		again := start(t, second, "", api.ErasureRequest{Email: ann})
		if again.ID != made.ID || again.State != api.ErasureRunning || again.Place != "documents" {
			t.Errorf("again: %+v", again)
		}
	}
	if other := start(t, second, "shop", api.ErasureRequest{Email: ann}); other.ID == made.ID {
		t.Error("the same erasure for another account")
	}
	stop()
	run(t, second)
	eventually(t, "the other process ends it", isDone(t, second, made.ID))
	got, err := second.Get(t.Context(), "", made.ID)
	if err != nil || got.Places.Messages != 2 || got.Places.Documents != 4 || got.Ended == nil ||
		got.Place != "" ||
		!slices.Equal(got.Remaining, []string{"backups"}) || visits.Load() == 0 {
		t.Errorf("receipt %+v, %v", got, err)
	}
	if next := start(t, second, "", api.ErasureRequest{Email: ann}); next.ID == made.ID ||
		next.Person != got.Person {
		t.Errorf("after the end: %+v", next)
	}
	eventually(t, "all end", func() bool {
		return db.Client().ZCard(t.Context(),
			"postroom:{0}:erasures").Val() == 0
	})
	if err := db.Scan(t.Context(), "*", func(keys []string) error {
		for _, key := range keys {
			if dump := db.Client().Dump(t.Context(), key).Val(); strings.Contains(key+dump, "quux") ||
				strings.Contains(key, "erasure-of") {
				t.Errorf("%s is left", key)
			}
			if strings.Contains(key, ":erasure:") && db.Client().TTL(t.Context(), key).Val() < 24*time.Hour*1000 {
				t.Errorf("%s does not expire as it should", key)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A process that is cut off for longer than its lease does not write over the other one's receipt.
func TestKilledProcessLosesItsLease(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	stuck, release := make(chan struct{}), make(chan struct{})
	first := process(t, db, erasure.Store{Name: "messages",
		Erase: func(_ context.Context, _ outbox.Whom, tally outbox.Tally) error {
			close(stuck)
			<-release
			return tally("messages", 100)
		}})
	run(t, first)
	made := start(t, first, "", api.ErasureRequest{Email: ann})
	<-stuck
	// as if the lease had ended while the process stood still
	db.Client().ZAdd(t.Context(), "postroom:{0}:erasures", redis.Z{Score: 1, Member: made.ID})
	second := process(t, db, has(1, "messages"))
	run(t, second)
	eventually(t, "the second ends it", isDone(t, second, made.ID))
	close(release)
	if got, err := second.Get(t.Context(), "", made.ID); err != nil || got.Places.Messages != 1 {
		t.Errorf("receipt %+v, %v", got, err)
	}
}

func TestPlacesThatFailAreTriedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	e := process(t, testredis.New(t), erasure.Store{Name: "none", Here: func(context.Context) error {
		return fault.New(fault.NotFound, "SearchOff", "none")
	}, Erase: func(context.Context, outbox.Whom, outbox.Tally) error { panic("it is not there") }},
		erasure.Store{Name: "messages", Erase: func(context.Context, outbox.Whom, outbox.Tally) error {
			if tries.Add(1) < 3 {
				return errors.New("cannot read <" + ann + ">")
			}
			return nil
		}})
	made := start(t, e, "", api.ErasureRequest{Email: ann})
	if made.State != api.ErasureWaiting || len(made.Remaining) == 0 || made.Person == "" {
		t.Errorf("answered %+v", made)
	}
	run(t, e)
	eventually(t, "it says why", func() bool {
		got, err := e.Get(t.Context(), "", made.ID)
		return err == nil && (got.State == api.ErasureDone || got.Trouble == "cannot read <erased@erased.invalid>")
	})
	eventually(t, "it ends", isDone(t, e, made.ID))
}

func TestErasuresAreBoundToAccounts(t *testing.T) {
	t.Parallel()
	e := process(t, testredis.New(t), erasure.Store{Name: "subscribers",
		Export: func(_ context.Context, w outbox.Whom, into *api.PersonalData) error {
			into.Suppressions = append(into.Suppressions, api.Suppression{Email: w.Address(),
				SuppressionScope: api.SuppressionScope{Account: w.Account}})
			return nil
		}})
	ctx := t.Context()
	mine := start(t, e, "shop", api.ErasureRequest{Email: ann})
	all := start(t, e, "", api.ErasureRequest{Email: ann})
	if mine.Account != "shop" || all.Account != "" {
		t.Errorf("accounts %q, %q", mine.Account, all.Account)
	}
	for _, id := range []string{all.ID, "unknown"} {
		if _, err := e.Get(ctx, "shop", id); fault.CodeOf(err) != "ErasureNotFound" {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := e.Get(ctx, "shop", mine.ID); err != nil {
		t.Error(err)
	}
	if _, err := e.Start(ctx, "shop", api.ErasureRequest{Email: ann, Account: "other"}); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("another account: %v", err)
	}
	if _, err := e.Start(ctx, "", api.ErasureRequest{Email: ann, Account: "none"}); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("an unknown account: %v", err)
	}
	if _, err := e.Start(ctx, "", api.ErasureRequest{Email: "nobody"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no address: %v", err)
	}
	data, err := e.Export(ctx, "shop", api.ErasureRequest{Email: "Ann.Quux@example.com"})
	if err != nil || data.Email != ann || len(data.Suppressions) != 1 || data.Suppressions[0].Account != "shop" {
		t.Errorf("exported %+v, %v", data, err)
	}
}
