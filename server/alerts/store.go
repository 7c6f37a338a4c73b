package alerts

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

var (
	//go:embed swap.lua
	swapSource string
	swapScript = redisdb.NewScript[swapArgs, bool]("watch/swap", swapSource)
)

type swapArgs struct{ Alert, Before, After, Event string }

func alertsKey() string { return redisdb.Key(0, "alerts") }
func lookedKey() string { return redisdb.Key(0, "alerts", "looked") }
func eventsKey() string { return redisdb.Key(0, "events") } // outbox owns it; its doc lists the writers

const lookedFor = time.Hour

// store reads and writes alerts in Redis.
type store struct {
	client redis.UniversalClient
	now    func() time.Time // a test's clock; nil means Redis' clock
}

// entry is a standing alert, with the text of its state as it was read.
type entry struct {
	state
	raw string
}

// seen is what a check has read from Redis at its beginning.
type seen struct {
	at       time.Time // by the clock of Redis; zero if it did not answer
	standing map[string]entry
}

// find returns a standing alert; nil if there is none.
func (s seen) find(key string) *state {
	if e, ok := s.standing[key]; ok {
		return &e.state
	}
	return nil
}

// read reads the time and the standing alerts, and tries to write. If only writing fails, it returns both the
// answer and the error.
func (s store) read(ctx context.Context) (seen, error) {
	pipe := s.client.Pipeline()
	clock := pipe.Time(ctx)
	rows := pipe.HGetAll(ctx, alertsKey())
	wrote := pipe.Set(ctx, lookedKey(), time.Now().UnixMilli(), lookedFor)
	_, _ = pipe.Exec(ctx) // each command has its own error
	got := seen{standing: map[string]entry{}}
	for _, err := range []error{clock.Err(), rows.Err()} {
		if err != nil {
			return got, fmt.Errorf("read alerts: %w", err)
		}
	}
	got.at = clock.Val().UTC().Truncate(time.Millisecond)
	if s.now != nil {
		got.at = s.now().UTC().Truncate(time.Millisecond)
	}
	got.standing = entries(rows.Val())
	if err := wrote.Err(); err != nil {
		return got, fmt.Errorf("write to Redis: %w", err)
	}
	return got, nil
}

func (s store) standing(ctx context.Context) (map[string]entry, error) {
	rows, err := s.client.HGetAll(ctx, alertsKey()).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "watch: read alerts")
	}
	return entries(rows), nil
}

// entries parses states. One that can't be parsed, because another version wrote it, counts as one that was
// not judged for long: it is removed.
func entries(rows map[string]string) map[string]entry {
	all := make(map[string]entry, len(rows))
	for key, raw := range rows {
		e := entry{raw: raw}
		if err := json.Unmarshal([]byte(raw), &e.state); err != nil {
			e.state = state{Alert: api.Alert{Alert: key}}
		}
		all[key] = e
	}
	return all
}

// swap changes an alert from the state that was read to the decided one, with its event. It returns false if
// the state has changed since.
func (s store) swap(ctx context.Context, key string, now seen, d decision) (bool, error) {
	args := swapArgs{Alert: key}
	if d.do != resolve {
		raw, err := json.Marshal(d.next)
		if err != nil {
			return false, fmt.Errorf("write alert %s: %w", key, err)
		}
		args.After = string(raw)
	}
	if d.do != note {
		var err error
		if args.Event, err = eventLine(d, now.at); err != nil {
			return false, err
		}
	}
	args.Before = now.standing[key].raw
	return swapScript.Run(ctx, s.client, []string{alertsKey(), eventsKey()}, args)
}

// eventLine returns the event of an alert that is raised or resolved, as it is written to the stream.
func eventLine(d decision, at time.Time) (string, error) {
	a := d.next.Alert
	kind, data := event.AlertRaised, event.Alert{Alert: a.Alert, Queue: a.Queue, Text: a.Text, Value: a.Value,
		Threshold: a.Threshold, Since: a.Since}
	if d.do == resolve {
		kind, data.Resolved = event.AlertResolved, &at
	}
	e, err := event.New(ulid.MustNew(ulid.Timestamp(at), rand.Reader).String(), kind, "", at, data)
	if err != nil {
		return "", err
	}
	return e.Line()
}
