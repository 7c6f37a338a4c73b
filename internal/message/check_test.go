package message_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// faultsOf gives key: message for each wrong field.
func faultsOf(t testing.TB, err error) []string {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid {
		t.Fatalf("got %v, want a fault of kind invalid", err)
	}
	var got []string
	for _, field := range f.Fields {
		got = append(got, field.Key+": "+field.Message)
	}
	return got
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := message.Compose(message.Draft{
		From:       message.Address{Name: "A\nB", Address: "nobody"},
		To:         []message.Address{{Address: "a@b@c"}, bob},
		Cc:         []message.Address{{Address: ""}},
		Bcc:        []message.Address{{Name: "x\x00", Address: "b@[::1]"}},
		ReplyTo:    []message.Address{{Address: "x y@z.example"}},
		Sender:     message.Address{Address: "<s@example.com>"},
		Envelope:   &message.Envelope{From: "x", To: []string{"ok@example.com", "y"}},
		Date:       noon,
		Subject:    "a\r\nBcc: evil@example.com",
		MessageID:  "no-at",
		InReplyTo:  "with blank@x",
		References: []string{"<ok@x>", "<>"},
		Headers: []message.Header{
			{Name: "X-Foo", Value: "a\r\nBcc: evil@example.com"}, {Name: "X Bar", Value: "x"}, {Name: "", Value: "x"},
			{Name: "X-Bell", Value: "\a"}, {Name: "X-Delete", Value: "~\x7f"}, {Name: "X-Tilde", Value: "~\t~"},
			{Name: "Content-Type", Value: "text/html"}, {Name: "bcc", Value: "x@y.example"},
			{Name: "Subject", Value: "twice"},
			{Name: "X-Long", Value: strings.Repeat("u", 1000)}, {Name: "Date", Value: "tomorrow"},
			{Name: strings.Repeat("N", 61), Value: "x"},
		},
		Attachments: []message.Attachment{
			{Filename: "ok.txt"}, {Filename: "a\r\nX: y.txt", ContentType: "text/plain\n", Disposition: "form-data",
				CID: "a b"},
		},
	}, steady())
	want := []string{
		"headers.X Bar: must have a name of printable ASCII without spaces and colons",
		"headers.: must have a name of 1 to 60 characters",
		"headers.Content-Type: can't be set, because Postroom writes it from text, html and attachments, or from raw",
		"headers.bcc: can't be set as a header. Use the field bcc",
		"headers.Subject: differs from the field subject",
		"headers.Date: isn't a date in the format of RFC 5322",
		"headers." + strings.Repeat("N", 61) + ": must have a name of 1 to 60 characters",
		"from.name: must not contain a line break",
		"from.address: is not a valid email address: it has no @",
		"sender.address: is not a valid email address: it contains < or >; a display name goes into name",
		"to[0].address: is not a valid email address: it contains @",
		"cc[0].address: is required",
		"replyTo[0].address: is not a valid email address: it contains a space or a line break",
		"bcc[0].name: must not contain a NUL",
		"bcc[0].address: is not a valid email address: the domain can't be an IP address",
		"envelope.from: is not a valid email address: it has no @",
		"envelope.to[1]: is not a valid email address: it has no @",
		"subject: must not contain a line break",
		"messageId: is not a valid message id: it has to be like <id@domain>",
		"references[1]: is not a valid message id: it is empty",
		"inReplyTo: is not a valid message id: only printable ASCII without blanks and <> may be in it",
		"headers.X-Foo: must not contain a line break",
		"headers.X-Bell: must not contain control characters",
		"headers.X-Delete: must not contain control characters",
		"headers.X-Long: has a word that is too long for a line of at most 990 octets",
		"attachments[1].filename: must not contain a line break",
		"attachments[1].contentType: must not contain a line break",
		"attachments[1].contentDisposition: must be inline or attachment",
		"attachments[1].cid: must be printable ASCII without spaces, < and >",
	}
	if diff := cmp.Diff(want, faultsOf(t, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoRecipients(t *testing.T) {
	_, err := message.Compose(message.Draft{From: ann, Date: noon}, steady())
	if diff := cmp.Diff([]string{"to: at least one recipient is required"}, faultsOf(t, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFaultsThatAreNotTheDrafts(t *testing.T) {
	good := message.Draft{From: ann, To: []message.Address{bob}, Date: noon}
	if _, err := message.Compose(good, io.LimitReader(steady(), 21)); err == nil ||
		fault.Is(err, fault.Invalid) {
		t.Errorf("randomness that gives out: %v", err)
	}
	if _, err := message.Compose(good, iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("randomness that fails: %v", err)
	}
	good.Date = message.Draft{}.Date
	if _, err := message.Compose(good, steady()); err == nil || fault.Is(err, fault.Invalid) {
		t.Errorf("no date: %v", err)
	}
}

// TestNoFieldInjectsAnything puts line breaks, NULs and what they could begin into every string of a draft in
// turn. Either the draft is refused, or the mail has the header fields and parts it had before.
func TestNoFieldInjectsAnything(t *testing.T) {
	payloads := []string{
		"x\r\nBcc: evil@example.com\r\n\r\nbody", "x\nX-Evil: 1", "x\rX-Evil: 1", "x\x00y", "\"\r\nX-Evil: 1",
		"x>\r\nX-Evil: 1", "\r\n.\r\nMAIL FROM:<evil@example.com>",
		"x\r\n--=_0_hniaoyywcqj75ir27mz5nazhtkvaumn2--\r\n", "=?utf-8?q?x=0D=0AX-Evil:_1?=", "x\u2028X-Evil: 1",
		"x\u0085X-Evil: 1", `"; filename="evil.exe`, `x"; boundary="y`,
	}
	full := func() message.Draft {
		return message.Draft{
			From: ann, Sender: ann, To: []message.Address{ann}, Cc: []message.Address{ann}, Bcc: []message.Address{
				ann}, ReplyTo: []message.Address{ann},
			Envelope: &message.Envelope{From: "a@example.com", To: []string{"b@example.com"}}, Date: noon,
			Subject: "s", Text: "t", HTML: "<p>", PreviewText: "p",
			Attachments: []message.Attachment{
				{Filename: "f", Content: []byte("c"), ContentType: "text/plain; charset=utf-8", Disposition: "inline",
					CID: "c"}},
			MessageID: "<m@x>", InReplyTo: "<i@x>", References: []string{"<r@x>"}, Headers: []message.Header{
				{Name: "X-Own", Value: "v"}},
		}
	}
	want := shape(t, compose(t, full()).Raw)
	accepted := 0
	for _, payload := range payloads {
		pristine := full()
		for i := range stringsOf(reflect.ValueOf(&pristine).Elem(), "Draft") {
			d := full()
			slot := stringsOf(reflect.ValueOf(&d).Elem(), "Draft")[i]
			slot.value.SetString(payload)
			c, err := message.Compose(d, steady())
			if err != nil {
				faultsOf(t, err)
				continue
			}
			accepted++
			checkCarriable(t, c)
			if diff := cmp.Diff(want, shape(t, c.Raw)); diff != "" {
				t.Errorf("%s = %q changed the mail's shape:\n%s", slot.path, payload, diff)
			}
		}
	}
	if accepted < len(payloads) {
		t.Errorf("only %d of the drafts were accepted: the test tests little", accepted)
	}
}

type stringSlot struct {
	path  string
	value reflect.Value
}

// stringsOf finds every string in a value, however deep, where it can be set.
func stringsOf(v reflect.Value, path string) []stringSlot {
	var slots []stringSlot
	switch v.Kind() {
	case reflect.String:
		slots = append(slots, stringSlot{path, v})
	case reflect.Pointer:
		slots = stringsOf(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			slots = append(slots, stringsOf(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return nil
		}
		for i := range v.NumField() {
			slots = append(slots, stringsOf(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
	}
	return slots
}

// shape gives the names of all header fields, of the mail and of its parts, as two parsers of the standard
// library see them.
func shape(t *testing.T, raw []byte) []string {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	names := namesOf(m.Header)
	for _, p := range readParts(t, m.Header.Get("Content-Type"), m.Body) {
		names = append(names, namesOf(p.header)...)
	}
	return names
}

func namesOf[H ~map[string][]string](header H) []string {
	var names []string
	for name, values := range header {
		for range values {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

type readPart struct {
	header textproto.MIMEHeader
	body   []byte
}

// readParts reads the leaves of a MIME tree, decoded.
func readParts(t testing.TB, contentType string, body io.Reader) []readPart {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("Content-Type %q: %v", contentType, err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	var parts []readPart
	for reader := multipart.NewReader(body, params["boundary"]); ; {
		p, err := reader.NextRawPart()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatalf("read a part of %s: %v", kind, err)
		}
		inner := readParts(t, p.Header.Get("Content-Type"), p)
		if inner == nil {
			inner = []readPart{{p.Header, decodeBody(t, p.Header.Get("Content-Transfer-Encoding"), p)}}
		}
		parts = append(parts, inner...)
	}
}

func decodeBody(t testing.TB, encoding string, body io.Reader) []byte {
	t.Helper()
	switch encoding {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	decoded, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("decode %s: %v", encoding, err)
	}
	return decoded
}
