package webhooks

import (
	"context"
	"embed"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua
var files embed.FS

// lua returns a script of this package.
func lua(name string) string { return redisdb.Source(files, "lua/"+name+".lua") }

var prelude = lua("prelude")

// The scripts. The comments of each explain its fields.
var (
	createScript   = redisdb.NewScript[createArgs, word]("webhooks/create", lua("create"), prelude)
	beginScript    = redisdb.NewScript[beginArgs, begun]("webhooks/begin", lua("begin"), prelude)
	finishScript   = redisdb.NewScript[finishArgs, time.Time]("webhooks/finish", lua("finish"), prelude)
	givebackScript = redisdb.NewScript[givebackArgs, bool]("webhooks/giveback", lua("giveback"), prelude)
	orphanScript   = redisdb.NewScript[orphanArgs, bool]("webhooks/orphan", lua("orphan"), prelude)
	trimScript     = redisdb.NewScript[trimArgs, int]("webhooks/trim", lua("trim"), prelude)
	putScript      = redisdb.NewScript[putArgs, bool]("webhooks/put", lua("put"), prelude)
	disableScript  = redisdb.NewScript[disableArgs, bool]("webhooks/disable", lua("disable"), prelude)
	eraseScript    = redisdb.NewScript[eraseArgs, int]("webhooks/erase", lua("erase"), prelude)
)

// The arguments and answers of the scripts, by the names that the scripts declare.
type (
	createArgs struct {
		Endpoint, ID, Event string
		Now                 time.Time
		MaxPending          int
		KeepFor             int64
		Again               string
	}
	word      struct{ Word string }
	beginArgs struct {
		Endpoint, ID string
		Now          time.Time
		Rate         int
		OverAt       time.Time
	}
	begun struct {
		Word        string
		Attempt     int
		Created, At time.Time
		Event       []byte
	}
	finishArgs struct {
		Endpoint, ID      string
		Attempt           int
		Status            string
		Now               time.Time
		Code              int
		Latency           int64
		Response, Failure string
		Next              time.Time
		KeepFor           int64
		KeepMost          int
		URL               string
		Day               string
		Hour              int
		Try               []byte
		Tries             int
	}
	givebackArgs struct {
		Endpoint, ID string
		Attempt      int
		Now          time.Time
	}
	orphanArgs struct {
		Endpoint, ID string
		CheckAgain   time.Time
	}
	trimArgs struct {
		Endpoint string
		KeepMost int
		Cutoff   time.Time
	}
	putArgs struct {
		Endpoint, Before, After string
		Fresh                   bool
	}
	disableArgs struct {
		Endpoint   string
		Off        []byte
		URL, Event string
	}
	eraseArgs struct{ Endpoint, ID, Event, Response, Failure string }
)

// The keys. All are in partition 0: endpoints are few, and a delivery changes together with its endpoint.
func endpointsKey() string             { return redisdb.Key(0, "webhook", "endpoints") }
func versionKey() string               { return redisdb.Key(0, "webhook", "version") }
func offKey() string                   { return redisdb.Key(0, "webhook", "off") }
func failingKey() string               { return redisdb.Key(0, "webhook", "failing") }
func madeKey() string                  { return redisdb.Key(0, "webhook", "made") }
func wokenKey() string                 { return redisdb.Key(0, "webhook", "woken") }
func dueKey() string                   { return redisdb.Key(0, "webhook", "due") }
func logKey(endpoint string) string    { return redisdb.Key(0, "webhook", "log", endpoint) }
func doneKey(endpoint string) string   { return redisdb.Key(0, "webhook", "done", endpoint) }
func replayKey(endpoint string) string { return redisdb.Key(0, "webhook", "replay", endpoint) }
func replayStateKey(endpoint string) string {
	return redisdb.Key(0, "webhook", "replaying", endpoint)
}
func restKey(endpoint string) string { return redisdb.Key(0, "webhook", "rest", endpoint) }
func hoursKey(endpoint string, day time.Time) string {
	return redisdb.Key(0, "webhook", "hours", endpoint, day.UTC().Format(time.DateOnly))
}

// againKey has the id of the last delivery that sent an event to an endpoint again.
func againKey(endpoint, event string) string {
	return redisdb.Key(0, "webhook", "again", endpoint, event)
}

func deliveryKey(r ref) string {
	return redisdb.Key(0, "webhook", "delivery", r.Endpoint, r.Delivery)
}

// store reads and writes this package's keys where no script is needed.
type store struct{ client redis.UniversalClient }

// version changes with every change of an endpoint. It is "" until the first endpoint is created.
func (s store) version(ctx context.Context) (string, error) {
	v, err := s.client.Get(ctx, versionKey()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("ask for the version of webhook endpoints: %w", err)
	}
	return v, nil
}

// stored is everything that Redis has about endpoints.
type stored struct {
	version   string
	endpoints map[string]string // JSON
	off       map[string]string // JSON
	failing   map[string]string // since when, until when, and at which URL
	made      map[string]string // how many deliveries
	woken     map[string]string // changes whenever somebody asks not to wait
}

// all reads every endpoint. The version is read first: after a concurrent change the data is newer than the
// version, never older.
func (s store) all(ctx context.Context) (stored, error) {
	pipe := s.client.Pipeline()
	version := pipe.Get(ctx, versionKey())
	endpoints, off := pipe.HGetAll(ctx, endpointsKey()), pipe.HGetAll(ctx, offKey())
	failing, made := pipe.HGetAll(ctx, failingKey()), pipe.HGetAll(ctx, madeKey())
	woken := pipe.HGetAll(ctx, wokenKey())
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return stored{}, fmt.Errorf("read webhook endpoints: %w", err)
	}
	return stored{version: version.Val(), endpoints: endpoints.Val(), off: off.Val(),
		failing: failing.Val(), made: made.Val(), woken: woken.Val()}, nil
}

// one returns the JSON of an endpoint; it is "" if there is none.
func (s store) one(ctx context.Context, id string) (string, error) {
	raw, err := s.client.HGet(ctx, endpointsKey(), id).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read webhook endpoint %s: %w", id, err)
	}
	return raw, nil
}

// put replaces an endpoint if before is still the stored value, and reports whether it was. An empty string
// stands for no endpoint.
func (s store) put(ctx context.Context, id, before, after string, fresh bool) (bool, error) {
	done, err := putScript.Run(ctx, s.client, []string{endpointsKey()}, putArgs{id, before, after, fresh})
	if err != nil {
		return false, fmt.Errorf("write webhook endpoint %s: %w", id, err)
	}
	return done, nil
}

// refresh deletes the failing and switched-off marks of an endpoint.
func (s store) refresh(ctx context.Context, id string) error {
	pipe := s.client.TxPipeline()
	pipe.HDel(ctx, offKey(), id)
	pipe.HDel(ctx, failingKey(), id)
	pipe.Del(ctx, restKey(id))
	pipe.Incr(ctx, versionKey())
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("switch webhook endpoint %s on again: %w", id, err)
	}
	return nil
}

// page lists the deliveries of an endpoint that a list has, newest first.
func (s store) page(ctx context.Context, endpoint, list string, from, count int) (ids []string, total int,
	err error) {
	pipe := s.client.Pipeline()
	card := pipe.ZCard(ctx, list)
	rows := pipe.ZRevRange(ctx, list, int64(from), int64(from+count-1))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, fmt.Errorf("list deliveries of webhook endpoint %s: %w", endpoint, err)
	}
	return rows.Val(), int(card.Val()), nil
}

// read reads delivery records; a missing one is an empty map.
func (s store) read(ctx context.Context, refs ...ref) ([]map[string]string, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.MapStringStringCmd, len(refs))
	for i, r := range refs {
		cmds[i] = pipe.HGetAll(ctx, deliveryKey(r))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read %d webhook deliveries: %w", len(refs), err)
	}
	records := make([]map[string]string, len(refs))
	for i, cmd := range cmds {
		records[i] = cmd.Val()
	}
	return records, nil
}

// overdue lists deliveries that were due before the given time, longest overdue first.
func (s store) overdue(ctx context.Context, before time.Time, limit int) ([]ref, error) {
	members, err := s.client.ZRangeByScore(ctx, dueKey(), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list overdue webhook deliveries: %w", err)
	}
	refs := make([]ref, 0, len(members))
	for _, m := range members {
		delivery, endpoint, _ := strings.Cut(m, " ")
		refs = append(refs, ref{Endpoint: endpoint, Delivery: delivery})
	}
	return refs, nil
}

// postpone sets when pending deliveries are checked again, unless they have finished.
func (s store) postpone(ctx context.Context, refs []ref, until time.Time) error {
	scores := make([]redis.Z, len(refs))
	for i, r := range refs {
		scores[i] = redis.Z{Score: float64(until.UnixMilli()), Member: r.Delivery + " " + r.Endpoint}
	}
	if err := s.client.ZAddXX(ctx, dueKey(), scores...).Err(); err != nil {
		return fmt.Errorf("postpone %d webhook deliveries: %w", len(refs), err)
	}
	return nil
}

// past reads the event stream of a partition between two ids. It returns the events and the id to continue
// from, or "" at the end.
func (s store) past(ctx context.Context, partition int, from, to string, count int) (events []string,
	next string, err error) {
	entries, err := s.client.XRangeN(ctx, redisdb.Key(partition, stream), from, to, int64(count)).Result()
	if err != nil {
		return nil, "", fmt.Errorf("read past events of partition %d from %s: %w", partition, from, err)
	}
	for _, e := range entries {
		if line, ok := e.Values[streamField].(string); ok {
			events = append(events, line)
		}
	}
	if len(entries) == count {
		next = "(" + entries[count-1].ID
	}
	return events, next, nil
}

// lock prevents concurrent replays of one endpoint.
func (s store) lock(endpoint, run string) lease.Lock {
	return lease.Lock{Client: s.client, Key: replayKey(endpoint), Holder: run, Length: replayLock}
}
