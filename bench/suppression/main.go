// Suppression measures the suppression list: the memory of an entry in Redis, the rate of adding and of an
// export, and the time of a look-up of a message's recipients, beside a bare pipeline of as many HGETs
// through the same client.
//
// It starts its own redis-server, without a file: the cost of the disk is the same for all of Postroom's
// keys. Addresses look like real ones (22 bytes on average, a few hundred domains). Half of the entries are
// unsubscriptions from a hundred lists, a quarter hold for one of fifty accounts, the others for the
// instance. With -evidence a part has evidence, as entries of deliveries have and imported ones have not.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

type plan struct {
	entries, batch, evidence, lookups int
	seed                              uint64
}

func main() {
	var p plan
	flag.IntVar(&p.entries, "entries", 1_000_000, "entries to add")
	flag.IntVar(&p.batch, "batch", 2000, "entries added with one round trip")
	flag.IntVar(&p.evidence, "evidence", 0,
		"percent of entries with evidence: the id of a message and a reply of 70 bytes")
	flag.IntVar(&p.lookups, "lookups", 20_000, "look-ups of each kind")
	flag.Uint64Var(&p.seed, "seed", 1, "of the random addresses")
	rig.Main("suppression", func(ctx context.Context) error { return run(ctx, p) })
}

// house is a redis-server and the suppression list in it.
type house struct {
	plan
	rig.Rig
	store *suppression.Store
}

func run(ctx context.Context, p plan) error {
	h := &house{plan: p}
	defer h.Close()
	// It keeps everything in memory.
	if err := h.StartRedis(ctx, "", "suppression-", "--appendonly", "no"); err != nil {
		return err
	}
	db, err := redisdb.Open(ctx, redisdb.Options{URL: "unix://" + h.Socket})
	if err != nil {
		return err
	}
	h.OnClose(func() { _ = db.Close() })
	if h.store, err = suppression.New(db, suppression.Options{}); err != nil {
		return err
	}
	fmt.Printf("machine: %d processors, %s; %d entries, %d %% with evidence, seed %d\n", runtime.NumCPU(),
		runtime.Version(), p.entries, p.evidence, p.seed)
	for _, step := range []func(context.Context) error{h.fill, h.look, h.walk} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// entry is the nth entry, always the same for a seed.
func (p plan) entry(n int) suppression.Entry {
	r := rand.New(rand.NewPCG(p.seed, uint64(n)))
	e := suppression.Entry{Address: p.address(n), Reason: suppression.HardBounce, Source: "csv"}
	switch n % 4 {
	case 0, 1:
		e.Reason, e.List = suppression.Unsubscribe, "list-"+strconv.Itoa(r.IntN(100))
	case 2:
		e.Reason, e.Account = suppression.Unsubscribe, "shop-"+strconv.Itoa(r.IntN(50))
	}
	if r.IntN(100) < p.evidence {
		e.Source, e.MessageID = "smtp", fmt.Sprintf("01JD%022d", n)
		e.Response = "550 5.1.1 <" + e.Address + ">: Recipient address rejected: User unknown"
	}
	return e
}

// address is the address of the nth entry.
func (p plan) address(n int) string {
	return "ann." + strconv.FormatUint(uint64(n)*2654435761+p.seed, 36) + "@mail" + strconv.Itoa(n%300) +
		".example"
}

// fill adds all entries and prints their memory.
func (h *house) fill(ctx context.Context) error {
	before, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	began, octets := time.Now(), 0
	for from := 0; from < h.entries; from += h.batch {
		batch := make([]suppression.Entry, 0, h.batch)
		for n := from; n < min(from+h.batch, h.entries); n++ {
			batch = append(batch, h.entry(n))
			octets += len(batch[len(batch)-1].Address)
		}
		if added, err := h.store.Add(ctx, batch...); err != nil || added != len(batch) {
			return fmt.Errorf("add: %d of %d are new: %w", added, len(batch), err)
		}
	}
	took := time.Since(began)
	after, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	keys, err := h.DB.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	each := float64(after-before) / float64(h.entries)
	want := "below 100"
	if h.evidence > 0 {
		want = ""
	}
	rig.Title("memory of Redis")
	rig.Row("bytes an entry, all keys included", fmt.Sprintf("%.0f", each), want, each < 100)
	rig.Tell("  of these its address, on average", fmt.Sprintf("%.0f", float64(octets)/float64(h.entries)))
	rig.Tell("in all", fmt.Sprintf("%.0f MB in %d keys", float64(after-before)/1e6, keys))
	rig.Title("adding")
	rig.Tell("entries a second, one after the other in batches",
		fmt.Sprintf("%.0f", float64(h.entries)/took.Seconds()))
	return nil
}

// look checks recipients, half of whom have entries, beside bare reads of as many hashes.
func (h *house) look(ctx context.Context) error {
	rig.Title("look-ups: median, 99th percentile")
	if err := h.DB.HSet(ctx, "bare", "field", "value").Err(); err != nil {
		return err
	}
	for _, recipients := range []int{1, 50} {
		times := max(200, h.lookups/recipients)
		asked, err := measure(times, func(i int) error {
			q := suppression.Question{Account: "shop-7", List: "list-7", Bulk: true}
			for r := range recipients {
				q.Addresses = append(q.Addresses, h.address((i*recipients+r)*7919%(2*h.entries)))
			}
			_, err := h.store.Check(ctx, q)
			return err
		})
		if err != nil {
			return err
		}
		bare, err := measure(times, func(int) error { return bareReads(ctx, h.DB, 2*recipients) })
		if err != nil {
			return err
		}
		rig.Row(fmt.Sprintf("a message to %d, its account, its list, the instance and domains", recipients),
			asked.String(), "below 1 ms", asked.P50 < time.Millisecond)
		rig.Tell(fmt.Sprintf("  a pipeline of %d HGETs", 2*recipients), bare.String())
		rig.Tell("  times as long", fmt.Sprintf("%.2f, %.2f", ratio(asked.P50, bare.P50),
			ratio(asked.P99, bare.P99)))
	}
	return nil
}

func bareReads(ctx context.Context, client *redis.Client, n int) error {
	pipe := client.Pipeline()
	for range n {
		pipe.HGet(ctx, "bare", "field")
	}
	_, err := pipe.Exec(ctx)
	return err
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func measure(times int, do func(i int) error) (rig.Quantiles, error) {
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if err := do(i); err != nil {
			return rig.Quantiles{}, err
		}
		took[i] = time.Since(began)
	}
	return rig.QuantilesOf(took), nil
}

// walk reads everything, as an export does, and a page of a list.
func (h *house) walk(ctx context.Context) error {
	rig.Title("lists")
	pages, err := measure(200, func(int) error {
		_, err := h.store.List(ctx, suppression.Filter{List: "list-7"}, "", 50)
		return err
	})
	if err != nil {
		return err
	}
	rig.Tell("a page of 50 of one of the hundred lists: median, 99th percentile", pages.String())
	began, exported := time.Now(), &lines{}
	if err := h.store.Export(ctx, "", api.SuppressionQuery{}, exported); err != nil &&
		!errors.Is(err, errEnough) {
		return err
	}
	rig.Tell("entries a second of an export",
		fmt.Sprintf("%.0f", float64(exported.n)/time.Since(began).Seconds()))
	return nil
}

// exportLines are enough of an export to know its speed.
const exportLines = 1_000_000

var errEnough = errors.New("enough")

// lines counts lines, and ends an export that has enough of them.
type lines struct{ n int }

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	if l.n += bytes.Count(p, []byte{'\n'}); l.n > exportLines {
		return 0, errEnough
	}
	return len(p), nil
}
