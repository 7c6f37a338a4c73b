package redisdb

import (
	"strconv"
	"strings"
	"time"
)

// Millis returns a time as Redis stores it: milliseconds since 1970, 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time is the inverse of Millis.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// ParseTime parses a time of Redis. An invalid text is the zero time.
func ParseTime(text string) time.Time {
	n, _, _ := strings.Cut(text, ".") // numbers of Lua may come with a fraction
	ms, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return Time(ms)
}
