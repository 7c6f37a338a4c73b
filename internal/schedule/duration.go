package schedule

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// long matches days and weeks in a duration.
var long = regexp.MustCompile(`([0-9.]+)([dw])`)

// ParseDuration parses a duration as [time.ParseDuration] does, and also days of 24 hours and weeks: 7d, 2w,
// 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	return time.ParseDuration(long.ReplaceAllStringFunc(text, func(part string) string {
		n, unit := part[:len(part)-1], 24.
		if strings.HasSuffix(part, "w") {
			unit *= 7
		}
		days, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return part
		}
		return strconv.FormatFloat(days*unit, 'f', -1, 64) + "h"
	}))
}
