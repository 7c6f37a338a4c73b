package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// units are the numbers of bytes of the units. KB etc. are powers of 1000, KiB etc. powers of 1024.
var units = map[string]int64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 1 << 10, "MIB": 1 << 20,
	"GIB": 1 << 30}

// parseSize parses 25MB, 10MiB or plain bytes. 25M is refused because it is ambiguous.
func parseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGIbkmgi ")
	by, ok := units[strings.ToUpper(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n > math.MaxInt64/by || n < math.MinInt64/by {
		return 0, fmt.Errorf("not a size: %q", text)
	}
	return Size(n * by), nil
}

// Memory is a number of bytes, or a share of the memory that there is. The zero value means no limit.
type Memory struct {
	Size  Size
	Share float64 // 0: Size counts
}

// parseMemory parses a size, or a percentage such as 50%.
func parseMemory(text string) (m Memory, err error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		if m.Size, err = parseSize(text); err == nil && m.Size < 0 {
			err = fmt.Errorf("not a size: %q", text)
		}
		return m, err
	}
	n, err := strconv.Atoi(percent)
	if err != nil || n < 1 || n > 95 {
		return m, fmt.Errorf("not a share: %q", text)
	}
	return Memory{Share: float64(n) / 100}, nil
}
