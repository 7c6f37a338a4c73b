package testkit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// ClockStart is the time that a clock of [NewClock] begins with.
var ClockStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// NewClock makes a clock that shows [ClockStart].
func NewClock() *Clock { return ClockAt(ClockStart) }

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
