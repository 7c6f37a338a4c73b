package app_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testsmtp"
)

func TestMain(m *testing.M) { os.Exit(apptest.Main(m)) }

// tally is what a relay got, and what the events say about it.
type tally struct {
	copies   map[string]int  // deliveries to each recipient
	terminal map[string]int  // messageSent and messageFailed events of each recipient
	doubted  map[string]bool // recipients of messages sent again after a doubtful attempt
}

// take counts the deliveries at the relay and reads the whole event stream.
func take(t *testing.T, relay *testsmtp.Server, db *redisdb.DB) tally {
	t.Helper()
	c := tally{copies: map[string]int{}, terminal: map[string]int{}, doubted: map[string]bool{}}
	for _, m := range relay.Messages() {
		for _, to := range m.To {
			c.copies[to]++
		}
	}
	var entries []redis.XMessage
	for p := range db.Partitions() {
		more, err := db.Client().XRange(t.Context(), redisdb.Key(p, "events"), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, more...)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			event.Message
			InDoubt bool `json:"inDoubt"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		for _, to := range data.Envelope.To {
			if e.Type == event.MessageSent || e.Type == event.MessageFailed || e.Type == event.MessageCancelled {
				c.terminal[to]++
			}
			c.doubted[to] = c.doubted[to] || data.InDoubt
		}
	}
	return c
}

// check checks the guarantees: everybody gets the mail, no one gets it twice unless in doubt, and everybody
// has one terminal event.
func (c tally) check(t *testing.T, accepted []string) {
	t.Helper()
	twice := 0
	for _, to := range accepted {
		switch n := c.copies[to]; {
		case n == 0:
			t.Errorf("%s: accepted, never delivered", to)
		case n > 1 && !c.doubted[to]:
			t.Errorf("%s: delivered %d times without any doubt", to, n)
		case n > 1:
			twice++
		}
		if c.terminal[to] != 1 {
			t.Errorf("%s: %d last words, want 1", to, c.terminal[to])
		}
	}
	t.Logf("%d accepted, %d delivered twice, all of them marked in doubt", len(accepted), twice)
}
