package watch

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed swap.lua
	swapSource string
	swapScript = redisdb.NewRawScript("watch/swap", swapSource)
)

func alertsKey() string { return redisdb.Key(0, "alerts") }
func lookedKey() string { return redisdb.Key(0, "alerts", "looked") }
func eventsKey() string { return redisdb.Key(0, "events") } // outbox owns it; its doc says who may write

const lookedFor = time.Hour

// store is what Redis keeps of alerts.
type store struct {
	client redis.UniversalClient
	now    func() time.Time // of a test; nil: Redis' clock
}

// entry is an alert that stands, with the text of its state as it was read.
type entry struct {
	state
	raw string
}

// seen is what Redis said at the beginning of a look.
type seen struct {
	at       time.Time // by Redis' clock; zero: it did not answer
	standing map[string]entry
}

// find returns an alert that stands; nil: it does not.
func (s seen) find(key string) *state {
	if e, ok := s.standing[key]; ok {
		return &e.state
	}
	return nil
}

// read asks for the time and the standing alerts, and tries to write. When only the writing is refused, it
// gives both the answer and the error.
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

// standing reads the alerts that stand.
func (s store) standing(ctx context.Context) (map[string]entry, error) {
	rows, err := s.client.HGetAll(ctx, alertsKey()).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "watch: read alerts")
	}
	return entries(rows), nil
}

// entries reads states. One that can't be read, written by another version, is as good as one that nobody
// has judged for ages: it is struck out.
func entries(rows map[string]string) map[string]entry {
	all := make(map[string]entry, len(rows))
	for key, raw := range rows {
		e := entry{raw: raw}
		if err := json.Unmarshal([]byte(raw), &e.state); err != nil {
			e.state = state{Alert: key}
		}
		all[key] = e
	}
	return all
}

// swap changes an alert from what was seen to what was decided, with the event of that; false when it is
// another one by now.
func (s store) swap(ctx context.Context, key string, now seen, d decision) (bool, error) {
	next, line := "", ""
	if d.do != resolve {
		raw, err := json.Marshal(d.next)
		if err != nil {
			return false, fmt.Errorf("write alert %s: %w", key, err)
		}
		next = string(raw)
	}
	if d.do != note {
		var err error
		if line, err = eventLine(d, now.at); err != nil {
			return false, err
		}
	}
	done, err := swapScript.Run(ctx, s.client, []string{alertsKey(), eventsKey()}, key, now.standing[key].raw,
		next, line).Int()
	return done == 1, err
}

// eventLine is the event of an alert that is raised or resolved, as it stands in the stream.
func eventLine(d decision, at time.Time) (string, error) {
	kind, data := event.AlertRaised, event.Alert{
		Alert: d.next.Alert, Queue: d.next.Queue, Text: d.next.Text, Value: d.next.Value,
		Threshold: d.next.Threshold, Since: d.next.Since,
	}
	if d.do == resolve {
		kind, data.Resolved = event.AlertResolved, &at
	}
	e, err := event.New(ulid.MustNew(ulid.Timestamp(at), rand.Reader).String(), kind, "", at, data)
	if err != nil {
		return "", err
	}
	return e.Line()
}
