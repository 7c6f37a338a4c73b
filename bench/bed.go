package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// slowness is how long the slow relay takes for a message, as one that writes it to disk before it answers.
const slowness = 10 * time.Millisecond

// slowRelay is the word in a row's settings that asks for that relay. Postroom doesn't get it.
const slowRelay = "bench.slowRelay"

// often is the interval at which conditions are checked.
const often = 2 * time.Millisecond

// bed is a Postroom with its Redis and a relay.
type bed struct {
	rig.Rig
	relay    *testsmtp.Server
	postroom *rig.Process
	client   *api.Client
	profile  string // the beginning of the names of the profiles; empty: there are none
}

// openBed starts the Postroom of a program, this one if that is empty, or in this process for a profile.
func openBed(ctx context.Context, program, profile string, r row) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	set := maps.Clone(r.settings)
	if set == nil {
		set = map[string]string{}
	}
	var delay time.Duration
	if set[slowRelay] != "" {
		delay = slowness
		delete(set, slowRelay)
	}
	if b.relay, err = sink(delay); err != nil {
		return nil, err
	}
	b.OnClose(b.relay.Close)
	if err := b.StartRedis(ctx, "", "bench-", "--appendfsync", "everysec"); err != nil {
		return nil, err
	}
	maps.Copy(set, map[string]string{"redis.url": "unix://" + b.Socket, "token": rig.Token, "secret": rig.Secret,
		"smtp": b.relay.URL(), "from": "Example Shop <shop@example.com>", "data": filepath.Join(b.Dir, "data"),
		"http.listen": "127.0.0.1:0", "log.level": "error"})
	url := ""
	if profile != "" {
		b.profile = filepath.Join(profile, r.name)
		url, err = b.within(ctx, set)
	} else {
		url, err = b.start(program, set)
	}
	if err != nil {
		return nil, err
	}
	b.client = rig.ClientWith(url, rig.Token, clients, time.Minute)
	return b, nil
}

// start starts a program's Postroom, or this program's if it is empty.
func (b *bed) start(program string, set map[string]string) (url string, err error) {
	p, out, err := rig.Start(rig.CommandOf(program, set), filepath.Join(b.Dir, "postroom.log"))
	if err != nil {
		return "", err
	}
	b.OnClose(p.Stop)
	b.postroom = p
	return rig.Address(out)
}

func (b *bed) within(ctx context.Context, set map[string]string) (url string, err error) {
	a, stop, err := rig.Within(ctx, set)
	if err != nil {
		return "", err
	}
	b.OnClose(func() { _ = stop() })
	b.postroom = rig.Self()
	return a.URL(), nil
}

// reading is what a measurement subtracts.
type reading struct {
	postroom, redis   time.Duration
	commands, scripts int
}

// read reads the processor times, and counts what Redis ran: commands within scripts count, too.
func (b *bed) read(ctx context.Context) (r reading, err error) {
	stats, err := b.DB.InfoMap(ctx, "commandstats").Result()
	if err != nil {
		return r, err
	}
	for name, line := range stats["Commandstats"] {
		calls, _, _ := strings.Cut(strings.TrimPrefix(line, "calls="), ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			return r, fmt.Errorf("commandstats of Redis: %q", line)
		}
		r.commands += n
		if name == "cmdstat_eval" || name == "cmdstat_evalsha" {
			r.scripts += n
		}
	}
	r.postroom, r.redis = b.postroom.CPU(), b.Redis.CPU()
	return r, nil
}

// each measures what do costs for each of n messages, until Postroom has nothing left to do about them. The
// rate is do's.
func (b *bed) each(ctx context.Context, n int, do func() error) (values, error) {
	var took time.Duration
	got, err := b.costs(ctx, float64(n), func() error {
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		took = time.Since(began)
		return b.settled(ctx)
	})
	return append(values{{rate, float64(n) / took.Seconds()}}, got...), err
}

// costs measures what is used while do runs, for each of n.
func (b *bed) costs(ctx context.Context, n float64, do func() error) (values, error) {
	before, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	stop, err := b.record()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	if err := stop(); err != nil {
		return nil, err
	}
	after, err := b.read(ctx)
	return values{
		{"Postroom, µs", float64((after.postroom - before.postroom).Microseconds()) / n},
		{"Redis, µs", float64((after.redis - before.redis).Microseconds()) / n},
		{"Redis commands", float64(after.commands-before.commands) / n},
		{"scripts", float64(after.scripts-before.scripts) / n},
	}, err
}

// record writes the profiles of what runs until stop is called, if they are wanted.
func (b *bed) record() (stop func() error, err error) {
	if b.profile == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(b.profile + ".cpu")
	if err == nil {
		err = pprof.StartCPUProfile(cpu)
	}
	return func() error {
		pprof.StopCPUProfile()
		runtime.GC() // so that the other profile is complete
		allocs, err := os.Create(b.profile + ".allocs")
		if err == nil {
			err = pprof.Lookup("allocs").WriteTo(allocs, 0)
		}
		return cmp.Or(err, allocs.Close(), cpu.Close())
	}, err
}

// settled waits until all readers of the event stream have read it, and nothing waits for the search index.
// So deferred work is counted.
func (b *bed) settled(ctx context.Context) error {
	return rig.Until(ctx, time.Minute, 50*time.Millisecond, func() (bool, error) {
		groups, err := b.DB.XInfoGroups(ctx, "postroom:{0}:events").Result()
		for _, g := range groups {
			if err != nil || g.Lag > 0 || g.Pending > 0 {
				return false, err
			}
		}
		if err != nil {
			return false, err
		}
		stats, err := api.GetStats.Do(ctx, b.client, api.CounterQuery{})
		q := stats.Queues["documents"]
		return err == nil && q.Waiting+q.Active == 0, err
	})
}
