package mail

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxSubject = 150 // characters
	maxPreview = 140 // characters, as many as lists of mail show
	maxName    = 40  // characters of a name in the subject
	minTitle   = 20  // characters of a title in the subject, whatever else is there
)

// subject tells the most important group and how much more there is.
func (w *writer) subject(groups []group) string {
	if len(groups) == 0 {
		return w.heading()
	}
	g := groups[0]
	frame := func(title string) string { return title }
	told := g.Count
	if first, who := w.shortPeople(g); first != "" && begins(g.Title, first) {
		told = 1 // the title is a sentence about one event: "Ann commented on …"
	} else if who != "" {
		frame = func(title string) string { return w.labelled(who, title) }
	}
	if more := w.d.Total - told; more > 0 {
		lead := frame
		frame = func(title string) string { return w.counted(w.words.More, more, "lead", lead(title)) }
	} else if g.Count > 1 {
		lead := frame
		frame = func(title string) string { return lead(title) + " (" + g.Updates + ")" }
	}
	room := maxSubject - utf8.RuneCountInString(frame(isolated("")))
	if isolated(g.Title) != g.Title {
		room -= isolates
	}
	return frame(isolated(cut(g.Title, max(room, minTitle))))
}

// shortPeople returns the name of the first actor and the actors in few words.
func (w *writer) shortPeople(g group) (first, who string) {
	all := names(g.Actors)
	if len(all) > 0 {
		first = all[0]
	}
	others := g.Others
	if len(all)+others > 2 && first != "" {
		all, others = all[:1], others+len(all)-1
	}
	short := make([]string, len(all))
	for i, name := range all {
		short[i] = cut(name, maxName)
	}
	return first, w.people(short, others)
}

// begins reports whether a title begins with a name, as in "Ann commented".
func begins(title, name string) bool {
	if len(title) < len(name) || !strings.EqualFold(title[:len(name)], name) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(title[len(name):])
	return !unicode.IsLetter(next) && !unicode.IsDigit(next) && !unicode.IsMark(next)
}

// preview returns what the subject lacks.
func (w *writer) preview(groups []group) string {
	var parts []string
	switch {
	case w.single:
		parts = []string{groups[0].Kind, groups[0].When}
	case len(groups) < 2:
		parts = []string{w.heading(), w.span()}
	default:
		for _, g := range groups[1:min(len(groups), 5)] {
			parts = append(parts, isolated(cut(g.Title, maxPreview/2)))
		}
	}
	return cut(joined(parts...), maxPreview)
}

// heading says what the mail is, by the schedule.
func (w *writer) heading() string {
	mode, _, _ := strings.Cut(w.d.Schedule, "@")
	if heading, ok := w.words.Summaries[strings.ToLower(mode)]; ok {
		return heading
	}
	return w.words.Summary
}

// span returns how many updates there are, and their days.
func (w *writer) span() string {
	if len(w.d.Groups) == 0 {
		return w.words.Nothing
	}
	updates := w.counted(w.words.Updates, w.d.Total)
	switch from, to := w.d.From.In(w.zone), w.d.To.In(w.zone); {
	case w.d.From.IsZero() || w.d.To.IsZero():
		return updates
	case w.day(from) == w.day(to):
		return joined(updates, w.format.Date(to, "full"))
	default:
		return joined(updates, w.format.Date(from, "long")+" – "+w.format.Date(to, "long"))
	}
}

// rest returns a sentence about the groups beyond the cap, or "".
func (w *writer) rest() string {
	if w.d.Rest == (Rest{}) {
		return ""
	}
	return w.counted(w.words.Rest, w.d.Rest.Events, "groups", w.counted(w.words.Groups, w.d.Rest.Groups))
}

// when is the time of an event, with its day if that is not named above the groups.
func (w *writer) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(w.zone)
	clock := w.format.Date(t, "time")
	if w.oneDay {
		return clock
	}
	return w.format.Date(t, "medium") + ", " + clock
}

// names are the names of actors. Those without one are "".
func names(actors []Actor) []string {
	all := make([]string, len(actors))
	for i, a := range actors {
		all[i] = a.Name
	}
	return all
}

// people names the actors: "Ann, Bo and 3 others". An actor without a name is one of the others.
func (w *writer) people(all []string, others int) string {
	var parts []string
	for _, name := range all {
		if name != "" {
			parts = append(parts, isolated(name))
		} else {
			others++
		}
	}
	switch {
	case len(parts) == 0 && others > 0:
		return w.counted(w.words.People, others)
	case others > 0:
		parts = append(parts, w.counted(w.words.Others, others))
	}
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return fill(w.words.And, "a", strings.Join(parts[:last], ", "), "b", parts[last])
}

// labelled puts a label before a text.
func (w *writer) labelled(label, text string) string {
	return fill(w.words.Label, "a", label, "b", text)
}

// counted returns the form for a number, filled with it.
func (w *writer) counted(f forms, n int, more ...string) string {
	pattern, ok := f[w.format.Plural(float64(n))]
	if !ok {
		pattern = f["other"]
	}
	return fill(pattern, append(more, "n", w.format.Number(float64(n), 0, 0))...)
}
