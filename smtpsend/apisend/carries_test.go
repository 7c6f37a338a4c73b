package apisend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
)

// said is a content as a reader sees it, without what providers may choose.
func whatItSays(c content) content {
	c.messageID = ""
	c.header = slices.DeleteFunc(slices.Clone(c.header), func(f field) bool {
		return f.name == "Date" || f.name == "Message-ID" || f.name == brevoProofField
	})
	slices.SortFunc(c.header, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i, a := range c.alternatives {
		c.alternatives[i].kind = mediaType(a.kind)
	}
	for _, files := range [][]file{c.inline, c.files} {
		for i, f := range files {
			files[i].kind = mediaType(f.kind)
		}
	}
	return c
}

// TestContentArrives: what a provider that takes parts joins is what was composed, or the gateway can't carry
// the message. Carries knows it before.
func TestContentArrives(t *testing.T) {
	t.Parallel()
	pdf := message.Attachment{Filename: "a.pdf", Content: []byte{0, 1, 2, '\n'}}
	all := []api.GatewayType{api.GatewaySendGrid, api.GatewayBrevo}
	for name, row := range map[string]struct {
		draft   message.Draft
		change  func(string) string // of the message
		carried []api.GatewayType
	}{
		"texts":       {message.Draft{Text: "Grüße\n..\n=20\n", HTML: "<p>Grüße &amp; {{x}} {% y %} -h1- *|z|*</p>\n"}, nil, all},
		"a long text": {message.Draft{Text: "x\n", HTML: "<p>" + strings.Repeat("こんにちは", 5000) + "</p>"}, nil, all},
		"an attachment": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{pdf,
			{Filename: "b.txt", Content: []byte("ASCII\r\n")}}}, nil, all},
		"an inline image": {message.Draft{HTML: `<img src="cid:logo">`, Attachments: []message.Attachment{
			{Filename: "logo.gif", Content: gif, CID: "logo"}}}, nil, all[:1]},
		"a name beyond ASCII": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "Köln.pdf", Content: []byte("x")}}}, nil, nil},
		"a text file beyond ASCII": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "a.csv", Content: []byte("Köln\n")}}}, nil, all[1:]},
		"a text file of another charset": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "a.csv", Content: []byte("K\xf6ln\n"), ContentType: "text/csv; charset=iso-8859-1"}}}, nil, nil},
		"an unknown extension": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "a.xyz", Content: []byte("x")}}}, nil, all[:1]},
		"an empty file": {message.Draft{HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "a.pdf"}}}, nil, nil},
		"an invitation": {message.Draft{Text: "x\n", HTML: "<p>Hi</p>", Attachments: []message.Attachment{
			{Filename: "i.ics", ContentType: "text/calendar; method=REQUEST",
				Content: []byte("BEGIN:VCALENDAR\nMETHOD:REQUEST\nEND:VCALENDAR\n")}}}, nil, all[:1]},
		"a Reply-To": {message.Draft{HTML: "<p>Hi</p>", ReplyTo: []message.Address{
			{Name: "Müller", Address: "r@example.com"}}}, nil, all},
		"a Reply-To with punctuation": {message.Draft{HTML: "<p>Hi</p>", ReplyTo: []message.Address{
			{Name: "Müller, A.", Address: "r@example.com"}}}, nil, all[:1]},
		"several Reply-To": {message.Draft{HTML: "<p>Hi</p>", ReplyTo: []message.Address{
			{Address: "r@example.com"}, {Address: "s@example.com"}}}, nil, all[:1]},
		"header fields": {message.Draft{HTML: "<p>Hi</p>", InReplyTo: "<a@b.example>", Headers: []message.Header{
			{Name: "X-Note", Value: "one, two"}, {Name: "List-Unsubscribe", Value: "<https://example.com/u>"},
			{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"}}}, nil, all},
		"a header field beyond ASCII": {message.Draft{HTML: "<p>Hi</p>", Headers: []message.Header{
			{Name: "X-Note", Value: "Grüße"}}}, nil, all[:1]},
		"one field twice": {message.Draft{HTML: "<p>Hi</p>", Headers: []message.Header{
			{Name: "X-Note", Value: "1"}, {Name: "X-NOTE", Value: "2"}}}, nil, nil},
		"a field that drops": {message.Draft{HTML: "<p>Hi</p>", Headers: []message.Header{
			{Name: "X-Sib-Sandbox", Value: "drop"}}}, nil, all[:1]},
		"another sender": {message.Draft{HTML: "<p>Hi</p>", Sender: message.Address{Address: "x@example.com"}}, nil, nil},
		"no text":        {message.Draft{Attachments: []message.Attachment{pdf}}, nil, nil},
		"no subject": {message.Draft{HTML: "<p>Hi</p>"}, func(s string) string {
			return strings.Replace(s, "Subject: ", "X-Other: ", 1)
		}, nil},
		"eight bits": {message.Draft{HTML: "<p>Hi</p>"}, func(s string) string {
			head, _, _ := strings.Cut(s, "Content-Type:")
			return strings.Replace(head, "MIME-Version: 1.0\r\n", "", 1) + "MIME-Version: 1.0\r\nContent-Type: text/html; " +
				"charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n<p>Grüße</p>\r\n"
		}, all},
		"a signed message": {message.Draft{HTML: "<p>Hi</p>"}, func(s string) string {
			head, _, _ := strings.Cut(s, "Content-Type:")
			return head + "Content-Type: multipart/signed; boundary=B\r\n\r\n--B\r\n\r\nx\r\n--B--\r\n"
		}, nil},
		"an address beyond ASCII": {message.Draft{HTML: "<p>Hi</p>", ReplyTo: []message.Address{
			{Address: "müller@example.com"}}}, nil, nil},
	} {
		row.draft.Subject = "Grüße, Bob"
		raw := compose(t, row.draft)
		if row.change != nil {
			raw = []byte(row.change(string(raw)))
		}
		raw = []byte(strings.Replace(string(raw), "To: bob@example.net", // a name that Brevo drops as it is
			"To: =?utf-8?q?Bob_M=C3=BCller=2C_X?= <bob@example.net>", 1))
		for _, kind := range all {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				checkArrives(t, kind, raw, slices.Contains(row.carried, kind))
			})
		}
	}
}

func checkArrives(t *testing.T, kind api.GatewayType, raw []byte, carried bool) {
	t.Helper()
	fake := testapi.Start(t, string(kind), testapi.Options{})
	sender, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	gateway := Target{Type: kind, ID: "gw", URL: fake.URL, Key: "key"}
	m := smtpsend.Message{From: "bounce@example.com", To: []string{"bob@example.net"}, Body: smtpsend.Bytes(raw)}
	m.Labels.Proof = func() string { return "01JDXAMPLE0001" }
	marked := false
	m.BeforeDot = func(context.Context, []string) error { marked = true; return nil }
	_, err = sender.Send(t.Context(), gateway, m)
	judged := Carries(gateway, m, raw)
	if !carried {
		e, is := errors.AsType[*smtpsend.Error](err)
		if !is || !e.Uncarried() || judged == nil || !strings.Contains(e.Error(), judged.Error()) || marked {
			t.Errorf("%v, judged before as %v, want one that it can't carry", err, judged)
		}
		return
	}
	if err != nil || judged != nil || len(fake.Delivered()) != 1 {
		t.Fatalf("%v, %v, delivered %d times", err, judged, len(fake.Delivered()))
	}
	d := fake.Delivered()[0]
	if d.Metadata["postroom_id"] != "01JDXAMPLE0001" {
		t.Errorf("metadata %v", d.Metadata)
	}
	want, have := whatItSays(apart(t, raw)), whatItSays(apart(t, d.MIME))
	if kind == api.GatewayBrevo && !want.hasHTML {
		have.html, have.hasHTML = "", false // made of the text
	}
	if diff := diff(want, have); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

// TestCarriesWithoutParts: size and RequireTLS count for every provider.
func TestCarriesWithoutParts(t *testing.T) {
	t.Parallel()
	raw := compose(t, message.Draft{Subject: "x", Text: "x\n"})
	large := []byte(string(raw) + strings.Repeat("x", 41<<20))
	endpoint := Target{Type: api.GatewayHTTP, ID: "gw"}
	for name, row := range map[string]struct {
		target  Target
		message smtpsend.Message
		raw     []byte
		want    string
	}{
		"an endpoint carries any": {endpoint, smtpsend.Message{}, large, ""},
		"RequireTLS":              {endpoint, smtpsend.Message{RequireTLS: true}, raw, "it requires TLS on the whole way"},
		"large": {Target{Type: api.GatewaySendGrid, ID: "gw"}, smtpsend.Message{}, large,
			"bytes, and sendgrid takes 31457280"},
	} {
		lack := Carries(row.target, row.message, row.raw)
		if (lack == nil) != (row.want == "") || lack != nil && !strings.Contains(lack.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, lack, row.want)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, (&mail{Message: smtpsend.Message{Labels: smtpsend.Labels{
		Tags: []string{"a", "a", "too long", "b", "c"}}}}).tags(2, 5)); diff != "" {
		t.Errorf("tags (-want +have):\n%s", diff)
	}
}
