package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// observer reads Redis without the faulty lines: the events, and which messages are held.
type observer struct {
	program    *program
	socket     string
	rdb        *redis.Client
	partitions int
	ledger     *ledger
	last       []string   // id of the last event read, of each partition
	turn       sync.Mutex // of catchUp
}

// newRedis returns a redis-server that writes each change to disk before its reply.
func newRedis(dir string, partitions int, l *ledger) (*observer, error) {
	home := filepath.Join(dir, "redis")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	o := &observer{socket: filepath.Join(home, "s"), partitions: partitions, ledger: l,
		last: make([]string, partitions)}
	for p := range o.last {
		o.last[p] = "0"
	}
	logging.Disable() // Redis is unreachable at times on purpose
	o.rdb = redis.NewClient(&redis.Options{Network: "unix", Addr: o.socket, MaxRetries: 0,
		ReadTimeout: 5 * time.Second, DisableIdentity: true})
	var err error
	o.program, err = newProgram(dir, "redis-server", l, func() *exec.Cmd {
		cmd, _ := rig.RedisCommand(home, "--appendfsync", "always")
		return cmd
	}, o.ping)
	return o, err
}

// ping waits until Redis answers; after a restart it reads its files first.
func (o *observer) ping(ctx context.Context, _ *bufio.Reader) error {
	for {
		err := o.rdb.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if waitErr := rig.Wait(ctx, 20*time.Millisecond); waitErr != nil {
			return err
		}
	}
}

// slow is longer than any reply of a healthy Redis takes.
const slow = 500 * time.Millisecond

// follow reads events as they come, until ctx ends. If Redis is slow by itself, for example because of a busy
// disk, that is noted as a fault.
func (o *observer) follow(ctx context.Context) {
	for rig.Wait(ctx, 250*time.Millisecond) == nil {
		began := time.Now()
		_ = o.catchUp(ctx) // Redis may be down; the next round reads on
		if time.Since(began) > slow {
			o.ledger.nature("redis slow by itself, or frozen", "redis", began)
		}
	}
}

// catchUp reads all new events. Callers take turns, so that each event is noted once.
func (o *observer) catchUp(ctx context.Context) error {
	o.turn.Lock()
	defer o.turn.Unlock()
	for p := range o.partitions {
		for {
			entries, err := o.rdb.XRangeN(ctx, redisdb.Key(p, "events"), "("+o.last[p], "+", 1000).Result()
			if err != nil {
				return fmt.Errorf("read events: %w", err)
			}
			for _, entry := range entries {
				f, err := factOf(entry)
				if err != nil {
					return err
				}
				o.ledger.happened(f)
				o.last[p] = entry.ID
			}
			if len(entries) == 0 {
				break
			}
		}
	}
	return nil
}

// factOf reads an event.
func factOf(entry redis.XMessage) (*fact, error) {
	raw, _ := entry.Values["e"].(string)
	e, err := event.Parse([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", entry.ID, err)
	}
	var data struct {
		event.Message
		InDoubt  bool   `json:"inDoubt"`
		Error    string `json:"error"`
		Response string `json:"response"`
		Reason   string `json:"reason"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return &fact{
		id: e.ID, kind: e.Type, at: e.Time, queueID: data.QueueID, to: data.Envelope.To, doubt: data.InDoubt,
		detail: data.Error + data.Response + data.Reason,
	}, nil
}

// holding is the record of a message under way.
type holding struct {
	partition               int
	id, state, fence, lease string
}

// held returns the messages that a worker holds.
func (o *observer) held(ctx context.Context) ([]holding, error) {
	var out []holding
	for p := range o.partitions {
		ids, err := o.rdb.ZRange(ctx, redisdb.Key(p, "leases"), 0, -1).Result()
		if err != nil {
			return nil, err
		}
		found, err := o.look(ctx, p, ids)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// look reads the records of messages. Those that ended have no state.
func (o *observer) look(ctx context.Context, partition int, ids []string) ([]holding, error) {
	pipe := o.rdb.Pipeline()
	got := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		got[i] = pipe.HMGet(ctx, redisdb.Key(partition, "message", id), "state", "fence", "lease")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	out := make([]holding, len(ids))
	for i, cmd := range got {
		out[i].partition, out[i].id = partition, ids[i]
		for n, field := range []*string{&out[i].state, &out[i].fence, &out[i].lease} {
			*field, _ = cmd.Val()[n].(string)
		}
	}
	return out, nil
}
