package digest

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

// Limits of events.
const (
	mostCategories = 32
	mostPayload    = 4096 // bytes
	mostPast       = 90 * 24 * time.Hour
	mostAhead      = time.Hour
)

// priorities by their number.
var priorities = []string{"low", "normal", "high", "urgent"}

const (
	normal = 1
	urgent = 3
)

// line is an event as it is in Redis. lua/prelude.lua reads the same form.
type line struct {
	returned                   int // 1: its run failed
	id                         string
	entityType, entityID       string
	at                         int64 // Unix milliseconds
	priority                   int
	actorID, actorName, actURL string
	title, url                 string
	payload                    json.RawMessage // empty: {}
}

// idSize is the length of the id of an event. Scripts count on it.
const idSize = 20

// escaped has the characters that JSON escapes in texts without control characters (RFC 8259 section 7).
var escaped = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// text returns the line as it is stored. Its texts have no control characters and its payload is an object
// without spaces: check refuses others.
func (l line) text() string {
	b := make([]byte, 0, 128+len(l.title)+len(l.url)+len(l.payload))
	b = append(b, '[')
	b = strconv.AppendInt(b, int64(l.returned), 10)
	quote := func(text string) {
		b = append(append(append(b, `,"`...), escaped.Replace(text)...), '"')
	}
	quote(l.id)
	quote(l.entityType)
	quote(l.entityID)
	b = strconv.AppendInt(append(b, ','), l.at, 10)
	b = strconv.AppendInt(append(b, ','), int64(l.priority), 10)
	for _, text := range []string{l.actorID, l.actorName, l.actURL, l.title, l.url} {
		quote(text)
	}
	b = append(b, ',')
	if len(l.payload) == 0 {
		b = append(b, "{}"...)
	}
	return string(append(append(b, l.payload...), ']'))
}

// decoders are idle decoders.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// readLine reads what text wrote. A run reads up to digest.keep of them for each category.
func readLine(text string) (l line, _ error) {
	d, _ := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBufferString(text), jsontext.AllowInvalidUTF8(true))
	var failed error
	next := func(kind jsontext.Kind) string {
		token, err := d.ReadToken()
		if failed == nil && err == nil && token.Kind() != kind {
			err = fmt.Errorf("%q is in the place of another value", token)
		}
		if failed = cmp.Or(failed, err); failed != nil {
			return ""
		}
		return token.String()
	}
	number := func() int64 {
		n, err := strconv.ParseInt(next('0'), 10, 64)
		failed = cmp.Or(failed, err)
		return n
	}
	next('[')
	l.returned = int(number())
	l.id, l.entityType, l.entityID = next('"'), next('"'), next('"')
	l.at, l.priority = number(), int(number())
	l.actorID, l.actorName, l.actURL, l.title, l.url = next('"'), next('"'), next('"'), next('"'), next('"')
	payload, err := d.ReadValue()
	l.payload = json.RawMessage(payload.Clone())
	next(']')
	if failed = cmp.Or(failed, err); failed != nil {
		return l, fmt.Errorf("read a digest event: %w", failed)
	}
	return l, nil
}

// entityOf returns the type and the id of an entity as they are in a line.
func entityOf(entityType, entityID string) string {
	text := line{entityType: entityType, entityID: entityID}.text()
	begin := len(`[0,"",`)
	return text[begin : strings.Index(text, `,0,0,"","","","","",{}]`)+1]
}

// groupField returns the name of a group in the hash of older events.
func groupField(entityType, entityID string) string { return entityType + "\x00" + entityID }

// event returns a line as the API shows it.
func (l line) event(k readerKey, category string) api.DigestWaitingEvent {
	at := time.UnixMilli(l.at).UTC()
	e := api.DigestWaitingEvent{ID: l.id, DigestEvent: api.DigestEvent{Recipient: k.id, Category: category,
		EntityType: l.entityType, EntityID: l.entityID, Title: l.title, URL: l.url, Payload: l.payload,
		Priority: priorities[min(max(0, l.priority), urgent)], OccurredAt: &at}}
	if l.actorID+l.actorName+l.actURL != "" {
		e.Actor = &api.DigestActor{ID: l.actorID, Name: l.actorName, URL: l.actURL}
	}
	return e
}

// incoming is an event that was checked.
type incoming struct {
	at          int // its place in the request
	event       api.DigestEvent
	line        line
	key         string // of 8 bytes; empty if it has no key
	fingerprint string // of 8 bytes
}

// check reads an event. It returns every wrong field.
func check(e api.DigestEvent, account string, now time.Time) (in incoming, wrong []fault.Field) {
	var f fault.Fields
	text := func(key, value string, least, most int) string {
		switch n := utf8.RuneCountInString(value); {
		case !utf8.ValidString(value):
			f.Add(key, "must be UTF-8")
		case value == "" && least > 0:
			f.Add(key, "is required")
		case n > most:
			f.Add(key, "must have at most %d characters", most)
		case strings.ContainsFunc(value, unicode.IsControl):
			f.Add(key, "must not contain control characters")
		}
		return value
	}
	text("recipient", e.Recipient, 1, 256)
	text("category", e.Category, 1, 64)
	l := line{entityType: text("entityType", e.EntityType, 1, 64),
		entityID: text("entityId", e.EntityID, 1, 256),
		url:      webURL(&f, "url", e.URL), at: now.UnixMilli()}
	if e.Category == rest {
		f.Add("category", "can't be *, which means all others")
	}
	// Titles may have line breaks, which mail shows as spaces.
	l.title = strings.Join(strings.FieldsFunc(e.Title, func(c rune) bool { return unicode.IsControl(c) }), " ")
	text("title", l.title, 0, 512)
	if a := e.Actor; a != nil {
		l.actorID, l.actURL = text("actor.id", a.ID, 0, 256), webURL(&f, "actor.url", a.URL)
		l.actorName = text("actor.name", strings.Join(strings.FieldsFunc(a.Name, unicode.IsControl), " "), 0, 256)
	}
	l.payload = payloadOf(&f, e.Payload)
	if l.priority = slices.Index(priorities, e.Priority); e.Priority == "" {
		l.priority = normal
	} else if l.priority < 0 {
		f.Add("priority", "must be low, normal, high or urgent")
	}
	if e.OccurredAt != nil {
		l.at = e.OccurredAt.UnixMilli()
		if e.OccurredAt.Before(now.Add(-mostPast)) || e.OccurredAt.After(now.Add(mostAhead)) {
			f.Add("occurredAt", "must be at most 90 days ago and at most an hour ahead")
		}
	}
	checkReader(&f, &e)
	text("idempotencyKey", e.IdempotencyKey, 0, 256)
	in = incoming{event: e, line: l}
	if f == nil {
		in.identify(account)
	}
	return in, f
}

// checkReader checks what an event says of its recipient. The address becomes its normal form.
func checkReader(f *fault.Fields, e *api.DigestEvent) {
	if e.Email != "" {
		email, err := message.NormalizeAddress(e.Email)
		if err != nil {
			f.Add("email", "%s", err)
		}
		e.Email = email
	}
	if utf8.RuneCountInString(e.Name) > 256 || strings.ContainsFunc(e.Name, unicode.IsControl) {
		f.Add("name", "must have at most 256 characters, without control characters")
	}
	checkLocale(f, "locale", e.Locale)
	checkZone(f, "tz", e.TZ)
}

func checkZone(f *fault.Fields, key, tz string) {
	if tz == "" {
		return
	}
	if _, err := schedule.Zone(tz); err != nil {
		f.Add(key, "%s", err)
	}
}

// webURL checks an address of the web.
func webURL(f *fault.Fields, key, text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(text) > 2048 ||
		strings.ContainsFunc(text, unicode.IsControl) {
		f.Add(key, "must be an HTTP or HTTPS URL of at most 2048 characters")
	}
	return text
}

// payloadOf returns a payload without spaces.
func payloadOf(f *fault.Fields, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var b bytes.Buffer
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || json.Compact(&b, raw) != nil {
		f.Add("payload", "must be an object")
	} else if b.Len() > mostPayload {
		f.Add("payload", "must have at most %d bytes", mostPayload)
	}
	return b.Bytes()
}

// identify gives an event its id: its key's, or a new one.
func (in *incoming) identify(account string) {
	e := in.event
	if e.IdempotencyKey == "" {
		in.line.id = strings.ToLower(rand.Text()[:idSize])
		return
	}
	in.line.id = keyID(account, e.Recipient, e.IdempotencyKey)
	in.key = in.line.id[:8]
	l := in.line
	l.id = ""
	if e.OccurredAt == nil {
		l.at = 0 // a repetition comes at another time
	}
	sum := sha256.Sum256([]byte(e.Category + "\x00" + l.text()))
	in.fingerprint = letters.EncodeToString(sum[:5])
}

// keyID returns the id of the event of a key.
func keyID(account, recipient, key string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + recipient + "\x00" + key))
	return letters.EncodeToString(sum[:13])[:idSize]
}
