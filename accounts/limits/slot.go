package limits

import (
	"slices"
	"strconv"
	"strings"
)

// Slot is what a waiting message keeps between two calls of [Limits.Take]: small text that means something to this package only. The
// empty slot is none, and one that can't be read counts as none.
type Slot string

// slotMax is how many scopes a slot remembers. A message has two, and some more where it tries several gateways.
const slotMax = 10

// place is what a message has in one scope: a booking, or the memory of having passed it.
type place struct {
	scope      string
	passed     bool
	generation int64 // of the scope: another one when its rate has changed since, or its relay has asked for a pause
	at         int64 // microseconds; of a booking
	reason     string
}

// places reads a slot: one word for each scope, "<p or b>.<generation>.<time>.<reason>.<scope>".
func (s Slot) places() []place {
	var places []place
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
		places = append(places, place{
			scope: parts[4], passed: parts[0] == "p", generation: generation, at: at, reason: parts[3],
		})
	}
	return places
}

// makeSlot adds to the places a message had those it has by the reply: passed up to the full scope, and booked there.
func makeSlot(had []place, asked []Scope, r takeReply) Slot {
	places := make([]place, 0, len(had)+r.full+1)
	for i, s := range asked[:r.full+1] {
		places = append(places, place{scope: s.Name, passed: i < r.full, generation: r.generations[i]})
	}
	booked := &places[r.full]
	booked.at, booked.reason = r.at, r.reason
	for _, p := range had {
		known := func(q place) bool { return q.scope == p.scope }
		if len(places) < slotMax && !slices.ContainsFunc(places, known) {
			places = append(places, p)
		}
	}
	words := make([]string, len(places))
	for i, p := range places {
		words[i] = p.word()
	}
	return Slot(strings.Join(words, " "))
}

func (p place) word() string {
	kind := "b"
	if p.passed {
		kind = "p"
	}
	return kind + "." + strconv.FormatInt(p.generation, 36) + "." + strconv.FormatInt(p.at, 36) + "." + p.reason + "." + p.scope
}

// placeIn finds what a message has in a scope; the zero place is nothing.
func placeIn(places []place, scope string) place {
	for _, p := range places {
		if p.scope == scope {
			return p
		}
	}
	return place{}
}
