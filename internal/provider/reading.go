package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// reading collects the Batch of a body.
type reading struct {
	provider Name
	keepRaw  bool
	batch    Batch
	index    int // the current element's
}

// fact is the content of an element: its events, or the name under which it is ignored.
type fact struct {
	events  []Event // an ignored element has at most one, with its data about its message
	ignored string  // its name, as in Ignored
	word    string  // the provider's word
}

func events(word string, all ...Event) (fact, error) { return fact{events: all, word: word}, nil }

func ignore(name, word string, about ...Event) (fact, error) {
	return fact{events: about, ignored: name, word: word}, nil
}

// forAll makes an event for each recipient, or one event if there are no recipients.
func forAll(word string, e Event, recipients []string) (fact, error) {
	var all []Event
	for _, recipient := range recipients {
		one := e
		one.Recipient = recipient
		all = append(all, one)
	}
	if len(all) == 0 {
		all = []Event{e}
	}
	return events(word, all...)
}

// of sets the recipient of an event whose provider names all recipients of the message: the only one, or else
// the candidates.
func (e *Event) of(recipients []string) {
	switch {
	case len(recipients) == 1:
		e.Recipient = recipients[0]
	case len(recipients) > 1:
		e.Candidates = append([]string(nil), recipients[:min(len(recipients), 100)]...)
	}
}

// unknown ignores an event of an unknown kind. An element without a kind is an error.
func unknown(word string, about Event) (fact, error) {
	if word == "" {
		return fact{}, errors.New("says no kind of event")
	}
	return ignore("unknown", word, about)
}

// each makes a reader of bodies from a reader of elements.
func each(read func(object) (fact, error)) func(*reading, Request) error {
	return func(r *reading, q Request) error { return r.each(q.Body, read) }
}

// each reads the elements of a body. Broken elements are skipped. If all elements are broken, that isn't an
// error, because the body was signed.
func (r *reading) each(body []byte, read func(object) (fact, error)) error {
	all, err := elements(body)
	if err != nil {
		return err
	}
	for i, raw := range all {
		r.index = i
		o, err := parseObject(raw)
		if err != nil {
			r.broken(err)
			continue
		}
		if err := r.one(o, read); err != nil {
			return err
		}
	}
	return nil
}

// one reads one element. It fails only when there are too many events.
func (r *reading) one(o object, read func(object) (fact, error)) error {
	f, err := read(o)
	switch {
	case err != nil:
		r.broken(err)
	case f.ignored != "":
		skipped := Ignored{Index: r.index, Name: f.ignored, Word: clean(f.word, 64)}
		for _, e := range f.events {
			e.Kind, e.Word = Other, f.word
			skipped.Event = r.finish(e, o, 0)
		}
		r.batch.Ignored = append(r.batch.Ignored, skipped)
	case len(r.batch.Events)+len(f.events) > MaxEvents:
		return tooLarge()
	default:
		for i, e := range f.events {
			e.Word = f.word
			r.batch.Events = append(r.batch.Events, r.finish(e, o, i))
		}
	}
	return nil
}

func (r *reading) broken(err error) {
	r.batch.Broken = append(r.batch.Broken, Broken{r.index, fmt.Errorf("read element %d of a body of %s: %w",
		r.index, r.provider, err)})
}

// finish bounds and cleans the fields of an event, and takes missing codes from the diagnostic. It makes a
// Key if the provider has no usable id. nth is the number of the event in its element.
func (r *reading) finish(e Event, o object, nth int) Event {
	e.Provider = r.provider
	e.Word = clean(e.Word, 64)
	e.Recipient = address(e.Recipient)
	for i := range e.Candidates {
		e.Candidates[i] = address(e.Candidates[i])
	}
	e.EventID = clean(e.EventID, maxID)
	e.ProviderMessageID = clean(e.ProviderMessageID, maxID)
	e.ProviderAlias = clean(e.ProviderAlias, maxID)
	if e.ProviderAlias == e.ProviderMessageID {
		e.ProviderAlias = ""
	}
	e.MessageID = messageID(e.MessageID)
	e.Diagnostic = clean(e.Diagnostic, 2000)
	e.URL = clean(e.URL, 4096)
	e.UserAgent = clean(e.UserAgent, 512)
	e.IP = ipAddress(e.IP)
	e.Tags = cleanTags(e.Tags)
	e.Metadata = cleanMetadata(e.Metadata)
	e.fillCodes()
	switch {
	case e.once():
		e.Key = fingerprint(e.Kind, e.ProviderMessageID, strings.ToLower(e.Recipient))
		nth = 0
	case e.Key != "":
		e.Key = clean(e.Key, maxID)
	case e.EventID != "":
		e.Key = e.EventID
	default:
		e.Key = fingerprint(o)
	}
	if r.keepRaw {
		e.Raw = cut(o)
	}
	if nth > 0 {
		e.Key += "#" + strconv.Itoa(nth)
	}
	return e
}

// once reports whether an event is identified by its message and recipient. That requires that it happens
// once to both, and that the provider's webhooks and events API share no id for it.
func (e *Event) once() bool {
	switch e.Provider {
	case SendGrid, Mailjet, Brevo, Resend, Mandrill:
	default:
		return false
	}
	switch e.Kind {
	case Delivered, Bounced, Dropped, Complained, Unsubscribed:
		return e.ProviderMessageID != "" && e.Recipient != ""
	}
	return false
}

// fingerprint returns a hash of the content, as the id of an event without one.
func fingerprint(parts ...any) string {
	sum := sha256.Sum256(canonical(parts))
	return "sha256:" + hex.EncodeToString(sum[:16])
}
