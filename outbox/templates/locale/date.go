package locale

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Date formats a time in a style ("short", "medium", "long", "full" for a day; "time") or with a pattern of
// Format.
func (l Locale) Date(t time.Time, style string) string {
	if style == "time" {
		return l.Format(t, l.words.Time)
	}
	return l.Format(t, cmp.Or(l.words.Styles[style], style))
}

// tokens are the parts of a pattern, longer ones first.
var tokens = [...]string{
	"YYYY", "YY", "MMMM", "MMM", "MM", "M", "DDDD", "DDD", "DD", "Do", "D", "dddd", "ddd", "d", "HH", "H", "hh",
	"h", "mm", "m", "ss", "s",
	"SSS", "A", "a", "ZZ", "Z", "X", "x",
}

// Format formats a time with a moment.js pattern: YYYY, MM, MMMM, DD, Do, dddd, HH, h, mm, ss, A, Z and so
// on. Text in brackets and other text is copied.
func (l Locale) Format(t time.Time, pattern string) string {
	var b strings.Builder
scan:
	for pattern != "" {
		if pattern[0] == '[' {
			if literal, rest, ok := strings.Cut(pattern[1:], "]"); ok {
				b.WriteString(literal)
				pattern = rest
				continue
			}
		}
		for _, token := range tokens {
			if strings.HasPrefix(pattern, token) {
				b.WriteString(l.token(t, token))
				pattern = pattern[len(token):]
				continue scan
			}
		}
		b.WriteByte(pattern[0])
		pattern = pattern[1:]
	}
	return b.String()
}

func (l Locale) token(t time.Time, token string) string {
	switch token {
	case "YYYY":
		return padded(t.Year(), 4)
	case "YY":
		return padded(t.Year()%100, 2)
	case "MMMM":
		return l.words.Months[t.Month()-1]
	case "MMM":
		return l.words.MonthsShort[t.Month()-1]
	case "MM", "M":
		return padded(int(t.Month()), len(token))
	case "DDDD":
		return padded(t.YearDay(), 3)
	case "DDD":
		return padded(t.YearDay(), 1)
	case "DD", "D":
		return padded(t.Day(), len(token))
	case "Do":
		return l.ordinal(t.Day())
	case "dddd":
		return l.words.Days[t.Weekday()]
	case "ddd":
		return l.words.DaysShort[t.Weekday()]
	case "d":
		return padded(int(t.Weekday()), 1)
	case "HH", "H":
		return padded(t.Hour(), len(token))
	case "hh", "h":
		return padded((t.Hour()+11)%12+1, len(token))
	case "mm", "m":
		return padded(t.Minute(), len(token))
	case "ss", "s":
		return padded(t.Second(), len(token))
	case "SSS":
		return padded(t.Nanosecond()/1e6, 3)
	case "A":
		return l.words.Halves[t.Hour()/12]
	case "a":
		return strings.ToLower(l.words.Halves[t.Hour()/12])
	case "ZZ":
		return t.Format("-0700")
	case "Z":
		return t.Format("-07:00")
	case "X":
		return strconv.FormatInt(t.Unix(), 10)
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// ordinal writes a day of the month as an ordinal: 1st, 22nd; with a dot or plain in other languages.
func (l Locale) ordinal(n int) string {
	switch base, _ := l.tag.Base(); base.String() {
	case "en":
		suffix := "th"
		if last := n % 10; n/10 != 1 && last >= 1 && last <= 3 {
			suffix = []string{"st", "nd", "rd"}[last-1]
		}
		return strconv.Itoa(n) + suffix
	case "de", "da", "nb", "fi", "is", "cs", "sk", "hu", "hr", "sl", "sr", "et", "lv", "pl", "tr":
		return strconv.Itoa(n) + "."
	}
	return strconv.Itoa(n)
}

func padded(n, width int) string { return fmt.Sprintf("%0*d", width, n) }
