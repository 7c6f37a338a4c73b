package testrecords

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/seal"
)

// Start is the time at which a [Clock] starts.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Clock tells the time that a test says it is. The zero value tells [Start]. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	passed time.Duration
}

// Now is the time by this clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Start.Add(c.passed)
}

// Advance lets time pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

// Ring makes the key ring of an instance with these secrets, the current one first. They may be short.
func Ring(t testing.TB, current string, older ...string) *seal.Ring {
	t.Helper()
	var old [][]byte
	for _, s := range older {
		old = append(old, long(s))
	}
	ring, err := seal.New(long(current), old...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func long(secret string) []byte { return []byte(strings.Repeat(secret, seal.MinSecret)) }

// WrongFields lists the fields that an error of kind Invalid names. Any other error fails the test.
func WrongFields(t testing.TB, err error) []string {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid {
		t.Fatalf("error %v, want Invalid", err)
	}
	var keys []string
	for _, field := range f.Fields {
		keys = append(keys, field.Key)
	}
	return keys
}
