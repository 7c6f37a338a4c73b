package message

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Control is the values of the control headers of a raw message, which are removed from it:
// X-Postroom-Send-At, -Delivery-Attempts, -Gateway, -Tracking-Enabled, -Idempotency-Key, -Lane and -Priority.
// EmailEngine's prefix X-EE- works too. X-Postroom- takes precedence.
type Control struct {
	SendAt           time.Time // when to send; zero: not given
	DeliveryAttempts int       // total attempts, 1 to 100; 0: not given
	Gateway          string    // empty: not given
	TrackingEnabled  *bool     // nil: not given
	IdempotencyKey   string    // empty: not given
	Lane             string    // transactional or bulk; empty: not given
	Priority         string    // high, normal or low; empty: not given
}

// controlPrefixes are in order of precedence.
var controlPrefixes = []string{"X-Postroom-", "X-EE-"}

const maxIdempotencyKey = 1024

func (h *rawHeader) takeControl(f *faults) Control {
	var c Control
	if name, value := h.takeControlHeader("Send-At"); value != "" {
		c.SendAt = f.controlTime(name, value)
	}
	if name, value := h.takeControlHeader("Delivery-Attempts"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 100 {
			f.add("raw", "its %s must be a whole number from 1 to 100", name)
		}
		c.DeliveryAttempts = n
	}
	_, c.Gateway = h.takeControlHeader("Gateway")
	if name, value := h.takeControlHeader("Tracking-Enabled"); value != "" {
		c.TrackingEnabled = f.controlBool(name, value)
	}
	name, key := h.takeControlHeader("Idempotency-Key")
	if c.IdempotencyKey = strings.Trim(key, `"`); len(c.IdempotencyKey) > maxIdempotencyKey {
		f.add("raw", "its %s must not be longer than %d octets", name, maxIdempotencyKey)
	}
	c.Lane = h.takeControlWord(f, "Lane", "transactional", "bulk")
	c.Priority = h.takeControlWord(f, "Priority", "high", "normal", "low")
	return c
}

// takeControlWord is takeControlHeader of a header that is one of some words.
func (h *rawHeader) takeControlWord(f *faults, purpose string, words ...string) string {
	name, value := h.takeControlHeader(purpose)
	value = strings.ToLower(value)
	if value != "" && !slices.Contains(words, value) {
		f.add("raw", "its %s must be one of %s", name, strings.Join(words, ", "))
	}
	return value
}

// takeControlHeader removes all headers of a purpose. It returns the name and value of the one with
// precedence.
func (h *rawHeader) takeControlHeader(purpose string) (name, value string) {
	for _, prefix := range controlPrefixes {
		if value == "" {
			name, value = prefix+purpose, decodeText(h.get(prefix+purpose))
		}
		h.remove(prefix + purpose)
	}
	return name, value
}

// controlTime parses ISO 8601, seconds and zone optional (default UTC), or Unix milliseconds as EmailEngine's
// clients send.
func (f *faults) controlTime(name, value string) time.Time {
	if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms > 0 &&
		ms < math.MaxInt64/int64(time.Millisecond) {
		return time.UnixMilli(ms).UTC()
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05",
		"2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, value); err == nil {
			return t
		}
	}
	f.add("raw", "its %s must be a time such as 2026-01-31T09:00:00Z", name)
	return time.Time{}
}

func (f *faults) controlBool(name, value string) *bool {
	result := true
	switch strings.ToLower(value) {
	case "true", "yes", "y", "t", "1", "on":
	case "false", "no", "n", "f", "0", "off":
		result = false
	default:
		f.add("raw", "its %s must be true or false", name)
	}
	return &result
}
