package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
)

// observer reads Redis without the faulty lines: the events, and which messages are held.
type observer struct {
	rdb        redis.UniversalClient
	partitions int
	ledger     *ledger
	last       []string   // id of the last event read, of each partition
	turn       sync.Mutex // for catchUp
}

// readWithin is how long our own clients wait for an answer of Redis.
const readWithin = 5 * time.Second

// openRedis starts a redis-server that writes each change to disk before its reply.
func (h *testbed) openRedis(ctx context.Context) error {
	home := filepath.Join(h.dir, "redis")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	_, h.socket = rig.RedisCommand(home)
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: h.socket, MaxRetries: 0,
		ReadTimeout: readWithin, DisableIdentity: true})
	h.OnClose(func() { _ = rdb.Close() })
	server, err := newProgram(h.dir, "redis-server", h.ledger, func() *exec.Cmd {
		cmd, _ := rig.RedisCommand(home, "--appendfsync", "always")
		return cmd
	}, func(ctx context.Context, _ *bufio.Reader) error { return ping(ctx, rdb) })
	if err != nil {
		return err
	}
	h.redis, h.servers = newObserver(rdb, h.o.partitions, h.ledger), []*program{server}
	h.start(server)
	return server.await(ctx)
}

func newObserver(rdb redis.UniversalClient, partitions int, l *ledger) *observer {
	o := &observer{rdb: rdb, partitions: partitions, ledger: l, last: make([]string, partitions)}
	for p := range o.last {
		o.last[p] = "0"
	}
	return o
}

// ping waits until Redis answers; after a restart it reads its files first.
func ping(ctx context.Context, rdb *redis.Client) error {
	for {
		err := rdb.Ping(ctx).Err()
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

// follow reads events as they come, until ctx ends. If Redis is slow on its own, for example because of a
// busy disk, it notes that as a failure.
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
	if e.Type == event.DigestSent || e.Type == event.DigestSkipped || e.Type == event.DigestFailed {
		return factOfDigest(e)
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
	f := &fact{
		id: e.ID, kind: e.Type, at: e.Time, queueID: data.QueueID, to: data.Envelope.To, doubt: data.InDoubt,
		detail: data.Error + data.Response + data.Reason, reader: -1,
	}
	var of struct {
		Run       string `json:"digestRun"`
		Recipient string `json:"recipient"`
	}
	if json.Unmarshal(data.Metadata, &of) == nil && of.Run != "" {
		f.run, f.reader, f.messageID = of.Run, readerOf(of.Recipient+"@"+domain), data.MessageID
	}
	return f, nil
}

// factOfDigest reads an event about a run of digests.
func factOfDigest(e event.Event) (*fact, error) {
	var d event.Digest
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return nil, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return &fact{id: e.ID, kind: e.Type, at: e.Time, queueID: d.QueueID, detail: d.Reason, run: d.Run,
		reader: readerOf(d.Recipient + "@" + domain), events: d.Events, returned: d.Returned}, nil
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
		for i, member := range ids {
			ids[i], _, _ = strings.Cut(member, " ") // lane, creation and account follow
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
