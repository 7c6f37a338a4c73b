// Audience measures subscribers: the rate of an import, of the same import again, of an export and of the
// search for the people of a segment, the memory of a subscriber and of a membership in Redis, the slowest
// pages, and the processor time of both processes.
//
// It starts its own redis-server, without a file: the cost of the disk is the same for all of Postroom's
// keys. A subscriber has an address of 22 bytes on average, a name, five attributes of 60 bytes together, and
// one list.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox/suppression"
)

type plan struct {
	people  int
	profile string
}

func main() {
	var p plan
	flag.IntVar(&p.people, "people", 1_000_000, "subscribers to import")
	flag.StringVar(&p.profile, "profile", "", "file for the profile of the first import's processor time")
	rig.Main("audience", func(ctx context.Context) error { return run(ctx, p) })
}

// house is a redis-server and the subscribers in it.
type house struct {
	plan
	rig.Rig
	of     *audience.Subscribers
	mailed mailed
}

func run(ctx context.Context, p plan) error {
	h := &house{plan: p}
	defer h.Close()
	if err := h.StartRedis(ctx, "", "audience-", "--appendonly", "no"); err != nil {
		return err
	}
	db, err := redisdb.Open(ctx, redisdb.Options{URL: "unix://" + h.Socket})
	if err != nil {
		return err
	}
	h.OnClose(func() { _ = db.Close() })
	suppressions, err := suppression.New(db, suppression.Options{})
	if err != nil {
		return err
	}
	h.mailed = mailed{sendlog.New(db, 0)}
	h.of, err = audience.New(audience.Parts{DB: db, Suppressions: suppressions,
		Account:   func(context.Context, string) error { return nil },
		Campaigns: func() audience.Campaigns { return h.mailed }}, audience.Options{})
	if err != nil {
		return err
	}
	if _, err := h.of.Lists.Create(ctx, "", api.List{ListID: "weekly", Name: "Weekly"}); err != nil {
		return err
	}
	fmt.Printf("machine: %d processors, %s; %d subscribers\n", runtime.NumCPU(), runtime.Version(), p.people)
	for _, step := range []func(context.Context) error{h.first, h.again, h.export, h.choose, h.scatter, h.look} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// file is a CSV file of subscribers, which is made while it is read.
type file struct {
	n, of int
	rest  []byte
}

const headings = "email,name,attributes.city,attributes.seats:number,attributes.plan,attributes.since:date," +
	"attributes.vip:bool\n"

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if f.n == 0 && f.rest == nil {
		f.rest = []byte(headings)
	}
	for len(f.rest) < len(p) && f.n < f.of {
		f.rest = append(address(f.rest, f.n), ",Ann Smith,Vienna,"...)
		f.rest = strconv.AppendInt(f.rest, int64(f.n%50), 10)
		f.rest = append(f.rest, ",pro,2029-01-02,yes\n"...)
		f.n++
	}
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// address appends the address of subscriber n, which has 22 bytes on average.
func address(to []byte, n int) []byte {
	to = append(to, "ann."...)
	to = strconv.AppendUint(to, uint64(n)*2654435761, 36)
	to = append(to, "@mail"...)
	to = strconv.AppendInt(to, int64(n%300), 10)
	return append(to, ".example"...)
}

// costs are what a step takes.
type costs struct {
	began       time.Time
	mine, redis time.Duration
}

func (h *house) begin() costs { return costs{time.Now(), rig.Self().CPU(), h.Redis.CPU()} }

// tell prints the costs of a step for n subscribers.
func (h *house) tell(c costs, what, want string, n int, least float64) {
	took := time.Since(c.began)
	rate := float64(n) / took.Seconds()
	each := func(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d.Microseconds())/float64(n)) }
	rig.Title(what)
	rig.Row("rows a second", fmt.Sprintf("%.0f", rate), want, rate >= least)
	rig.Tell("processor time of this process, a row", each(rig.Self().CPU()-c.mine))
	rig.Tell("  of Redis", each(h.Redis.CPU()-c.redis))
}

func (h *house) bring(ctx context.Context) (api.SubscriberImport, error) {
	return h.of.Imports.Run(ctx, "", &file{of: h.people}, api.SubscriberImportOptions{ListID: []string{"weekly"},
		State: "subscribed", Consent: "I want news"})
}

// first imports new subscribers.
func (h *house) first(ctx context.Context) error {
	before, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	if h.profile != "" {
		out, err := os.Create(h.profile)
		if err != nil {
			return err
		}
		defer out.Close() //nolint:errcheck // for people only
		if err := pprof.StartCPUProfile(out); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	c := h.begin()
	got, err := h.bring(ctx)
	if err != nil || got.Added != h.people {
		return fmt.Errorf("import: %+v: %w", got, err)
	}
	h.tell(c, "an import of new subscribers", "at least 30000", h.people, 30_000)
	after, err := h.Info(ctx, "Memory", "used_memory_dataset")
	if err != nil {
		return err
	}
	each := float64(after-before) / float64(h.people)
	rig.Row("bytes a subscriber in Redis, all keys included", fmt.Sprintf("%.0f", each), "at most 220",
		each <= 220)
	rig.Tell("bytes a subscriber in the file", fmt.Sprintf("%.0f", float64(got.Bytes)/float64(h.people)))
	return nil
}

// again imports the same file: nothing changes.
func (h *house) again(ctx context.Context) error {
	c := h.begin()
	got, err := h.bring(ctx)
	if err != nil || got.Known != h.people {
		return fmt.Errorf("import again: %+v: %w", got, err)
	}
	h.tell(c, "the same file again", "", h.people, 0)
	return nil
}

// export exports all.
func (h *house) export(ctx context.Context) error {
	for _, format := range []string{"csv", "jsonl"} {
		c := h.begin()
		err := h.of.Export(ctx, "", api.SubscriberExportQuery{Format: format}, io.Discard)
		if err != nil {
			return err
		}
		h.tell(c, "an export as "+format, "", h.people, 0)
	}
	return nil
}
