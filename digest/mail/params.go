package mail

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/postroom/postroom/outbox/templates/locale"
)

// digest is the params of an email. All members are always there: a template may be one that refuses to be
// filled without.
type digest struct {
	Groups   []group    `json:"groups"`
	Total    int        `json:"total"`
	Rest     rest       `json:"rest"`
	Schedule string     `json:"schedule"`
	Period   string     `json:"period"`
	From     string     `json:"from"`
	To       string     `json:"to"`
	FeedURL  string     `json:"feedUrl"`
	Subject  string     `json:"subject"`
	Preview  string     `json:"preview"`
	Heading  string     `json:"heading"` // what this is; a single group has its title instead
	Span     string     `json:"span"`    // how many updates, with their days
	Single   bool       `json:"single"`  // one group and no rest: the mail reads like a notification
	Lang     string     `json:"lang"`    // the texts' language
	Dir      string     `json:"dir"`     // ltr or rtl, by the locale
	Words    shownWords `json:"words"`
}

type group struct {
	Category   string          `json:"category"`
	EntityType string          `json:"entityType"`
	EntityID   string          `json:"entityId"`
	Kind       string          `json:"kind"`
	Title      string          `json:"title"`
	URL        string          `json:"url"`
	Count      int             `json:"count"`
	First      string          `json:"first"`
	Last       string          `json:"last"`
	Actors     []Actor         `json:"actors"`
	Others     int             `json:"others"`
	Priority   string          `json:"priority"`
	Payload    json.RawMessage `json:"payload"`
	Who        string          `json:"who"`
	Updates    string          `json:"updates"`
	When       string          `json:"when"`
	Line       string          `json:"line"`
}

type rest struct {
	Groups int    `json:"groups"`
	Events int    `json:"events"`
	Line   string `json:"line"` // empty if there is none
}

// writer writes one digest in one language.
type writer struct {
	d      Digest
	words  *words
	lang   string
	dir    string
	format locale.Locale
	zone   *time.Location
	oneDay bool // all events are of one day, which is named above the groups
	single bool
}

func newWriter(d Digest, tag string, tz *time.Location) (*writer, error) {
	all, err := known()
	if err != nil {
		return nil, err
	}
	w := &writer{d: d, zone: cmp.Or(tz, time.UTC), lang: "en", dir: direction(tag)}
	if base := language(tag); all[base] != nil {
		w.lang, w.format = base, locale.Find(tag)
	} else {
		w.format = locale.Find(w.lang)
	}
	w.words = all[w.lang]
	w.single = len(d.Groups) == 1 && d.Rest == Rest{}
	w.oneDay = !w.single && !d.From.IsZero() && w.day(d.From) == w.day(d.To)
	return w, nil
}

func (w *writer) day(t time.Time) string { return t.In(w.zone).Format(time.DateOnly) }

func (w *writer) digest() digest {
	d := digest{
		Groups: make([]group, len(w.d.Groups)), Total: w.d.Total,
		Rest:     rest{Groups: w.d.Rest.Groups, Events: w.d.Rest.Events, Line: w.rest()},
		Schedule: w.d.Schedule, Period: w.d.Period, From: stamp(w.d.From), To: stamp(w.d.To),
		FeedURL: webURL(w.d.FeedURL), Heading: w.heading(), Span: w.span(), Single: w.single,
		Lang: w.lang, Dir: w.dir, Words: w.words.Shown,
	}
	for i, g := range w.d.Groups {
		d.Groups[i] = w.group(g)
	}
	d.Subject, d.Preview = w.subject(d.Groups), w.preview(d.Groups)
	d.Words.Zone = fill(d.Words.Zone, "zone", clean(w.zone.String()))
	return d
}

func (w *writer) group(g Group) group {
	made := group{
		Category: g.Category, EntityType: g.EntityType, EntityID: g.EntityID,
		Kind:  cmp.Or(clean(g.Kind), clean(g.Category)),
		Title: cmp.Or(clean(g.Title), clean(g.EntityType+" "+g.EntityID)),
		URL:   webURL(g.URL), Count: g.Count, First: stamp(g.First), Last: stamp(g.Last),
		Actors: make([]Actor, len(g.Actors)), Others: g.Others, Priority: cmp.Or(g.Priority, "normal"),
		Payload: g.Payload, When: w.when(g.Last),
	}
	if len(made.Payload) == 0 {
		made.Payload = json.RawMessage("{}")
	}
	for i, a := range g.Actors {
		made.Actors[i] = Actor{ID: a.ID, Name: clean(a.Name), URL: webURL(a.URL)}
	}
	made.Who = w.people(names(made.Actors), g.Others)
	if g.Count > 1 || !w.single {
		made.Updates = w.counted(w.words.Updates, g.Count)
	}
	made.Line = w.line(made)
	return made
}

// line is a group in the text.
func (w *writer) line(g group) string {
	line := w.labelled(isolated(g.Kind), isolated(g.Title))
	if about := joined(g.Who, g.Updates, g.When); about != "" {
		line += " – " + about
	}
	if g.URL != "" {
		line += " <" + g.URL + ">"
	}
	return line
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	var some []string
	for _, part := range parts {
		if part != "" {
			some = append(some, part)
		}
	}
	return strings.Join(some, " · ")
}

// stamp is a time for templates, whose helper date writes it in the zone of the mail.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
