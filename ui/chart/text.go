package chart

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Count returns a number with its digits in groups of three.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:] // a narrow no-break space
	}
	return s
}

// short returns a number in a few characters. The table has all of its digits.
func short(n float64) string {
	if n < 10_000 {
		return Count(int(n))
	}
	for _, unit := range []string{"k", "M", "B", "T"} {
		if n /= 1000; n < 999.5 {
			return strconv.FormatFloat(n, 'g', 3, 64) + unit
		}
	}
	return fmt.Sprintf("%.2gT", n)
}

// clip shortens a text to a number of characters.
func clip(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// coordinate returns a coordinate, to a hundredth.
func coordinate(n float64) string {
	return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64)
}

// percent returns a part of a whole in percent; empty: there is no whole.
func percent(n, whole int) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f\u00a0%%", 100*float64(n)/float64(whole))
}

// at returns a figure of a list; 0: it has none, or one below 0.
func at(values []int, i int) int {
	if i >= len(values) {
		return 0
	}
	return max(0, values[i])
}
