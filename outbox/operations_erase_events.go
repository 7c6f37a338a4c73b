package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// PlaceEvents is the place of EraseEvents.
const PlaceEvents = "events"

const (
	eventsAtOnce  = 500
	eventsPatient = 20 * time.Second // with readers that are behind; then the caller tries again later
	eventsPause   = 200 * time.Millisecond
)

// EraseEvents deletes the past events that name a person, as a stream can't be changed otherwise. It waits
// until all readers have read the events from before the call. It returns Unavailable, code EventsUnread, if
// a reader is behind.
func (d *Operations) EraseEvents(ctx context.Context, w Whom, tally Tally) error {
	for p := range d.DB.Partitions() {
		e := &eventErasing{Operations: d, Whom: w, tally: tally, key: d.keys.events(p)}
		if err := e.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// eventErasing erases a person from the events of one partition.
type eventErasing struct {
	*Operations
	Whom
	tally Tally
	key   string
	from  string // where to continue; empty for the beginning
}

func (e *eventErasing) run(ctx context.Context) error {
	newest, err := e.DB.Client().XRevRangeN(ctx, e.key, "+", "-", 1).Result()
	if err != nil || len(newest) == 0 {
		return redisError(err, "read the newest event")
	}
	for tried := time.Duration(0); ; tried += eventsPause {
		until, err := e.read(ctx)
		if err != nil {
			return err
		}
		if until != "" && before(newest[0].ID, until) {
			until = newest[0].ID
		}
		if err := e.through(ctx, until); err != nil {
			return err
		}
		if until == newest[0].ID {
			return nil
		}
		if tried >= eventsPatient {
			return fault.New(fault.Unavailable, "EventsUnread",
				"Events can't be deleted yet, because a reader hasn't processed them")
		}
		if !redisdb.Pause(ctx, eventsPause) {
			return ctx.Err()
		}
	}
}

// read returns the id up to which all groups have handled the stream, or "" if they have handled nothing. An
// unread event must stay: its reader would lose count of the others.
func (e *eventErasing) read(ctx context.Context) (string, error) {
	c := e.DB.Client()
	groups, err := c.XInfoGroups(ctx, e.key).Result()
	if err != nil {
		return "", redisError(err, "read the groups of "+e.key)
	}
	until := "+"
	for _, g := range groups {
		at := g.LastDeliveredID
		if g.Pending > 0 {
			pending, err := c.XPending(ctx, e.key, g.Name).Result()
			if err != nil {
				return "", redisError(err, "read what a group of "+e.key+" works on")
			}
			if pending.Count > 0 {
				at = previous(pending.Lower)
			}
		}
		if until == "+" || before(at, until) {
			until = at
		}
	}
	if until == "0-0" {
		until = ""
	}
	return until, nil
}

// through deletes the events that name the person, up to an id.
func (e *eventErasing) through(ctx context.Context, until string) error {
	c := e.DB.Client()
	for until != "" {
		some, err := c.XRangeN(ctx, e.key, cmp.Or(e.from, "-"), until, eventsAtOnce).Result()
		if err != nil {
			return redisError(err, "read events")
		}
		var gone []string
		for _, one := range some {
			e.from = "(" + one.ID
			if e.names(one) {
				gone = append(gone, one.ID)
			}
		}
		if len(gone) > 0 {
			if err := e.tally(PlaceEvents, len(gone)); err != nil {
				return err
			}
			if err := c.XDel(ctx, e.key, gone...).Err(); err != nil {
				return redisError(err, "delete events")
			}
		}
		if len(some) < eventsAtOnce || !redisdb.Pause(ctx, erasePause) {
			return ctx.Err()
		}
	}
	return nil
}

// names reports whether an event names the person, and is of the account.
func (e *eventErasing) names(one redis.XMessage) bool {
	line, _ := one.Values["e"].(string)
	if _, found := e.CoverJSON(line); !found {
		return false
	}
	var of struct{ Account string }
	return e.Account == "" || json.Unmarshal([]byte(line), &of) == nil && of.Account == e.Account
}

// before reports whether an id of a stream is before another. "+" is after all.
func before(a, b string) bool {
	if a == "+" || b == "+" {
		return b == "+" && a != b
	}
	ms, n := idParts(a)
	otherMS, m := idParts(b)
	return ms < otherMS || ms == otherMS && n < m
}

// previous returns the id before one.
func previous(id string) string {
	ms, n := idParts(id)
	switch {
	case n > 0:
		n--
	case ms == 0:
	default:
		ms, n = ms-1, 1<<64-1
	}
	return fmt.Sprintf("%d-%d", ms, n)
}

func idParts(id string) (ms, n uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64)
	n, _ = strconv.ParseUint(second, 10, 64)
	return ms, n
}
