package apisend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
)

// mappedTypes are the APIs that take the parts of a message, and lists.
var mappedTypes = []api.GatewayType{api.GatewayMailjet, api.GatewayPostmark, api.GatewayResend}

// mapped is a fake provider, and a sender that repeats nothing.
func mapped(t testing.TB, kind api.GatewayType, o testapi.Options) (*testapi.Server, *Sender, Target) {
	t.Helper()
	server := testapi.Start(t, string(kind), o)
	s, err := New(Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	to := Target{Type: kind, ID: "gw", URL: server.URL, Key: "key", Secret: testapi.DefaultSecret}
	if o.Key != "" {
		to.Key, to.Secret = o.Key, o.Secret
	}
	return server, s, to
}

// recorded is an exchange of testdata/provider-send.
type recorded struct {
	Request struct {
		Path    string
		Headers map[string]string
		Body    any
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    json.RawMessage
		Raw     string
	}
	Expect struct {
		Recipients []struct {
			To, Result, ProviderMessageID string
			Verdict                       smtpsend.Verdict
			Scope                         smtpsend.Scope
			Suppress, Elsewhere           bool
			RetryAfterSeconds             int
		}
	}
}

// order is the message of the recorded requests.
func order(number int, tags []string, to ...string) smtpsend.Message {
	id := fmt.Sprintf("01JDXAMPLE%04d", number)
	raw := "From: Shop <shop@example.com>\nTo: " + strings.Join(to, ", ") +
		"\nSubject: Your order 1042\nMessage-ID: <" +
		id + "@example.com>\nDate: Sun, 01 Mar 2026 12:00:00 +0000\nList-Unsubscribe: " +
		"<https://mail.example.com/unsubscribe?t=abc>\nMIME-Version: 1.0\nContent-Type: multipart/alternative; " +
		"boundary=a\n\n--a\nContent-Type: text/plain; charset=utf-8\n\nHello Ann, your order 1042 is on its way.\n--a\n" +
		"Content-Type: text/html; charset=utf-8\n\n<p>Hello Ann, your order <b>1042</b> is on its way.</p>\n--a--\n"
	return smtpsend.Message{From: "shop@example.com", To: to,
		Body: smtpsend.Bytes(strings.ReplaceAll(raw, "\n", "\r\n")),
		Labels: smtpsend.Labels{ID: id, Tags: tags, Proof: func() string {
			return id
		}}}
}

// TestRecordedExchanges sends the message of each recorded request, and gives the recorded answer.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	keys := map[api.GatewayType]testapi.Options{
		api.GatewayPostmark: {Key: "00000000-0000-0000-0000-000000000000"}, api.GatewayResend: {Key: "re_example"},
		api.GatewayMailjet: {Key: "pub", Secret: "priv"},
	}
	for _, kind := range mappedTypes {
		files, err := filepath.Glob("../../internal/testapi/testdata/provider-send/" + string(kind) + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal(len(files), err)
		}
		for _, file := range files {
			t.Run(string(kind)+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				f := load(t, file)
				if all := f.messages(kind); len(all) > 1 {
					c := gathering(t, kind, 0, keys[kind])
					c.Fail(f.fault())
					f.compare(t, c.Requests, c.send(all...))
					return
				}
				server, s, to := mapped(t, kind, keys[kind])
				server.FailAlways(f.fault())
				r, _ := s.Send(t.Context(), to, f.messages(kind)[0])
				f.compare(t, server.Requests, r.Recipients)
			})
		}
	}
}

func load(t *testing.T, file string) (f recorded) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil { // we send nothing to an address without a domain
		err = json.Unmarshal(bytes.ReplaceAll(raw, []byte(`"nobody"`), []byte(`"nobody@example.net"`)), &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// messages returns the messages of a request, with what they have in common.
func messages(body any) []any {
	switch b := body.(type) {
	case []any:
		return b
	case map[string]any:
		list, isList := b["Messages"].([]any)
		if !isList {
			return []any{b}
		}
		for _, m := range list {
			common, _ := b["Globals"].(map[string]any)
			for name, value := range common {
				m.(map[string]any)[name] = value
			}
		}
		return list
	}
	return nil
}

// messages makes the messages of the request.
func (f recorded) messages(kind api.GatewayType) []smtpsend.Message {
	var tags []string
	if kind == api.GatewayPostmark {
		tags = []string{"orders"}
	}
	var to []string
	for _, r := range f.Expect.Recipients {
		to = append(to, r.To)
	}
	n := len(messages(f.Request.Body))
	if n == 1 {
		return []smtpsend.Message{order(1, tags, to...)}
	}
	var all []smtpsend.Message
	for i := range n {
		all = append(all, order(i+1, tags, to[i]))
	}
	return all
}

// fault makes a fake give the recorded answer.
func (f recorded) fault() testapi.Fault {
	body := f.Response.Raw
	if f.Response.Body != nil {
		body = string(f.Response.Body)
	}
	return testapi.Fault{Status: f.Response.Status, Header: f.Response.Headers, Body: body}
}

// compare compares the request and the results with those that were recorded.
func (f recorded) compare(t *testing.T, requests func() []testapi.Request,
	results []smtpsend.RecipientResult) {
	t.Helper()
	sent := requests()[len(requests())-1]
	var body any
	if err := json.Unmarshal(sent.Body, &body); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(messages(f.Request.Body), messages(body)); d != "" || sent.Path != f.Request.Path {
		t.Errorf("%s (-want +sent):\n%s", sent.Path, d)
	}
	for name, want := range f.Request.Headers {
		if have := sent.Header.Get(name); have != want && (name != "idempotency-key" || have == "") {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
	for i, want := range f.Expect.Recipients {
		got := results[i]
		switch e := got.Err; {
		case want.Result == "sent":
			if e != nil || got.ProviderID != want.ProviderMessageID {
				t.Errorf("%s: id %q, %v", got.Address, got.ProviderID, e)
			}
		case e == nil:
			t.Errorf("%s was sent, want %s", got.Address, want.Verdict)
		case e.Verdict != want.Verdict || e.Scope != want.Scope || e.Suppress != want.Suppress ||
			e.Elsewhere() != want.Elsewhere:
			t.Errorf("%s: %s %s, suppress %v, elsewhere %v, want %+v", got.Address, e.Verdict, e.Scope, e.Suppress,
				e.Elsewhere(), want)
		case !e.InDoubt && e.RetryAfter != time.Duration(want.RetryAfterSeconds)*time.Second:
			t.Errorf("%s: retry after %s, want %d s", got.Address, e.RetryAfter, want.RetryAfterSeconds)
		}
	}
}

// said returns what an answer means for recipients: sent and the id, doubt, later for what is not said, or
// the verdict, the scope and whether the address is suppressed.
func said(t *testing.T, kind api.GatewayType, status int, body string, to ...string) string {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDelivery(s, Target{Type: kind}, smtpsend.Message{To: to})
	d.judge(&exchange{adapter: d.a, to: to, status: status, header: http.Header{}, body: []byte(body),
		method: http.MethodPost})
	var all []string
	for _, r := range d.result.Recipients {
		switch e := r.Err; {
		case slices.Contains(d.open, r.Address):
			all = append(all, "again")
		case e == nil:
			all = append(all, "sent "+r.ProviderID)
		case e.InDoubt:
			all = append(all, "doubt")
		default:
			one := string(e.Verdict) + " " + string(e.Scope)
			if e.Suppress {
				one += " suppress"
			}
			if e.RetryAfter > 0 {
				one += " " + e.RetryAfter.String()
			}
			all = append(all, one)
		}
	}
	return strings.Join(all, ", ")
}

// saying is a line in a table of answers.
type saying struct {
	status int
	body   string
	want   string
}

// rich is a message with everything that the APIs take.
func rich(change func(*message.Draft)) message.Draft {
	d := message.Draft{
		Subject: "Grüße aus Köln – 50 % “off”", Text: "Grüße,\n.\n\nBob\n",
		HTML:    "<p>Grüße <img src=\"cid:logo\"> &amp; {{name}} %s</p>\n",
		ReplyTo: []message.Address{{Name: "Doe, Jörg \"J\"", Address: "r@example.com"}},
		Headers: []message.Header{{Name: "X-Note", Value: "Привет, =?x?= мир"},
			{Name: "List-Unsubscribe", Value: "<https://example.com/u/" + strings.Repeat("t", 200) + ">"},
			{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"}},
		InReplyTo: "<a@b.example>",
		Attachments: []message.Attachment{{Filename: "logo.gif", Content: gif, CID: "logo"},
			{Filename: "плановый отчёт.pdf", Content: []byte{0, 255, '\n'}, CID: "unlinked"},
			{Filename: "b.csv", Content: []byte("ä;b\r\n"), ContentType: "text/csv; charset=utf-8"}},
	}
	change(&d)
	return d
}

// TestContentOfMappedMessages: what a provider joins of the parts is what was composed, or the gateway can't
// carry the message.
func TestContentOfMappedMessages(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*message.Draft)
		lacks  []api.GatewayType
	}{
		"rich":      {func(*message.Draft) {}, nil},
		"text only": {func(d *message.Draft) { d.HTML, d.Attachments = "", nil }, nil},
		"only html": {func(d *message.Draft) { d.Text = "" }, nil},
		"several Reply-To": {func(d *message.Draft) {
			d.ReplyTo = append(d.ReplyTo, message.Address{Address: "s@example.com"})
		}, mappedTypes[:1]},
		"a sender": {func(d *message.Draft) { d.Sender.Address = "x@example.com" }, mappedTypes},
		"an invitation": {func(d *message.Draft) {
			d.Attachments = []message.Attachment{{Filename: "invite.ics",
				ContentType: "text/calendar; method=REQUEST", Content: []byte("BEGIN:VCALENDAR\nEND:VCALENDAR\n")}}
		}, mappedTypes},
		"two fields": {func(d *message.Draft) {
			d.Headers = append(d.Headers, message.Header{Name: "X-note", Value: "2"})
		}, []api.GatewayType{api.GatewayMailjet, api.GatewayResend}},
		"a wrong type":  {func(d *message.Draft) { d.Attachments[1].ContentType = "image/png" }, mappedTypes[2:]},
		"an empty file": {func(d *message.Draft) { d.Attachments[1].Content = nil }, mappedTypes},
	} {
		for _, kind := range mappedTypes {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				server, s, to := mapped(t, kind, testapi.Options{})
				raw := compose(t, rich(row.change))
				r, err := s.Send(t.Context(), to, smtpsend.Message{From: "ann@example.com",
					To: []string{"bob@example.net"}, Body: smtpsend.Bytes(raw)})
				if slices.Contains(row.lacks, kind) {
					if e := r.Recipients[0].Err; e == nil || !e.Uncarried() {
						t.Errorf("%v, want one that the gateway can't carry", err)
					}
					return
				}
				if err != nil || server.Count("bob@example.net") != 1 {
					t.Fatalf("%v, delivered %d times", err, server.Count(""))
				}
				want, got := apart(t, raw), apart(t, server.Delivered()[0].MIME)
				if kind == api.GatewayPostmark && got.messageID != want.messageID {
					t.Errorf("the id is %q, want %q", got.messageID, want.messageID)
				}
				for _, c := range []*content{&want, &got} {
					c.header, c.messageID, c.files = c.others("date", "message-id"), "", each(c.files, file.attached)
					slices.SortFunc(c.header, func(a, b field) int { return strings.Compare(a.name, b.name) })
				}
				if d := diff(want, got); d != "" {
					t.Errorf("(-composed +joined):\n%s", d)
				}
			})
		}
	}
}

// TestNamesOfAddresses: a display name arrives as it is.
func TestNamesOfAddresses(t *testing.T) {
	for _, name := range []string{"", "Ann", "Doe, Ann", `Ann "A" \ Doe`, "Jörg <j>", "a@b", "Ann.", " Ann",
		"(Ann)"} {
		want := []message.Address{{Name: name, Address: "ann@example.com"}, {Address: "b@example.com"}}
		got, err := message.ParseAddressList(strings.Join(each(want, written), ", "))
		if err != nil || cmp.Diff(want, got) != "" && strings.TrimSpace(name) == name {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}
