package mail

import (
	_ "embed" // for the sources of the mail
	"encoding/json"
	"fmt"
	"time"
)

// Actor is somebody who did something.
type Actor struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Group is the events about one thing. The names in brackets are the names in templates.
type Group struct {
	Category, EntityType, EntityID string // [category, entityType, entityId]
	// Kind is the category's title in the mail's language [kind]. Defaults to the category.
	Kind string
	// Title and URL are the last event's [title, url]. Without a title the entity is named. A URL that is not
	// http or https is left out.
	Title, URL  string
	Count       int             // events [count]
	First, Last time.Time       // the events' [first, last]
	Actors      []Actor         // at most 3, newest first [actors]
	Others      int             // how many more different actors there are [others]
	Priority    string          // the highest: low, normal (default), high or urgent [priority]
	Payload     json.RawMessage // the last event's [payload]; empty means an empty object
}

// Rest counts what lies beyond the cap.
type Rest struct{ Groups, Events int }

// Digest is the content of an email.
type Digest struct {
	Groups   []Group // ranked and capped already
	Total    int     // events, including the ones beyond the cap
	Rest     Rest
	Schedule string    // such as daily@08:00
	Period   string    // such as 2026-11-22
	From, To time.Time // first and last event
	FeedURL  string    // link to the whole feed; empty if none
}

// Content is what an email is rendered from. All but Params are Handlebars sources, the same for all emails.
type Content struct {
	Subject, PreviewText, HTML, Text string
	Params                           json.RawMessage // what the sources are filled with
}

//go:embed mail.html.hbs
var htmlSource string

//go:embed mail.text.hbs
var textSource string

// Write returns a digest's built-in mail in the language of locale, a BCP 47 tag: English, German or French,
// otherwise English. Times are in tz, by default UTC. A digest without groups says that there is nothing new.
func Write(d Digest, locale string, tz *time.Location) (Content, error) {
	params, err := Params(d, locale, tz)
	return Content{Subject: "{{params.digest.subject}}", PreviewText: "{{params.digest.preview}}",
		HTML: htmlSource, Text: textSource, Params: params}, err
}

// Params returns the params of a digest, for stored templates and the built-in mail: {"digest": {…}}.
func Params(d Digest, locale string, tz *time.Location) (json.RawMessage, error) {
	w, err := newWriter(d, locale, tz)
	if err != nil {
		return nil, err
	}
	for i, g := range d.Groups {
		if len(g.Payload) > 0 && !json.Valid(g.Payload) {
			return nil, fmt.Errorf("write a digest: the payload of group %d (%s) is not JSON", i+1, g.Category)
		}
	}
	raw, err := json.Marshal(struct {
		Digest digest `json:"digest"`
	}{w.digest()})
	if err != nil {
		return nil, fmt.Errorf("write a digest: %w", err)
	}
	return raw, nil
}
