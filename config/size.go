package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// unit returns the number of bytes of a unit. KB etc. are powers of 1000, KiB etc. powers of 1024.
func unit(name string) (int64, bool) {
	switch strings.ToUpper(name) {
	case "", "B":
		return 1, true
	case "KB":
		return 1000, true
	case "MB":
		return 1000 * 1000, true
	case "GB":
		return 1000 * 1000 * 1000, true
	case "KIB":
		return 1 << 10, true
	case "MIB":
		return 1 << 20, true
	case "GIB":
		return 1 << 30, true
	}
	return 0, false
}

// parseSize parses 25MB, 10MiB or plain bytes. 25M is refused because it is ambiguous.
func parseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGIbkmgi ")
	by, ok := unit(strings.TrimSpace(text[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n > math.MaxInt64/by || n < math.MinInt64/by {
		return 0, fmt.Errorf("not a size: %q", text)
	}
	return Size(n * by), nil
}
