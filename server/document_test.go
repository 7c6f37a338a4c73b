package server

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// read reads a text as a type, as a route does.
func read[T any](text string) (into T, faults []fault.Field, ok bool) {
	d := newDocument([]byte(text))
	shapeOf(reflect.TypeFor[T](), bounds{})(&d, reflect.ValueOf(&into).Elem())
	return into, d.faults, d.end()
}

func TestReadingASubmit(t *testing.T) {
	t.Parallel()
	text := `{"from":{"name":"Jörg \"J\" M\u00fcller \ud83d\ude00","address":"j@example.com"},"to":{"address":"a@example.net"},
		"cc":[{"address":"b@example.net"},{"name":"C","address":"c@example.net"}],"bcc":null,"subject":"a\tb","html":"<p>\u003c</p>",
		"raw":"SGVsbG8=","envelope":{"from":"","to":["x@example.net"]},"attachments":[{"content":"aGk","filename":"ü.txt"}],
		"headers":{"X-A":["1","2"],"X-B":"3"},"references":["<1@x>"],"sendAt":"2027-01-02T03:04:05.678+02:00","deliveryAttempts":3,"dryRun":true,
		"lane":"bulk","metadata":{"a":[1,{"b":null}]},"tags":["x"],"copy":true,"sentMailPath":"Sent","template":null,"trackOpens":false,
		"render":false,"dsn":{"notify":["success"],"return":"full"}} `
	got, faults, ok := read[api.SubmitRequest](text)
	if !ok || len(faults) > 0 {
		t.Fatalf("ok %v, faults %v", ok, faults)
	}
	at := time.Date(2027, 1, 2, 1, 4, 5, 678_000_000, time.UTC)
	yes, no := true, false
	want := api.SubmitRequest{
		From: &api.Address{Name: `Jörg "J" Müller 😀`, Address: "j@example.com"}, To: api.Addresses{
			{Address: "a@example.net"}},
		CC: api.Addresses{{Address: "b@example.net"}, {Name: "C", Address: "c@example.net"}}, Subject: "a\tb",
		HTML: "<p><</p>",
		Raw:  []byte("Hello"), Envelope: &api.Envelope{To: []string{"x@example.net"}},
		Attachments: []api.Attachment{{Content: []byte("hi"), Filename: "ü.txt"}}, Headers: api.Headers{
			"X-A": {"1", "2"}, "X-B": {"3"}},
		References: []string{"<1@x>"}, SendAt: &at, DeliveryAttempts: 3, DryRun: true, Lane: api.Bulk,
		Metadata: json.RawMessage(`{"a":[1,{"b":null}]}`), Tags: []string{"x"}, Copy: &yes, SentMailPath: "Sent",
		TrackOpens: &no,
		Render:     &api.Render{Off: true}, DSN: &api.DSN{Notify: []string{"success"}, Return: "full"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2027-01-02T03:04:05Z":         "2027-01-02T03:04:05Z",
		"2027-01-02T03:04:05.123Z":     "2027-01-02T03:04:05.123Z",
		"2027-01-02T03:04:05-05:30":    "2027-01-02T08:34:05Z",
		"2027-01-02T03:04:05+0200":     "2027-01-02T01:04:05Z",
		"2027-01-02T03:04Z":            "2027-01-02T03:04:00Z",
		"2027-01-02T03:04:05":          "2027-01-02T03:04:05Z",
		"2027-01-02":                   "2027-01-02T00:00:00Z",
		"2027-02-30T00:00:00Z":         "",
		"1767323045":                   "",
		"Sat, 02 Jan 2027 03:04:05 GM": "",
		"":                             "",
	} {
		got, err := schedule.Instant(text, time.UTC)
		if (want == "") != (err != nil) || err == nil && got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

// TestFaultsAreBounded: a hostile body gets no answer larger than itself.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	_, faults, ok := read[api.SubmitRequest](`{"to":[` + strings.Repeat("1,", 100_000) + `1]}`)
	if !ok || len(faults) != maxFaults {
		t.Errorf("%d faults, ok %v", len(faults), ok)
	}
	got, _, _ := read[api.SubmitRequest](`{"tags":[` + strings.Repeat(`"",`, 100_000) + `""]}`)
	if len(got.Tags) > 10 {
		t.Errorf("%d tags are kept where 10 are allowed", len(got.Tags))
	}
	_, faults, _ = read[api.SubmitRequest](`{"` + strings.Repeat("ä", 1<<20) + `":1}`)
	if len(faults) != 1 || len(faults[0].Key) > 150 || !utf8.ValidString(faults[0].Key) {
		t.Errorf("a key of 2 MB comes back with %d bytes", len(faults[0].Key))
	}
}

// FuzzSubmit holds the reader of submits against encoding/json: both take the same texts, and read the same
// from them.
func FuzzSubmit(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"to":{"address":"a@b.c"},"text":"x"}`,
		`{"to":[{"name":"\ud83d\ude00","address":"a"}],"sendAt":"2027-01-02T03:04:05Z"}`,
		`{"metadata":{"a":[1,2.5e3,-0,true,null,"\\\""]}}`, `{"attachments":[{"content":"aGk="}]}`,
		`{"attachments":[{"content":"aGk"}]}`, `{"a":1}{`, `[`, "{\"text\":\"\x00\"}", `{"text":"\ud800x"}`,
		`{"deliveryAttempts":1e2,"copy":false,"envelope":{"from":"","to":["a"]}}`, `{"text":"\u00e9\n\/"} `,
		"\ufeff{}", `{"dsn":{"notify":["never"]}}`, `{"to":null}`,
	} {
		f.Add([]byte(seed))
	}
	shape := shapeOf(reflect.TypeFor[api.SubmitRequest](), bounds{})
	f.Fuzz(func(t *testing.T, text []byte) {
		var got api.SubmitRequest
		given := bytes.Clone(text)
		d := newDocument(given)
		shape(&d, reflect.ValueOf(&got).Elem())
		ok := d.end()
		if len(d.faults) > maxFaults || len(d.path) != 0 || ok && d.json.StackDepth() != 0 {
			t.Fatalf("%d faults, path %v, depth %d", len(d.faults), d.path, d.json.StackDepth())
		}
		if !bytes.Equal(given, text) {
			t.Fatal("reading changed the text")
		}
		if valid := json.Valid(text) && utf8.Valid(text); ok != valid && !(valid && deep(text)) {
			t.Fatalf("taken: %v, by encoding/json: %v", ok, valid)
		}
		if !ok || len(d.faults) > 0 {
			return
		}
		// What is taken without fault, encoding/json reads in the same way, but for forms of dates and base64 that
		// it does not know.
		var want api.SubmitRequest
		if err := json.Unmarshal(text, &want); err != nil {
			return
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(sameTime), cmp.Comparer(sameBytes), cmp.Comparer(sameAddresses),
			cmp.Comparer(sameStrings)); diff != "" && !bytes.Contains(bytes.ToLower(text), []byte("null")) {
			t.Fatalf("(-encoding/json +ours):\n%s", diff)
		}
	})
}

// deep reports whether a text nests beyond what we read.
func deep(text []byte) bool {
	return bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > maxDepth
}

func sameTime(a, b time.Time) bool        { return a.Equal(b) }
func sameBytes(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
func sameStrings(a, b []string) bool      { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
func sameAddresses(a, b api.Addresses) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func BenchmarkReadSubmit(b *testing.B) {
	text := []byte(typicalSubmit)
	shape := shapeOf(reflect.TypeFor[api.SubmitRequest](), bounds{})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var req api.SubmitRequest
		d := newDocument(text)
		if shape(&d, reflect.ValueOf(&req).Elem()); !d.end() || len(d.faults) > 0 {
			b.Fatal(d.faults)
		}
	}
}

// typicalSubmit is a password reset of about 2 KB.
var typicalSubmit = `{"from":{"name":"Example","address":"no-reply@example.com"},"to":[{"name":"Ann Example","address":"ann@example.net"}],` +
	`"subject":"Reset your password","text":"` + strings.Repeat(`Hello Ann,\n\nuse this link.\n`, 20) +
	`","html":"` + strings.Repeat(`<p class=\"x\">Hello Ann, use this link</p>\n`, 25) +
	`","idempotencyKey":"reset-4711","tags":["reset"],"metadata":{"user":4711}}`

// TestATimeWithoutAnOffsetIsOnTheClocksOfTheRequest, or in UTC if the request has no zone.
func TestATimeWithoutAnOffsetIsOnTheClocksOfTheRequest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"sendAt":"2027-07-01T08:00:00","tz":"Europe/Berlin"`:       "2027-07-01T06:00:00Z",
		`"tz":"Europe/Berlin","sendAt":"2027-07-01T08:00:00Z"`:      "2027-07-01T08:00:00Z",
		`"sendAt":"2027-07-01T08:00:00+05:00","tz":"Europe/Berlin"`: "2027-07-01T03:00:00Z",
		`"sendAt":"2027-10-31T02:30","tz":"Europe/Berlin"`:          "2027-10-31T00:30:00Z", // the first of two
		`"sendAt":"2027-07-01T08:00:00"`:                            "2027-07-01T08:00:00Z",
	} {
		at := strings.Replace(strings.Split(text, `"sendAt"`)[1], `,"tz":"Europe/Berlin"`, "", 1)
		body, faults, ok := read[api.SubmitRequest](`{` + text + `,"deliverBy"` + at +
			`,"mailMerge":[{"to":{"address":"a@example.net"},"sendAt"` + at + `}]}`)
		in := submitInput{Body: body}
		if faults = append(faults, in.settleTimes()...); !ok || len(faults) > 0 {
			t.Errorf("%s: %v", text, faults)
			continue
		}
		for _, got := range []*time.Time{in.Body.SendAt, in.Body.DeliverBy, in.Body.MailMerge[0].SendAt} {
			if got.Format(time.RFC3339) != want {
				t.Errorf("%s is %s, want %s", text, got.Format(time.RFC3339), want)
			}
		}
	}
}
