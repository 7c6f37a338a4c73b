package smtpsend

import (
	"regexp"
	"strings"
	"time"
)

var (
	waitPattern = regexp.MustCompile(
		`(?i)(?:in|after|wait|for|within|least|next|retry[- ]after:?|backoff)\s+(?:another\s+|about\s+)?(\d{1,6})\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|h)\b`)
	// milter-greylist: "please come back in 00:05:00"
	clockPattern = regexp.MustCompile(`(?i)\b(?:in|after)\s+(\d{1,2}):([0-5]\d):([0-5]\d)\b`)
	datePattern  = regexp.MustCompile(
		`(?i)after\s+((?:mon|tue|wed|thu|fri|sat|sun),\s+\d{1,2}\s+\w{3}\s+\d{4}\s+[\d:]{8}\s+(?:[+-]\d{4}|[a-z]{3}))`)
)

// retryAfter returns the wait that a reply asks for ("try again in 5 minutes", "try again after <date>"), up
// to a day.
func retryAfter(text string, now time.Time) time.Duration {
	const longest = 24 * time.Hour
	var wait time.Duration
	if m := waitPattern.FindStringSubmatch(text); m != nil {
		wait, _ = time.ParseDuration(m[1] + strings.ToLower(m[2][:1]))
	} else if m := clockPattern.FindStringSubmatch(text); m != nil {
		wait, _ = time.ParseDuration(m[1] + "h" + m[2] + "m" + m[3] + "s")
	} else if m := datePattern.FindStringSubmatch(text); m != nil && !now.IsZero() {
		for _, layout := range []string{"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700"} {
			if at, err := time.Parse(layout, m[1]); err == nil {
				wait = at.Sub(now)
			}
		}
	}
	return min(max(wait, 0), longest)
}
