package apisend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"regexp"
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

// mimeTypes are the APIs that take MIME.
var mimeTypes = []api.GatewayType{api.GatewayMailgun, api.GatewayMandrill, api.GatewaySES,
	api.GatewaySparkPost}

// order1042 is the message of the recorded requests.
const order1042 = "Message-ID: <01JDXAMPLE0001@example.com>\r\nDate: Fri, 27 Nov 2026 09:00:00 +0000\r\n" +
	"From: Shop <shop@example.com>\r\nTo: Ann <ann@example.net>\r\nSubject: Your order 1042\r\n" +
	"List-Unsubscribe: <https://mail.example.com/unsubscribe?t=abc>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\n\r\nHello Ann, your order 1042 is on its way.\r\n"

// mimeAccount is a fake provider, and an account of it.
func mimeAccount(t testing.TB, kind api.GatewayType, o testapi.Options) (*testapi.Server, *Sender, Target) {
	t.Helper()
	server := testapi.Start(t, string(kind), o)
	s, err := New(Options{Timeout: 10 * time.Second, Now: o.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	to := Target{Type: kind, ID: "gw", URL: server.URL, Key: "key"}
	switch kind {
	case api.GatewaySES:
		to.Secret, to.Region = testapi.DefaultSecret, "eu-west-1"
	case api.GatewayMailgun:
		to.Domain = "mg.example.com"
	}
	return server, s, to
}

func mimeMail(raw string, to ...string) smtpsend.Message {
	return smtpsend.Message{From: "shop@example.com", To: to, Body: smtpsend.Bytes(raw), Labels: smtpsend.Labels{
		ID: "01JDXAMPLE0001", Account: "shop", Proof: func() string { return "01JDXAMPLE0001" },
	}}
}

// TestRecordedExchangesWithMIME sends the message of each recorded request, and gives the recorded answer.
func TestRecordedExchangesWithMIME(t *testing.T) {
	t.Parallel()
	keys := map[api.GatewayType]string{api.GatewaySES: "AKIDEXAMPLE", api.GatewayMailgun: "key-example",
		api.GatewaySparkPost: "spkey", api.GatewayMandrill: "md-example"}
	for _, kind := range mimeTypes {
		files, err := filepath.Glob("../../internal/testapi/testdata/provider-send/" + string(kind) + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal(len(files), err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if strings.HasPrefix(name, "batch-") || strings.HasPrefix(name, "bulk-") {
				continue // several messages
			}
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				noon := time.Unix(1795770000, 0)
				server, s, target := mimeAccount(t, kind, testapi.Options{Now: func() time.Time { return noon }})
				target.Key = keys[kind]
				if kind == api.GatewaySES {
					target.Pool = "postroom"
				}
				if name == "wrong-path.json" {
					target.Domain += "/"
				}
				f := load(t, file)
				server.FailAlways(f.fault())
				var to []string
				for _, r := range f.Expect.Recipients {
					to = append(to, r.To)
				}
				m := mimeMail(order1042, to...)
				if kind == api.GatewayMailgun {
					m.Labels.Tags = []string{"orders"}
				}
				r, _ := s.Send(t.Context(), target, m)
				f.compareSent(t, file, server.Requests()[0])
				f.compareResults(t, r.Recipients)
			})
		}
	}
}

// compareSent compares a request with the recorded one.
func (f recorded) compareSent(t *testing.T, file string, sent testapi.Request) {
	t.Helper()
	if sent.Path != f.Request.Path {
		t.Errorf("path %s, want %s", sent.Path, f.Request.Path)
	}
	for name, want := range f.Request.Headers {
		want, _, _ = strings.Cut(want, "…") // the rest differs each time
		if have := sent.Header.Get(name); !strings.HasPrefix(have, want) {
			t.Errorf("%s is %q, want %q", name, have, want)
		}
	}
	if f.Request.Body == nil {
		var with struct{ Request struct{ Form [][2]string } }
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &with)
		}
		if d := cmp.Diff(with.Request.Form, fields(t, sent)); d != "" || err != nil {
			t.Errorf("%v (-want +sent):\n%s", err, d)
		}
		return
	}
	var body map[string]any
	if err := json.Unmarshal(sent.Body, &body); err != nil {
		t.Fatal(err)
	}
	if raw, ok := body["raw_message"].(string); ok {
		body["raw_message"] = settings.ReplaceAllString(raw, "")
	}
	if d := cmp.Diff(f.Request.Body, any(body)); d != "" {
		t.Errorf("(-want +sent):\n%s", d)
	}
}

// settings are the fields that Mandrill removes.
var settings = regexp.MustCompile(`(?m)^X-MC-.*\r\n`)

// fields returns the fields of a form in their order.
func fields(t *testing.T, sent testapi.Request) (all [][2]string) {
	t.Helper()
	_, params, err := mime.ParseMediaType(sent.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	form := multipart.NewReader(bytes.NewReader(sent.Body), params["boundary"])
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		value, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		if part.FileName() != "" {
			value = append([]byte("(file "+part.FileName()+") "), value...)
		}
		all = append(all, [2]string{part.FormName(), string(value)})
	}
}

func (f recorded) compareResults(t *testing.T, results []smtpsend.RecipientResult) {
	t.Helper()
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
			e.Elsewhere() != want.Elsewhere || e.InDoubt:
			t.Errorf("%s: %v, want %+v", got.Address, e, want)
		case want.RetryAfterSeconds > 0 && e.RetryAfter != time.Duration(want.RetryAfterSeconds)*time.Second:
			t.Errorf("%s: retry after %s, want %d s", got.Address, e.RetryAfter, want.RetryAfterSeconds)
		}
	}
}

// TestMIMEArrivesAsItIs: what a provider delivers is what was composed, byte for byte, or the gateway can't
// carry the message.
func TestMIMEArrivesAsItIs(t *testing.T) {
	t.Parallel()
	signed := func(body string) string {
		return strings.Replace(order1042, "Hello Ann", "Hello "+body, 1)
	}
	but := func(kinds ...api.GatewayType) []api.GatewayType { return kinds }
	inText := but(api.GatewaySES, api.GatewayMandrill, api.GatewaySparkPost)
	for name, row := range map[string]struct {
		raw   string
		to    string
		lacks []api.GatewayType
	}{
		"rich": {raw: string(compose(t, rich(func(d *message.Draft) {
			d.ReplyTo = append(d.ReplyTo, message.Address{Address: "s@example.com"})
			d.Sender = message.Address{Address: "x@example.com"}
			d.Attachments = append(d.Attachments, message.Attachment{Filename: "invite.ics",
				ContentType: "text/calendar; method=REQUEST", Content: []byte("BEGIN:VCALENDAR\nEND:VCALENDAR\n")})
		})))},
		"8-bit":           {raw: signed("Jörg, 日本 \u2028<&>"), lacks: but(api.GatewaySES)},
		"8-bit, no UTF-8": {raw: signed("J\xf6rg"), lacks: inText},
		"a NUL":           {raw: signed("\x00"), lacks: inText},
		"a field in UTF-8": {raw: strings.Replace(order1042, "Your order", "Größe", 1),
			lacks: mimeTypes},
		"a wide address": {raw: order1042, to: "änn@example.net", lacks: but(api.GatewaySES)},
		"a merge tag":    {raw: signed("*|NAME|*"), lacks: but(api.GatewayMandrill)},
		"a hidden merge tag": {raw: string(compose(t, message.Draft{Subject: "Größe *|X:y|*", Text: "é"})),
			lacks: but(api.GatewayMandrill)},
		"other templates": {raw: signed("{{name}} %recipient.x% [[y]] *| x")},
	} {
		for _, kind := range mimeTypes {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				server, s, target := mimeAccount(t, kind, testapi.Options{})
				to := "ann@example.net"
				if row.to != "" {
					to = row.to
				}
				r, err := s.Send(t.Context(), target, mimeMail(row.raw, to))
				if slices.Contains(row.lacks, kind) {
					if e := r.Recipients[0].Err; e == nil || !e.Uncarried() || len(server.Requests()) > 0 {
						t.Errorf("%v, want one that the gateway can't carry", err)
					}
					return
				}
				if err != nil || len(server.Delivered()) != 1 {
					t.Fatalf("%v, delivered %d times", err, len(server.Delivered()))
				}
				d := server.Delivered()[0]
				want, got := row.raw, string(d.MIME)
				if kind == api.GatewaySES {
					want, got = rewritten.ReplaceAllString(want, ""), rewritten.ReplaceAllString(got, "")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-composed +delivered):\n%s", diff)
				}
				if d.Metadata["postroom_id"] != "01JDXAMPLE0001" || d.ID != r.Recipients[0].ProviderID {
					t.Errorf("metadata %v, id %s, want %s", d.Metadata, d.ID, r.Recipients[0].ProviderID)
				}
			})
		}
	}
}

// rewritten are the fields that SES writes itself.
var rewritten = regexp.MustCompile(`(?im)^(Date|Message-ID): .*\r\n`)

// TestSettingsOfMIME: tags, pools, subaccounts and sandboxes.
func TestSettingsOfMIME(t *testing.T) {
	t.Parallel()
	tags := []string{"orders", "a\r\nBcc: x@example.org", "ä", "_own", "a,b", "x y", strings.Repeat("x", 129)}
	for kind, row := range map[api.GatewayType]struct {
		tags     []string
		metadata map[string]string
		says     []string // parts of the request
	}{
		api.GatewaySES: {nil, map[string]string{"postroom_id": "01JDXAMPLE0001", "tag": "orders", "tag4": "_own",
			"tag7": strings.Repeat("x", 129)}, []string{`"ConfigurationSetName":"pool"`}},
		api.GatewayMailgun: {[]string{"orders", "_own", "x y"}, map[string]string{"postroom_id": "01JDXAMPLE0001"},
			[]string{"name=\"o:testmode\"\r\n\r\nyes"}},
		api.GatewaySparkPost: {[]string{"orders"}, map[string]string{"postroom_id": "01JDXAMPLE0001"},
			[]string{`"ip_pool":"pool"`, `"ann@example.net.sink.sparkpostmail.com"`, `"header_to":"ann@example.net"`,
				`"transactional":false`, "X-Msys-Subaccount: 7"}},
		api.GatewayMandrill: {[]string{"orders", "x y"}, map[string]string{"postroom_id": "01JDXAMPLE0001"},
			[]string{`"ip_pool":"pool"`, `X-MC-Subaccount: 7\r\n`, `X-MC-PreserveRecipients: true\r\n`}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server, s, target := mimeAccount(t, kind, testapi.Options{})
			target.Pool, target.Subaccount, target.Sandbox = "pool", "7", true
			m := mimeMail(order1042, "ann@example.net")
			m.Labels.Tags, m.Labels.Bulk = tags, true
			if _, err := s.Send(t.Context(), target, m); err != nil {
				t.Fatal(err)
			}
			d, sent := server.Delivered()[0], server.Requests()[0]
			sandbox := kind == api.GatewayMailgun || kind == api.GatewaySparkPost
			if cmp.Diff(row.tags, d.Tags) != "" || cmp.Diff(row.metadata, d.Metadata) != "" || d.Sandbox != sandbox {
				t.Errorf("tags %q, metadata %v, sandbox %v", d.Tags, d.Metadata, d.Sandbox)
			}
			var whole bytes.Buffer
			_ = sent.Header.Write(&whole)
			whole.Write(sent.Body)
			for _, part := range row.says {
				if !strings.Contains(whole.String(), part) {
					t.Errorf("without %q: %.2000s", part, &whole)
				}
			}
		})
	}
}

// TestHiddenRecipientsOfMandrill: with more recipients than the header names, each copy names one.
func TestHiddenRecipientsOfMandrill(t *testing.T) {
	t.Parallel()
	server, s, target := mimeAccount(t, api.GatewayMandrill, testapi.Options{})
	m := mimeMail(order1042, "ann@example.net", "hidden@example.net")
	if _, err := s.Send(t.Context(), target, m); err != nil {
		t.Fatal(err)
	}
	if body := string(server.Requests()[0].Body); !strings.Contains(body, `X-MC-PreserveRecipients: false\r\n`) {
		t.Error(body)
	}
}

// TestRequiredTLSOfMIME: only Mailgun can be asked for it.
func TestRequiredTLSOfMIME(t *testing.T) {
	t.Parallel()
	for _, kind := range mimeTypes {
		server, s, target := mimeAccount(t, kind, testapi.Options{})
		m := mimeMail(order1042, "ann@example.net")
		m.RequireTLS = true
		r, err := s.Send(t.Context(), target, m)
		if kind != api.GatewayMailgun {
			if e := r.Recipients[0].Err; e == nil || !e.Uncarried() {
				t.Errorf("%s: %v", kind, err)
			}
			continue
		}
		if err != nil || !strings.Contains(string(server.Requests()[0].Body), "name=\"o:require-tls\"\r\n\r\nyes") {
			t.Errorf("%v: %s", err, server.Requests()[0].Body)
		}
	}
}

// TestManyRecipientsOfMIME: each request has at most as many as its provider takes, and each recipient gets
// the message once.
func TestManyRecipientsOfMIME(t *testing.T) {
	t.Parallel()
	for _, kind := range mimeTypes {
		server, s, target := mimeAccount(t, kind, testapi.Options{})
		var to []string
		for i := range 103 {
			to = append(to, fmt.Sprintf("r%d@example.net", i))
		}
		r, err := s.Send(t.Context(), target, mimeMail(order1042, to...))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range r.Recipients {
			if one.Err != nil || one.ProviderID == "" || server.Count(one.Address) != 1 {
				t.Errorf("%s: %s: %+v, delivered %d times", kind, one.Address, one, server.Count(one.Address))
			}
		}
		if n, want := len(server.Requests()), (103+adapters[kind].most-1)/adapters[kind].most; n != want {
			t.Errorf("%s: %d requests, want %d", kind, n, want)
		}
	}
}

// TestSomeOfSparkPost: recipients in doubt have the id, by which events decide.
func TestSomeOfSparkPost(t *testing.T) {
	t.Parallel()
	server, s, target := mimeAccount(t, api.GatewaySparkPost, testapi.Options{})
	r, _ := s.Send(t.Context(), target, mimeMail(order1042, "ann@example.net", "bob@localhost"))
	for _, one := range r.Recipients {
		if one.Err == nil || !one.Err.InDoubt || one.ProviderID == "" {
			t.Errorf("%+v", one)
		}
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestOneBadAddressOfMailgun: it is found by halves.
func TestOneBadAddressOfMailgun(t *testing.T) {
	t.Parallel()
	server, s, target := mimeAccount(t, api.GatewayMailgun, testapi.Options{})
	to := []string{"a@example.net", "b@example.net", "bad@localhost", "c@example.net", "d@example.net"}
	r, err := s.Send(t.Context(), target, mimeMail(order1042, to...))
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range r.Recipients {
		if (one.Err == nil) != (i != 2) || server.Count(one.Address) != map[bool]int{true: 1, false: 0}[i != 2] {
			t.Errorf("%+v", one)
		}
	}
}

// TestKeysThatMaySendOnly are good, whatever else they may not ask for.
func TestKeysThatMaySendOnly(t *testing.T) {
	t.Parallel()
	for kind, f := range map[api.GatewayType]testapi.Fault{
		api.GatewaySES: {Status: 403, Header: map[string]string{"X-Amzn-Errortype": "AccessDeniedException"},
			Body: `{"Message":"User: x is not authorized to perform: ses:GetAccount on resource: *"}`},
		api.GatewaySparkPost: {Status: 403, Body: `{"errors":[{"message":"Forbidden."}]}`},
		api.GatewayMailgun:   {Status: 400, Body: `{"message":"to parameter is missing"}`},
	} {
		server, s, target := mimeAccount(t, kind, testapi.Options{})
		server.FailAlways(f)
		if err := s.Verify(t.Context(), target); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind, f := range map[api.GatewayType]testapi.Fault{
		api.GatewaySES:       {Status: 200, Body: `{"SendingEnabled":false}`},
		api.GatewayMandrill:  {Status: 200, Body: `<html>`},
		api.GatewaySparkPost: {Status: 200, Body: `{}`},
		api.GatewayMailgun:   {Status: 403, Body: `{"message":"Domain x is not allowed to send: y"}`},
	} {
		server, s, target := mimeAccount(t, kind, testapi.Options{})
		server.FailAlways(f)
		err, is := errors.AsType[*smtpsend.Error](s.Verify(t.Context(), target))
		if !is || err.Verdict != smtpsend.Auth || strings.Contains(err.Error(), "\"key\"") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestCredentialsOfTheMachine: without a key, SES is asked with what all programs of AWS use.
func TestCredentialsOfTheMachine(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	server, s, target := mimeAccount(t, api.GatewaySES, testapi.Options{})
	target.Key, target.Secret = "", ""
	r, _ := s.Send(t.Context(), target, mimeMail(order1042, "ann@example.net"))
	if e := r.Recipients[0].Err; e == nil || e.Verdict != smtpsend.Soft || !e.Elsewhere() || e.InDoubt ||
		len(server.Requests()) > 0 {
		t.Errorf("without credentials: %v", e)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", testapi.DefaultSecret)
	s.machine.chain = nil // the environment is read once
	if _, err := s.Send(t.Context(), target, mimeMail(order1042, "ann@example.net")); err != nil {
		t.Error(err)
	}
	if err := s.Verify(t.Context(), target); err != nil || server.Count("") != 1 {
		t.Error(err, server.Count(""))
	}
}
