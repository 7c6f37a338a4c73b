package feedback

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua
var files embed.FS

// lua returns a script of this package.
func lua(name string) string { return redisdb.Source(files, "lua/"+name+".lua") }

// The scripts. The comments of each explain its fields.
var (
	appendScript = redisdb.NewScript[appendArgs, appended]("feedback/append", lua("append"))
	againScript  = redisdb.NewScript[againArgs, int]("feedback/again", lua("again"))
)

// The arguments and answers of the scripts, by the names that the scripts declare.
type (
	appendArgs struct {
		Most          int
		Yield         bool
		Added, Latest []byte
		Facts         []string
	}
	appended struct {
		Word    string
		Dropped int64
	}
	againArgs struct {
		Now  time.Time
		Most int
	}
)

// The streams, by their names in [redisdb.Follow].
const (
	urgent     = "feedback"
	deliveries = "feedback:deliveries"
	hits       = "feedback:hits"

	field = "f"
	group = "feedback"
)

// streams returns the streams, the most important first.
func streams() []string { return []string{urgent, deliveries, hits} }

func waitingKey(p int, stream string) string { return redisdb.Key(p, "feedback", "waiting", stream) }
func countsKey(p int) string                 { return redisdb.Key(p, "feedback", "counts") }
func tokenKey(hash string) string            { return redisdb.Key(0, "feedback", "token", hash) }
func ownerKey() string                       { return redisdb.Key(0, "feedback", "owner") }
func reconciledKey(source string) string     { return redisdb.Key(0, "feedback", "reconciled", source) }

const (
	claimFor      = 30 * time.Second
	reconciledFor = 365 * 24 * time.Hour // long after a source is removed from the settings
)

// store reads and writes what this package keeps in Redis.
type store struct{ db *redisdb.DB }

// change is a change of a partition's counts.
type change struct {
	add    map[string]int64
	latest map[string]int64 // times, which replace those before
}

// put appends lines to a stream, and counts. ok is false if the stream is full, but for hits, the oldest are
// dropped instead.
func (s store) put(ctx context.Context, p int, stream string, most int, lines []string, c change) (ok bool,
	dropped int64, err error) {
	added, err := json.Marshal(c.add)
	if err != nil {
		return false, 0, err
	}
	latest, err := json.Marshal(c.latest)
	if err != nil {
		return false, 0, err
	}
	args := appendArgs{Most: most, Yield: stream == hits, Added: added, Latest: latest, Facts: lines}
	keys := []string{redisdb.Key(p, stream), countsKey(p)}
	var answer appended
	if stream == hits { // hits may be dropped, so they need no second copy
		answer, err = appendScript.Run(ctx, s.db.Client(), keys, args)
	} else {
		answer, err = appendScript.RunReplicated(ctx, s.db, keys, args)
	}
	if err != nil {
		return false, 0, redisdb.Failed(err, "put %d reports into the inbox", len(lines))
	}
	return answer.Word == "TAKEN", answer.Dropped, nil
}

// done removes entries from the inbox, and counts their outcomes. Entries to look up again are saved first.
func (s store) done(ctx context.Context, p int, stream string, ids []string, again []redis.Z,
	c change) error {
	pipe := s.db.Client().TxPipeline()
	if len(again) > 0 {
		pipe.ZAdd(ctx, waitingKey(p, stream), again...)
	}
	pipe.XDel(ctx, redisdb.Key(p, stream), ids...)
	for name, n := range c.add {
		pipe.HIncrBy(ctx, countsKey(p), name, n)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("remove %d reports from the inbox: %w", len(ids), err)
	}
	return nil
}

// waiting returns the number of facts of a stream that will be looked up again.
func (s store) waiting(ctx context.Context, p int, stream string) (int64, error) {
	n, err := s.db.Client().ZCard(ctx, waitingKey(p, stream)).Result()
	if err != nil {
		return 0, fmt.Errorf("count facts that wait for their message: %w", err)
	}
	return n, nil
}

// postponed returns the keys of the facts that will be looked up again.
func (s store) postponed() (keys []string) {
	for p := range s.db.Partitions() {
		for _, stream := range streams() {
			keys = append(keys, waitingKey(p, stream))
		}
	}
	return keys
}

// again puts due facts back into their streams, at most most of each, and reports whether there are more.
func (s store) again(ctx context.Context, now time.Time, most int) (more bool, err error) {
	pipe := s.db.Pipeline()
	var answers []*redisdb.Reply[int]
	for p := range s.db.Partitions() {
		for _, stream := range streams() {
			keys := []string{waitingKey(p, stream), redisdb.Key(p, stream)}
			answers = append(answers, againScript.Add(pipe, keys, againArgs{now, most}))
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return false, fmt.Errorf("retry reports: %w", err)
	}
	for _, answer := range answers {
		n, _ := answer.Read() // an error here is also Exec's
		more = more || n == most
	}
	return more, nil
}

// bind binds a token that may be used once to the digest of an event, for all processes. It returns the
// digest that the token is bound to.
func (f *Feedback) bind(ctx context.Context, token, digest string, until time.Time) (string, error) {
	sum := sha256.Sum256([]byte(token))
	key, life := tokenKey(hex.EncodeToString(sum[:])), max(until.Sub(f.opts.Now()), time.Minute)
	for range 3 { // a token that expires between the two commands is bound again
		fresh, err := f.DB.Client().SetNX(ctx, key, digest, life).Result()
		if err != nil || fresh {
			return digest, err
		}
		bound, err := f.DB.Client().Get(ctx, key).Result()
		if !errors.Is(err, redis.Nil) {
			return bound, err
		}
	}
	return "", errors.New("the token keeps expiring")
}

// progress is the state of the reconciliation with a source.
type progress struct {
	Position time.Time // everything before is in the inbox; zero if nothing was read yet
	Ran      time.Time // when it last ended
	Events   int64     // events of the last run
	Broken   int64     // unreadable facts among them
	Error    string    // empty if the last run succeeded
	Note     string    // what the source can't report, if anything
	Resume   time.Time // the provider asked for nothing before; zero if it didn't
}

func (s store) progress(ctx context.Context, source string) (progress, error) {
	v, err := s.db.Client().HGetAll(ctx, reconciledKey(source)).Result()
	if err != nil {
		return progress{}, redisdb.Failed(err, "read the progress of the reconciliation")
	}
	number := func(name string) int64 { n, _ := strconv.ParseInt(v[name], 10, 64); return n }
	return progress{redisdb.Time(number("position")), redisdb.Time(number("ran")), number("events"),
		number("broken"), v["error"], v["note"], redisdb.Time(number("resume"))}, nil
}

// note saves the progress.
func (s store) note(ctx context.Context, source string, values ...any) error {
	pipe := s.db.Client().TxPipeline()
	pipe.HSet(ctx, reconciledKey(source), values...)
	pipe.Expire(ctx, reconciledKey(source), reconciledFor)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("store the progress of the reconciliation: %w", err)
	}
	return nil
}

// counted is the sums of all partitions, and the numbers of waiting facts.
type counted struct {
	values  map[string]int64 // sums; for times, the latest
	streams map[string]int64
	waiting int64
}

func (s store) counted(ctx context.Context) (counted, error) {
	out := counted{values: map[string]int64{}, streams: map[string]int64{}}
	pipe := s.db.Client().Pipeline()
	type partition struct {
		values  *redis.MapStringStringCmd
		streams map[string]*redis.IntCmd
		waiting []*redis.IntCmd
	}
	all := make([]partition, s.db.Partitions())
	for p := range all {
		all[p] = partition{values: pipe.HGetAll(ctx, countsKey(p)), streams: map[string]*redis.IntCmd{}}
		for _, stream := range streams() {
			all[p].streams[stream] = pipe.XLen(ctx, redisdb.Key(p, stream))
			all[p].waiting = append(all[p].waiting, pipe.ZCard(ctx, waitingKey(p, stream)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return counted{}, redisdb.Failed(err, "count the reports in the inbox")
	}
	for _, one := range all {
		for name, text := range one.values.Val() {
			n, _ := strconv.ParseInt(text, 10, 64)
			if isTime(name) {
				out.values[name] = max(out.values[name], n)
			} else {
				out.values[name] += n
			}
		}
		for stream, n := range one.streams {
			out.streams[stream] += n.Val()
		}
		for _, n := range one.waiting {
			out.waiting += n.Val()
		}
	}
	return out, nil
}
