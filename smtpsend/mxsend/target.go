package mxsend

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// Target says how to deliver. It is comparable, so that a changed gateway is recognised.
type Target struct {
	ID string // gateway's id, for logs; may be empty
	// Addresses are the addresses to connect from, as [EncodeSources] writes them. If empty, the system
	// chooses.
	Addresses string
	// TLS is empty, or "required": a server without STARTTLS gets nothing. Neither verifies certificates.
	TLS string

	Connections           int // open at the same time to one address of a host; defaults to 10
	MessagesPerConnection int // transactions before a connection is closed; defaults to 100
}

// TLSRequired is the value of [Target.TLS] that refuses servers without STARTTLS.
const TLSRequired = "required"

// String returns the id.
func (t Target) String() string { return t.ID }

// Check returns an error if the target can't work.
func (t Target) Check() error {
	if t.TLS != "" && t.TLS != TLSRequired {
		return fmt.Errorf("TLS must be empty or %q", TLSRequired)
	}
	_, err := DecodeSources(t.Addresses)
	return err
}

// Source is an address to connect from.
type Source struct {
	Address netip.Addr
	Name    string // to greet with; the address' PTR record must have it, and its A or AAAA record the address
	Weight  int    // share of the recipients' domains; defaults to 1
}

// maxSources is how many source addresses a target may have.
const maxSources = 64

// EncodeSources returns source addresses as one text. The same addresses give the same text in any order.
func EncodeSources(sources []Source) string {
	lines := make([]string, 0, len(sources))
	for _, s := range sources {
		lines = append(lines, fmt.Sprintf("%s %s %d", s.Address.Unmap(), s.Name, max(1, s.Weight)))
	}
	slices.Sort(lines)
	return strings.Join(lines, ";")
}

// DecodeSources returns the addresses in a text of EncodeSources. It refuses what isn't such a text.
func DecodeSources(text string) ([]Source, error) {
	if text == "" {
		return nil, nil
	}
	var sources []Source
	for line := range strings.SplitSeq(text, ";") {
		words := strings.Split(line, " ")
		if len(words) != 3 {
			return nil, errors.New("a source address has an address, a name and a weight")
		}
		address, err := netip.ParseAddr(words[0])
		weight, notNumber := strconv.Atoi(words[2])
		switch {
		case err != nil || address.Zone() != "" || address.IsUnspecified() || address.IsMulticast():
			return nil, fmt.Errorf("source address %q isn't an IP address", words[0])
		case !smtpsend.ValidHost(words[1]) || !strings.Contains(words[1], "."):
			return nil, fmt.Errorf("name %q of source address %s isn't a full host name", words[1], address)
		case notNumber != nil || weight < 1 || weight > 1000:
			return nil, fmt.Errorf("weight of source address %s isn't 1 to 1000", address)
		case slices.ContainsFunc(sources, func(s Source) bool { return s.Address == address }):
			return nil, fmt.Errorf("source address %s is there twice", address)
		}
		sources = append(sources, Source{address, words[1], weight})
	}
	if len(sources) > maxSources {
		return nil, fmt.Errorf("%d source addresses are more than %d", len(sources), maxSources)
	}
	return sources, nil
}

// choose returns the source of a family for a destination. It is the same all day, because greylisting asks
// for that; over many destinations, sources are chosen by weight (rendezvous hashing).
func choose(sources []Source, ipv6 bool, destination string, now time.Time) (Source, bool) {
	fits := slices.DeleteFunc(slices.Clone(sources), func(s Source) bool { return s.Address.Is6() != ipv6 })
	if len(fits) == 0 {
		return Source{}, false
	}
	draw := func(s Source) float64 {
		sum := sha256.Sum256([]byte(s.Address.String() + " " + destination + " " + now.UTC().Format(time.DateOnly)))
		u := (float64(binary.BigEndian.Uint64(sum[:])>>11) + 0.5) / (1 << 53) // between 0 and 1, neither included
		return float64(max(1, s.Weight)) / -math.Log(u)
	}
	return slices.MaxFunc(fits, func(a, b Source) int { return cmp.Compare(draw(a), draw(b)) }), true
}
