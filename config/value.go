package config

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parse parses text into the field at p. It returns what is wrong with the text and what to write instead,
// or "".
func (k Key) parse(text string, p any) (fault string) {
	switch {
	case text == "" && k.Empty == "":
		return "must have a value; " + k.want()
	case text == "":
		return "" // the zero value means the same
	case k.Values != nil && !slices.Contains(k.Values, text):
		return "is not one of the choices; " + k.want()
	}
	switch p := p.(type) {
	case *string:
		*p, fault = checked(k.check, text)
	case *Secret:
		text, fault = checked(k.check, text)
		*p = Secret(text)
	case *bool:
		var err error
		if *p, err = strconv.ParseBool(text); err != nil {
			fault = "is neither true nor false; " + k.want()
		}
	case *int:
		*p, fault = bounded(k, text, "is not a whole number", strconv.Atoi)
	case *float64:
		*p, fault = bounded(k, text, "is not a number", func(s string) (float64, error) {
			return strconv.ParseFloat(s, 64)
		})
	case *time.Duration:
		*p, fault = bounded(k, text, "is not a duration", time.ParseDuration)
	case *Memory:
		var err error
		if *p, err = parseMemory(text); err != nil {
			fault = "is neither a size nor a share; " + k.want()
		}
	case *Size:
		*p, fault = bounded(k, text, "is not a size", parseSize)
	case *[]time.Duration:
		*p, fault = k.parseList(text)
	case *[]netip.Prefix:
		*p, fault = parseItems(k, text, "network", parseNetwork)
	case *[]netip.AddrPort:
		*p, fault = parseItems(k, text, "IP address", parseNameServer)
	case *slog.Level:
		_ = p.UnmarshalText([]byte(text)) // one of the choices
	case *Relay:
		*p, fault = parseRelay(text)
	case *Mailbox:
		*p, fault = parseMailbox(text)
	}
	return fault
}

// bounded parses one value and checks the limits of its key, which are written like values.
func bounded[T int | float64 | time.Duration | Size](k Key, text, wrong string,
	read func(string) (T, error)) (v T, fault string) {
	v, err := read(text)
	if err != nil {
		return v, wrong + "; " + k.want()
	}
	low, errLow := read(k.Min)
	high, errHigh := read(k.Max)
	// not v < low: NaN is out of range too
	if (errLow == nil && !(v >= low)) || (errHigh == nil && !(v <= high)) {
		return v, "is out of range; " + k.want()
	}
	return v, ""
}

// maxList limits a list, as the API does.
const maxList = 100

func (k Key) parseList(text string) (out []time.Duration, fault string) {
	items := strings.Split(text, ",")
	if len(items) > maxList {
		return nil, fmt.Sprintf("has %d entries; write %d at most", len(items), maxList)
	}
	for _, item := range items {
		d, fault := bounded(k, strings.TrimSpace(item), "holds something that is not a duration",
			time.ParseDuration)
		if fault != "" {
			return nil, fault
		}
		out = append(out, d)
	}
	return out, ""
}

// parseItems parses a list.
func parseItems[T any](k Key, text, what string, parse func(string) (T, bool)) (out []T, fault string) {
	items := strings.Split(text, ",")
	if len(items) > maxList {
		return nil, fmt.Sprintf("has %d entries; write %d at most", len(items), maxList)
	}
	for _, item := range items {
		p, ok := parse(strings.TrimSpace(item))
		if !ok {
			return nil, fmt.Sprintf("holds %q, which is no %s; ", strings.TrimSpace(item), what) + k.want()
		}
		out = append(out, p)
	}
	return out, ""
}

// parseNameServer reads an IP address with or without a port.
func parseNameServer(text string) (netip.AddrPort, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(addr.Unmap(), 53), addr.Zone() == ""
	}
	p, err := netip.ParseAddrPort(text)
	return p, err == nil && p.Port() > 0 && p.Addr().Zone() == ""
}

// parseNetwork reads an IP address or a range. An IPv4 address mapped to IPv6 is an IPv4 address.
func parseNetwork(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), err == nil && addr.Zone() == ""
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

// want returns what to write, with an example if the form is not obvious.
func (k Key) want() string {
	if k.Values != nil {
		return "write " + join(k.Values)
	}
	form := k.Kind
	switch form {
	case "duration":
		form = "a duration with its unit, such as 5s, 30m or 168h"
	case "list of durations":
		form = "durations with their units, such as 1m, 5m, 2h"
	case "list of networks":
		form = "IP addresses or ranges, such as 127.0.0.1, 10.0.0.0/8, 2001:db8::/32"
	case "list of name servers":
		form = "IP addresses with or without a port, such as 127.0.0.1, 192.0.2.53:5353, [2001:db8::53]:5353"
	case "size or share":
		form = "a size such as 2GB, or a share from 1% to 95%"
	case "size":
		form = "a size such as 25MB, 10MiB or plain bytes"
	case "whole number", "number", "path":
		form = "a " + form
	}
	switch {
	case k.Min != "" && k.Max != "":
		return "write " + form + ", from " + k.Min + " to " + k.Max
	case k.Min != "":
		return "write " + form + ", " + k.Min + " or more"
	}
	return "write " + form
}

func join(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

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
