package limits

import (
	"slices"
	"strconv"
	"strings"
)

// Reservation is what a waiting message keeps between two calls of [Limits.Take]: a short text that only this
// package reads. An empty one is none, and one that can't be read counts as none.
type Reservation string

// maxScopes is how many scopes a reservation remembers. A message has two, and more if it tries several
// gateways.
const maxScopes = 10

// entry is what a message has in one scope: a reserved time, or that it has passed the scope.
type entry struct {
	scope  string
	passed bool
	// of the scope: another one when its rate has changed since, or its relay has asked for a pause
	generation int64
	at         int64 // microseconds; of a reservation
	reason     string
}

// entries reads a reservation: one word for each scope, "<p or b>.<generation>.<time>.<reason>.<scope>".
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

// makeReservation adds to the entries of a message those of the reply: scopes that it passed, and the full
// one.
func makeReservation(had []entry, asked []Scope, r takeReply) Reservation {
	entries := make([]entry, 0, len(had)+r.full+1)
	for i, s := range asked[:r.full+1] {
		entries = append(entries, entry{scope: s.Name, passed: i < r.full, generation: r.generations[i]})
	}
	reserved := &entries[r.full]
	reserved.at, reserved.reason = r.at, r.reason
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

// entryIn returns the entry of a scope; zero: there is none.
func entryIn(entries []entry, scope string) entry {
	for _, p := range entries {
		if p.scope == scope {
			return p
		}
	}
	return entry{}
}
