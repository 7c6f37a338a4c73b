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

// Group is the events about one thing. The names in brackets are those that templates use.
type Group struct {
	Category, EntityType, EntityID string // [category, entityType, entityId]
	// Kind is the title of the category in the mail's language [kind]. Empty: the category.
	Kind string
	// Title and URL are those of the last event [title, url]. Without a title the entity is named. A URL that
	// is not http or https is left out.
	Title, URL  string
	Count       int             // events [count]
	First, Last time.Time       // of the events [first, last]
	Actors      []Actor         // at most 3, newest first [actors]
	Others      int             // how many more different actors there are [others]
	Priority    string          // the highest: low, normal, high or urgent [priority]; empty: normal
	Payload     json.RawMessage // of the last event [payload]; empty: an empty object
}

// Rest is what lies beyond the cap.
type Rest struct{ Groups, Events int }

// Digest is what a mail tells.
type Digest struct {
	Groups   []Group // ranked and capped already
	Total    int     // events, those beyond the cap too
	Rest     Rest
	Schedule string    // such as daily@08:00
	Period   string    // such as 2026-11-22
	From, To time.Time // first and last event
	FeedURL  string    // link to the whole feed; empty if none
}

// Content is what a mail is rendered from. All but Params are Handlebars sources, the same for all mails.
type Content struct {
	Subject, PreviewText, HTML, Text string
	Params                           json.RawMessage // what the sources are filled with
}

//go:embed mail.html.hbs
var htmlSource string

//go:embed mail.text.hbs
var textSource string

// Write returns the built-in mail of a digest. The words are in the language of locale, a BCP 47 tag:
// English, German or French, else English. Times are those of tz; nil: UTC. A digest without groups says that
// there is nothing new.
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
