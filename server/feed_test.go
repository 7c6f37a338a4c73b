package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// readFrom reads a text as a submit while it comes in. A value of more octets than a window has is read with
// all the rest.
func readFrom(body io.Reader, window int) (into api.SubmitRequest, d document) {
	d = newStream(body, -1, int64(window), func() error { return nil })
	shapeOf(reflect.TypeFor[api.SubmitRequest](), bounds{})(&d, reflect.ValueOf(&into).Elem())
	return into, d
}

// awkward are texts with something of each kind at each place a window may end.
var awkward = []string{
	`{"subject":"J\u00f6rg \ud83d\ude00 \\ \/ ü 😀 €","to":[{"name":"Ä\"","address":"a@example.net"}],"deliveryAttempts":12,"dryRun":true,"copy":false,"render":false,"metadata":{"a":[1.5e3,-0,null,"}"]},"headers":{"X-\u00e4":"1"}}`,
	`{"mailMerge":[{"to":{"address":"a@example.net"},"params":{"n":[1,2,3]}},{"to":{"address":"b@example.net"},"unknown":{"x":[{}]},"metadata":5}],"subject":7,"attachments":[{"content":"aGk="},{"content":"!"}],"tags":[1,""],"x":1}   `,
	`{"subject":"` + strings.Repeat("x€", 200) + `"`, `{"text":"` + "\xc3", `{"text":"\u12"}`, `{"copy":tru}`,
	`{"copy":true}{}`, ``, ` `, `{`, `nul`, `{"a"`, `{"deliveryAttempts":1.`,
}

// TestReadingInPiecesIsReading: however a text comes in, the same is read from it, and the same found wrong
// with it.
func TestReadingInPiecesIsReading(t *testing.T) {
	t.Parallel()
	for _, text := range awkward {
		want, faults, ok := read[api.SubmitRequest](text)
		for size := range 70 {
			got, d := readFrom(iotest.OneByteReader(strings.NewReader(text)), size)
			if d.end() != ok {
				t.Fatalf("%.60q with a window of %d: taken %v, as a whole %v", text, size, !ok, ok)
			}
			if diff := cmp.Diff(faults, d.faults); diff != "" && ok {
				t.Fatalf("%.60q with a window of %d (-whole +in pieces):\n%s", text, size, diff)
			}
			if diff := cmp.Diff(want, got); diff != "" && ok {
				t.Fatalf("%.60q with a window of %d (-whole +in pieces):\n%s", text, size, diff)
			}
		}
	}
}

// FuzzReadingInPieces holds the window against reading the whole.
func FuzzReadingInPieces(f *testing.F) {
	for _, text := range awkward {
		f.Add([]byte(text), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		want, faults, ok := read[api.SubmitRequest](string(text))
		got, d := readFrom(pieces{bytes.NewReader(text), rand.New(rand.NewPCG(seed, 1))}, int(seed%100))
		if d.end() != ok {
			t.Fatalf("taken %v, as a whole %v", !ok, ok)
		}
		if ok && (!reflect.DeepEqual(want, got) || !reflect.DeepEqual(faults, d.faults)) {
			t.Fatalf("as a whole %+v %v\nin pieces %+v %v", want, faults, got, d.faults)
		}
	})
}

// pieces gives a few octets at a time.
type pieces struct {
	from *bytes.Reader
	dice *rand.Rand
}

func (p pieces) Read(into []byte) (int, error) {
	return p.from.Read(into[:min(len(into), p.dice.IntN(9))])
}

// TestLongValuesAreReadAsAWhole: the rest is read with them, after a turn, and decodes to the same.
func TestLongValuesAreReadAsAWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("äöü", longValue)
	text := `{"subject":"a","html":"` + long + `","text":"` + long + `"}`
	turns := 0
	var got api.SubmitRequest
	d := newStream(strings.NewReader(text), int64(len(text)), longValue, func() error { turns++; return nil })
	shapeOf(reflect.TypeFor[api.SubmitRequest](), bounds{})(&d, reflect.ValueOf(&got).Elem())
	if !d.end() || got.HTML != long || got.Text != long || turns != 1 {
		t.Errorf("taken %v, %d octets of html, %d of text, %d turns", d.end(), len(got.HTML), len(got.Text), turns)
	}
	gone := errors.New("gone")
	d = newStream(strings.NewReader(text), int64(len(text)), longValue, func() error { return gone })
	shapeOf(reflect.TypeFor[api.SubmitRequest](), bounds{})(&d, reflect.ValueOf(&got).Elem())
	if d.end() || d.broken() != gone { //nolint:errorlint // it is that very error
		t.Errorf("a client that is gone: %v", d.broken())
	}
}

// TestBodyThatBreaksOff: the part that was read isn't reported as bad JSON.
func TestBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	_, d := readFrom(io.MultiReader(strings.NewReader(`{"subject":"x`), iotest.ErrReader(cut)), 0)
	if d.end() || !errors.Is(d.broken(), cut) {
		t.Errorf("broken: %v", d.broken())
	}
}

// mergeOf writes a mail merge of some entries, each with params of some octets.
func mergeOf(entries, params int) string {
	var b strings.Builder
	b.WriteString(`{"subject":"s","mailMerge":[`)
	for i := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"to":{"address":"p%d@example.net"},"params":{"x":"%s"}}`, i, strings.Repeat("x", params))
	}
	b.WriteString(`],"html":"<p>{{params.x}}</p>","text":"after the entries"}`)
	return b.String()
}

// TestMergeIsNotHeldAsText: 20 MB of entries are in memory once, plus a window.
func TestMergeIsNotHeldAsText(t *testing.T) {
	body := mergeOf(10_000, 2_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, d := readFrom(strings.NewReader(body), longValue)
	runtime.ReadMemStats(&after)
	if !d.end() || len(d.faults) > 0 || len(got.MailMerge) != 10_000 || got.Text != "after the entries" {
		t.Fatalf("taken %v, %v, %d entries", d.end(), d.faults, len(got.MailMerge))
	}
	for i, e := range got.MailMerge {
		if e.To.Address != fmt.Sprintf("p%d@example.net", i) || len(e.Params) != 2_008 || !json.Valid(e.Params) {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	if allocated := int64(after.TotalAlloc - before.TotalAlloc); allocated > int64(len(body))*3/2 {
		t.Errorf("%d MB were allocated for a body of %d MB", allocated>>20, len(body)>>20)
	}
}

// TestLargeMergeIsTaken: over HTTP.
func TestLargeMergeIsTaken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	entries := 0
	w.parts.submit = func(req api.SubmitRequest) (api.SubmitAnswer, error) {
		entries = len(req.MailMerge)
		return api.SubmitAnswer{MailMerge: []api.MailMergeResult{{Success: true, QueueID: "q1"}}}, nil
	}
	if answer := w.do(t, "POST", "/v1/submit", adminToken, mergeOf(10_000, 500)); answer.status != 200 ||
		entries != 10_000 {
		t.Errorf("got %d %.200s, %d entries", answer.status, answer.body, entries)
	}
}

// TestTooManyEntriesAreNotRead: the first one too many ends the reading, and the faults so far are in the
// answer.
func TestTooManyEntriesAreNotRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text := `{"nonsense":1,"mailMerge":[` + strings.Repeat(`{"to":{"address":"a@example.net"}},`, 10_001)
	body := &stalled{text: strings.NewReader(text), closed: make(chan struct{})}
	defer body.Close() //nolint:errcheck // it never fails
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.Server.URL()+"/v1/submit", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read
	var problem api.Problem
	if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil {
		t.Fatal(err)
	}
	want := []api.ProblemField{
		{Key: "nonsense", Message: labelled(fault.Field{Key: "nonsense", Message: "is not allowed"})},
		{Key: "mailMerge", Message: labelled(fault.Field{Key: "mailMerge",
			Message: "must contain less than or equal to 10000 items"})},
	}
	if answer.StatusCode != 400 || !reflect.DeepEqual(problem.Fields, want) || !answer.Close {
		t.Errorf("got %d, close %v, %+v", answer.StatusCode, answer.Close, problem)
	}
	w.parts.isEmpty(t)
}

// stalled is a body that stops coming without having ended, until no one waits for it any more.
type stalled struct {
	text   io.Reader
	once   sync.Once
	closed chan struct{}
}

func (s *stalled) Read(into []byte) (int, error) {
	n, err := s.text.Read(into)
	if err == nil {
		return n, nil
	}
	<-s.closed
	return 0, io.ErrUnexpectedEOF
}

func (s *stalled) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
