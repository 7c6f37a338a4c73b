package digest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/digest/mail"
)

// group is the events about one thing.
type group struct {
	category, entityType, entityID string
	count                          int
	first, last                    int64 // Unix milliseconds
	priority                       int
	different                      int // actors
	actors                         []mail.Actor
	newest                         line
}

// mostActors is how many actors of a group are named.
const mostActors = 3

// digits is how many hexadecimal digits stand for a group, and for an actor, in the sets of scripts.
const digits = 12

func digitsOf(text string) string {
	sum := sha1.Sum([]byte(text)) // scripts of Redis have no other; it protects nothing
	return hex.EncodeToString(sum[:digits/2])
}

// grouped returns the groups of a category's events, which are in the order in which they came. It counts
// actors that are not in seen, and adds them.
func grouped(category string, lines []line, seen map[string]bool) []*group {
	var all []*group
	byName := map[string]*group{}
	for _, l := range lines {
		name := groupField(l.entityType, l.entityID)
		g := byName[name]
		if g == nil {
			g = &group{category: category, entityType: l.entityType, entityID: l.entityID, first: l.at, last: l.at}
			byName[name], all = g, append(all, g)
		}
		g.add(l, seen)
	}
	return all
}

func (g *group) add(l line, seen map[string]bool) {
	g.count++
	g.first = min(g.first, l.at)
	g.priority = max(g.priority, l.priority)
	if l.at >= g.last {
		g.last, g.newest = l.at, l
	}
	who := cmp.Or(l.actorID, l.actorName)
	if who == "" {
		return
	}
	key := g.category + digitsOf(groupField(l.entityType, l.entityID)) + digitsOf(who)
	if !seen[key] {
		seen[key] = true
		g.different++
	}
	g.actors = slices.DeleteFunc(g.actors, func(a mail.Actor) bool { return cmp.Or(a.ID, a.Name) == who })
	g.actors = slices.Insert(g.actors, 0, mail.Actor{ID: l.actorID, Name: l.actorName, URL: l.actURL})
	g.actors = g.actors[:min(len(g.actors), mostActors)]
}

// folded returns a group as scripts fold it. lua/prelude.lua has its form.
func folded(category, name, value string) (*group, error) {
	g := &group{category: category}
	g.entityType, g.entityID, _ = strings.Cut(name, "\x00")
	parts := strings.SplitN(value, " ", 7)
	if len(parts) < 7 {
		return nil, fmt.Errorf("read the group %q: it has %d parts", name, len(parts))
	}
	var numbers [6]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the group %q: %w", name, err)
		}
		numbers[i] = n
	}
	g.count, g.first, g.last = int(numbers[0]), numbers[1], numbers[2]
	g.priority, g.different = int(numbers[3]), int(numbers[4])
	size := int(numbers[5])
	if size < 0 || size > len(parts[6]) {
		return nil, fmt.Errorf("read the group %q: its actors have %d bytes", name, size)
	}
	var actors [][3]string
	if err := json.Unmarshal([]byte(parts[6][:size]), &actors); err != nil {
		return nil, fmt.Errorf("read the actors of the group %q: %w", name, err)
	}
	for _, a := range actors {
		g.actors = append(g.actors, mail.Actor{ID: a[0], Name: a[1], URL: a[2]})
	}
	var err error
	g.newest, err = readLine(parts[6][size:])
	return g, err
}

// rank orders groups by priority, count and last event, each highest first, then by name. The order is total.
func rank(all []*group) {
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(b.priority, a.priority),
			cmp.Compare(b.count, a.count), cmp.Compare(b.last, a.last), cmp.Compare(a.category, b.category),
			cmp.Compare(a.entityType, b.entityType), cmp.Compare(a.entityID, b.entityID))
	})
}

// weight is the number weight in the last event's payload, which goes before everything else, or 0.
func (g *group) weight() float64 {
	if !strings.Contains(string(g.newest.payload), `"weight"`) {
		return 0
	}
	var payload struct {
		Weight float64 `json:"weight"`
	}
	if json.Unmarshal(g.newest.payload, &payload) != nil {
		return 0
	}
	return payload.Weight
}

// capped returns the groups that an email shows, at most most. If there are several categories, it takes at
// most mostOfOne of each. It counts what it leaves out.
func capped(all []*group, most, mostOfOne int) (shown []*group, rest mail.Rest) {
	several := slices.ContainsFunc(all, func(g *group) bool { return g.category != all[0].category })
	of := map[string]int{}
	for _, g := range all {
		if len(shown) >= most || several && of[g.category] >= mostOfOne {
			rest.Groups++
			rest.Events += g.count
			continue
		}
		of[g.category]++
		shown = append(shown, g)
	}
	return shown, rest
}

// shown returns a group as mail and templates have it.
func (g *group) shown(kind string) mail.Group {
	return mail.Group{Category: g.category, Kind: kind, EntityType: g.entityType, EntityID: g.entityID,
		Title: g.newest.title, URL: g.newest.url, Count: g.count, First: time.UnixMilli(g.first).UTC(),
		Last: time.UnixMilli(g.last).UTC(), Actors: slices.Clone(g.actors),
		Others:   max(0, g.different-len(g.actors)),
		Priority: priorities[min(max(0, g.priority), urgent)], Payload: g.newest.payload}
}
