package limits

import (
	"slices"
	"strconv"
	"strings"
)

// Reservation is a text that a waiting message keeps between two calls of [Limits.Reserve]. Only this package
// reads it. An empty or unreadable one counts as none.
type Reservation string

// maxScopes bounds a reservation's scopes beyond the ones of its last answer. A message has two, bulk mail
// four, and more if it tries several gateways.
const maxScopes = 16

// entry is the state of a message in one scope: it has a reservation, or has passed the scope.
type entry struct {
	scope  string
	passed bool
	// the scope's at that time: replaced when its rate changes, or its relay asks for a pause
	generation int64
	at         int64 // when it was reserved, in microseconds
	reason     string
}

// entries parses a reservation: one word for each scope, "<p or b>.<generation>.<time>.<reason>.<scope>".
func (s Reservation) entries() []entry {
	var entries []entry
	for word := range strings.FieldsSeq(string(s)) {
		parts := strings.SplitN(word, ".", 5)
		if len(parts) != 5 {
			return nil
		}
		generation, err1 := strconv.ParseInt(parts[1], 36, 64)
		at, err2 := strconv.ParseInt(parts[2], 36, 64)
		if err1 != nil || err2 != nil || at < 0 || generation < 0 {
			return nil
		}
		entries = append(entries, entry{
			scope: parts[4], passed: parts[0] == "p", generation: generation, at: at, reason: parts[3],
		})
	}
	return entries
}

// Join returns the reservations of two messages as one.
func (s Reservation) Join(other Reservation) Reservation {
	return Reservation(strings.TrimSpace(string(s) + " " + string(other)))
}

// Of returns a reservation's part for one scope.
func (s Reservation) Of(scope string) Reservation {
	var words []string
	for word := range strings.FieldsSeq(string(s)) {
		if parts := strings.SplitN(word, ".", 5); strings.TrimSuffix(parts[len(parts)-1], bulkSuffix) == scope {
			words = append(words, word)
		}
	}
	return Reservation(strings.Join(words, " "))
}

// makeReservation returns the reservation from a message's entries and a reply: the scopes that it passed,
// and the full one.
func makeReservation(had []entry, asked []Scope, r reserveReply) Reservation {
	entries := make([]entry, 0, len(had)+r.Full)
	for i, s := range asked[:r.Full] {
		if r.Generations[i] == 0 {
			continue // it would have let the message go, and took nothing
		}
		entries = append(entries, entry{scope: s.Name, passed: i < r.Full-1, generation: r.Generations[i]})
	}
	reserved := &entries[len(entries)-1]
	reserved.at, reserved.reason = r.At, r.Reason
	for _, p := range had {
		known := func(q entry) bool { return q.scope == p.scope }
		if len(entries) < maxScopes && !slices.ContainsFunc(entries, known) {
			entries = append(entries, p)
		}
	}
	words := make([]string, len(entries))
	for i, p := range entries {
		words[i] = p.word()
	}
	return Reservation(strings.Join(words, " "))
}

func (e entry) word() string {
	kind := "b"
	if e.passed {
		kind = "p"
	}
	return kind + "." + strconv.FormatInt(e.generation, 36) + "." + strconv.FormatInt(e.at, 36) + "." +
		e.reason + "." + e.scope
}

// entryIn returns the entry of a scope; zero if there is none.
func entryIn(entries []entry, scope string) entry {
	for _, p := range entries {
		if p.scope == scope {
			return p
		}
	}
	return entry{}
}
