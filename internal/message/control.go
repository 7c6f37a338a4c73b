package message

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/schedule"
)

// Control is the values of control headers, which are removed from the message:
// X-Postroom-Send-At, -Delivery-Attempts, -Gateway, -Tracking-Enabled, -Idempotency-Key, -Lane and -Priority.
// EmailEngine's prefix X-EE- works too. X-Postroom- takes precedence.
type Control struct {
	SendAt           time.Time // when to send; zero if not given
	DeliveryAttempts int       // total attempts, 1 to 100; 0 if not given
	Gateway          string    // empty if not given
	TrackingEnabled  *bool     // nil if not given
	IdempotencyKey   string    // empty if not given
	Lane             string    // transactional or bulk; empty if not given
	Priority         string    // high, normal or low; empty if not given
}

// controlPrefixes are in order of precedence.
var controlPrefixes = []string{"X-Postroom-", "X-EE-"}

const maxIdempotencyKey = 1024

// IsControl reports whether a header is a control header.
func IsControl(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range controlPrefixes {
		if purpose, ok := strings.CutPrefix(name, strings.ToLower(prefix)); ok {
			return slices.Contains([]string{"send-at", "delivery-attempts", "gateway", "tracking-enabled",
				"idempotency-key", "lane", "priority"}, purpose)
		}
	}
	return false
}

// takeControl removes the control headers. Its errors are as for additional headers. A time without an offset
// is in zone.
func (h *rawHeader) takeControl(f *faults, zone *time.Location) Control {
	var c Control
	if name, value := h.takeControlHeader("Send-At"); value != "" {
		c.SendAt = f.controlTime(name, value, zone)
	}
	if name, value := h.takeControlHeader("Delivery-Attempts"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 100 {
			f.Add("headers."+name, "must be a whole number from 1 to 100")
		}
		c.DeliveryAttempts = n
	}
	_, c.Gateway = h.takeControlHeader("Gateway")
	if name, value := h.takeControlHeader("Tracking-Enabled"); value != "" {
		c.TrackingEnabled = f.controlBool(name, value)
	}
	name, key := h.takeControlHeader("Idempotency-Key")
	if c.IdempotencyKey = strings.Trim(key, `"`); len(c.IdempotencyKey) > maxIdempotencyKey {
		f.Add("headers."+name, "must not be longer than %d octets", maxIdempotencyKey)
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
		f.Add("headers."+name, "must be one of %s", strings.Join(words, ", "))
	}
	return value
}

// takeControlHeader removes all headers of a purpose. It returns the name and value of the one with
// precedence.
func (h *rawHeader) takeControlHeader(purpose string) (name, value string) {
	for _, prefix := range controlPrefixes {
		for _, field := range h.fields {
			if value == "" && field.name == strings.ToLower(prefix+purpose) {
				name, value = string(field.bytes[:len(field.name)]), decodeText(field.value())
			}
		}
		h.remove(prefix + purpose)
	}
	return name, value
}

// controlTime parses ISO 8601, or Unix milliseconds as EmailEngine's clients send.
func (f *faults) controlTime(name, value string, zone *time.Location) time.Time {
	if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms > 0 &&
		ms < math.MaxInt64/int64(time.Millisecond) {
		return time.UnixMilli(ms).UTC()
	}
	t, err := schedule.Instant(value, zone)
	f.addError("headers."+name, err)
	return t
}

func (f *faults) controlBool(name, value string) *bool {
	result := true
	switch strings.ToLower(value) {
	case "true", "yes", "y", "t", "1", "on":
	case "false", "no", "n", "f", "0", "off":
		result = false
	default:
		f.Add("headers."+name, "must be true or false")
	}
	return &result
}
