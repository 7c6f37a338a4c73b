package locale

import (
	"math"
	"strconv"
	"strings"
)

// maxDecimals is the maximum number of decimals.
const maxDecimals = 20

// Number formats a number with a minimum and maximum of decimals, rounded half up. A negative number that
// rounds to zero keeps its minus, as in CLDR.
func (l Locale) Number(n float64, least, most int) string {
	text := l.digits(n, least, most, l.words.Decimal, l.words.Group)
	if n < 0 {
		return l.words.Minus + text
	}
	return text
}

// Currency formats an amount of money. The currency is an ISO 4217 code such as "EUR"; other text is printed
// as it is.
func (l Locale) Currency(n float64, code string) string {
	code = strings.ToUpper(code)
	places, ok := known().digits[code]
	if !ok {
		places = 2
	}
	text := l.digits(n, places, places, l.words.Money.Decimal, l.words.Money.Group)
	shape := l.words.Money.Positive
	if n < 0 {
		shape = l.words.Money.Negative
	}
	symbol, ok := l.words.Money.Symbols[code]
	if !ok {
		symbol = code
		if isCode(code) { // a code is separated from the amount
			shape = strings.Replace(strings.Replace(shape, "¤#", "¤\u00a0#", 1), "#¤", "#\u00a0¤", 1)
		}
	}
	return strings.Replace(strings.Replace(shape, "#", text, 1), "¤", symbol, 1)
}

func isCode(s string) bool { return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" }

// digits writes the size of a number, without its sign.
func (l Locale) digits(n float64, least, most int, decimal, group string) string {
	if math.IsNaN(n) {
		return "NaN"
	}
	if math.IsInf(n, 0) {
		return "∞"
	}
	least = min(max(least, 0), maxDecimals)
	most = min(max(most, least), maxDecimals)
	whole, fraction, _ := strings.Cut(rounded(math.Abs(n), most), ".")
	for len(fraction) > least && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	for len(fraction) < least {
		fraction += "0"
	}
	if fraction == "" {
		return l.grouped(whole, group)
	}
	return l.grouped(whole, group) + decimal + fraction
}

// grouped puts the sign between thousands.
func (l Locale) grouped(whole, sign string) string {
	if len(whole) < l.words.MinGrouped || sign == "" {
		return whole
	}
	var groups []string
	size := 3
	for len(whole) > size {
		groups = append([]string{whole[len(whole)-size:]}, groups...)
		whole = whole[:len(whole)-size]
		if l.words.Lakh {
			size = 2
		}
	}
	return strings.Join(append([]string{whole}, groups...), sign)
}

// rounded rounds half away from zero by the decimal form: 1.005 becomes 1.01, although its binary value is
// smaller.
func rounded(n float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(n), 'f', -1, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) <= decimals {
		return text
	}
	up := fraction[decimals] >= '5'
	all := []byte(whole + fraction[:decimals])
	for i := len(all) - 1; up && i >= 0; i-- {
		if up = all[i] == '9'; up {
			all[i] = '0'
		} else {
			all[i]++
		}
	}
	if up {
		all = append([]byte{'1'}, all...)
	}
	if decimals == 0 {
		return string(all)
	}
	return string(all[:len(all)-decimals]) + "." + string(all[len(all)-decimals:])
}
