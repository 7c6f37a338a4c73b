package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds of a recorded answer: an example is to be read.
const (
	shownItems = 2   // of a list of objects
	shownText  = 600 // bytes of a text
	shownLines = 2   // of a file or stream
)

// exampleTime stands in for the time at which examples are recorded.
var exampleTime = time.Date(2027, 1, 4, 9, 0, 0, 0, time.UTC)

// What differs from recording to recording.
var (
	timeText = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	dayText  = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
	mailDate = regexp.MustCompile(`[A-Z][a-z]{2}, \d\d? [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}`)
	pemKey   = regexp.MustCompile(`(-----BEGIN PRIVATE KEY-----\n)[^-]+(\n-----END)`)
	words    = regexp.MustCompile(`\b\d\d? [A-Z][a-z]+ 20\d\d \d\d:\d\d:\d\d UTC`)
	took     = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms)\b`)
	code     = regexp.MustCompile(`^\d{6}$`)
	audited  = regexp.MustCompile(`\b1[78]\d{11}-\d+\b`)
	folder   = regexp.MustCompile(`\b[\w-]+:/[\w/-]*TestExamples\w+(/\w+)?/`)
	local    = regexp.MustCompile(`(https?://)?127\.0\.0\.1:\d+`)
	// ids, secrets and tokens: of base32, hex and base64
	opaque = regexp.MustCompile(`\b01[0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{24}\b|\b[A-Z2-7]{16,}\b|\b[a-z2-7]{20,}\b|` +
		`\b[0-9a-f]{16,}\b|\b[0-9a-f]{12}\b|\b([a-z2-7]{4}-){3}[a-z2-7]{4}\b|` +
		`whsec_[A-Za-z0-9+/=]+|\bp=[A-Za-z0-9+/=]{40,}|\b[A-Za-z0-9_-]{40,}\b`)
	eventStream = regexp.MustCompile(`^(event|id|data|retry):`)
	changing    = map[string]any{ // numbers, by the name of their field
		"ms": 12, "duration": 12, "durationMs": 12, "uptime": 3600, "goroutines": 80, "bytes": 52428800,
		"latency": 12, "p50": 20, "p95": 80, "oldest": 0, "seconds": 12, "port": 587, "version": nil, "size": 1024,
	}
)

// normalizer replaces what differs from recording to recording, and cuts what is long.
type normalizer struct {
	story *story
	seen  map[string]string // by the original in capital letters
	// what is made depends on the operation and on how many were made for it, so that a new example leaves
	// the others as they are
	place, made uint64
}

// begin begins with an operation.
func (n *normalizer) begin(operation string) {
	hash := fnv.New64()
	_, _ = hash.Write([]byte(operation))
	n.place, n.made = hash.Sum64(), 0
}

// text returns a text with stable values.
func (n *normalizer) text(s string) string {
	s = strings.NewReplacer("rcpt-550@", "nobody@", "rcpt-550+2@", "eve@",
		"ip4:127.0.0.1", "a:relay.example.net",
		fmt.Sprint(n.story.vars["hooks"]), "https://app.example.com",
		n.story.url, "https://mail.example.com").Replace(s)
	s = local.ReplaceAllString(s, "relay.example.net:587")
	s = strings.ReplaceAll(s, "127.0.0.1", "relay.example.net")
	s = pemKey.ReplaceAllString(s, "${1}…${2}")
	s = timeText.ReplaceAllStringFunc(s, n.time)
	s = mailDate.ReplaceAllString(s, exampleTime.Format(time.RFC1123Z))
	today := n.story.began.UTC()
	s = dayText.ReplaceAllStringFunc(s, func(day string) string {
		if at, err := time.Parse(time.DateOnly, day); err == nil && today.Sub(at).Abs() < 60*24*time.Hour {
			return exampleTime.Add(at.Sub(today.Truncate(24 * time.Hour))).Format(time.DateOnly)
		}
		return day
	})
	s = words.ReplaceAllString(s, exampleTime.Format("2 January 2006 15:04:05 UTC"))
	s = took.ReplaceAllString(s, "1ms")
	s = code.ReplaceAllString(s, "123456")
	s = folder.ReplaceAllString(s, "mail-1:/var/lib/postroom/")
	s = audited.ReplaceAllString(s, strconv.FormatInt(exampleTime.UnixMilli(), 10)+"-0")
	return opaque.ReplaceAllStringFunc(s, n.opaque)
}

// time moves a time near that of the recording to the time of the examples, to the hour.
func (n *normalizer) time(text string) string {
	at, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1))
	if err != nil || at.Sub(n.story.began).Abs() > 60*24*time.Hour {
		return text
	}
	return exampleTime.Add(at.Sub(n.story.began).Round(time.Hour)).Format(time.RFC3339)
}

// opaque replaces an id or secret by one of the same form, which was not seen before.
func (n *normalizer) opaque(text string) string {
	key := strings.ToUpper(text)
	made, ok := n.seen[key]
	if !ok {
		random := rand.New(rand.NewPCG(n.place, n.made))
		skip := strings.IndexAny(text, "=_") + 1 // a prefix stays
		if skip > 6 {
			skip = 0
		}
		alphabet := "234567ABCDEFGHJKMNPQRSTVWXYZ"
		if regexp.MustCompile(`^[0-9a-f]+$`).MatchString(text) {
			alphabet = "0123456789ABCDEF"
		}
		b := []byte(strings.ToUpper(text))
		for i := skip; i < len(b); i++ {
			if b[i] != '=' && b[i] != '-' && (i > 1 || !strings.HasPrefix(text, "01")) {
				b[i] = alphabet[random.IntN(len(alphabet))]
			}
		}
		made = string(b)
		n.made++
		n.seen[key] = made
	}
	if strings.HasPrefix(text, "whsec_") || strings.HasPrefix(text, "p=") {
		cut := strings.IndexAny(text, "=_") + 1
		return text[:cut] + made[cut:]
	}
	if strings.ToLower(text) == text {
		return strings.ToLower(made)
	}
	return made
}

// json returns a JSON document with stable values, its fields in their order. An answer is cut, too.
func (n *normalizer) json(doc json.RawMessage, answer bool) (json.RawMessage, error) {
	if len(doc) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var out bytes.Buffer
	err := n.value(decoder, &out, "", answer)
	return out.Bytes(), err
}

// value copies the next value of a document. name is that of its field.
func (n *normalizer) value(d *json.Decoder, out *bytes.Buffer, name string, answer bool) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return n.composite(d, out, token, name, answer)
	case string:
		return write(out, n.cut(n.text(token), answer))
	case json.Number:
		if stable, ok := changing[name]; ok && stable != nil && (answer || name == "port") {
			return write(out, stable)
		}
		return write(out, token)
	default:
		return write(out, token)
	}
}

func (n *normalizer) composite(d *json.Decoder, out *bytes.Buffer, open json.Delim, name string,
	answer bool) error {
	out.WriteByte(byte(open))
	for i := 0; d.More(); i++ {
		into := out
		if open == '[' && answer && i >= shownItems {
			into = new(bytes.Buffer) // the rest of a list is left out
		}
		if i > 0 {
			into.WriteByte(',')
		}
		field := name
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			field = key.(string)
			if err := write(into, n.text(field)); err != nil {
				return err
			}
			into.WriteByte(':')
		}
		if err := n.value(d, into, field, answer); err != nil {
			return err
		}
	}
	end, err := d.Token()
	if err == nil {
		out.WriteByte(byte(end.(json.Delim)))
	}
	return err
}

// cut shortens a text of an answer: a file or stream to its first lines, another to its beginning.
func (n *normalizer) cut(text string, answer bool) string {
	if !answer || len(text) <= shownText {
		return text
	}
	if first, _, many := strings.Cut(text, "\n\n"); many && eventStream.MatchString(text) {
		return first + "\n\n"
	}
	if strings.HasPrefix(text, "{") {
		return strings.Join(strings.SplitAfterN(text, "\n", shownLines+1)[:shownLines], "")
	}
	if end := strings.LastIndexAny(text[:shownText], "\n "); end > 0 {
		return text[:end+1]
	}
	return text[:shownText] // base64: a multiple of 4
}

func write(out *bytes.Buffer, v any) error {
	line, err := marshal(v)
	out.Write(line)
	return err
}
