package outbox

import (
	"context"
	"strings"
	"testing"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// relaysOf is accounts with other relays.
type relaysOf struct {
	*scriptedAccounts
	relays []gateways.Relay
}

func (a *relaysOf) Resolve(ctx context.Context, id string) (accounts.Sender, error) {
	s, err := a.scriptedAccounts.Resolve(ctx, id)
	s.Relays = a.relays
	return s, err
}

// apiGateway is a gateway, by its type, that a submit may name.
type apiGateway struct {
	scriptedGateways
	kind api.GatewayType
}

func (g apiGateway) Resolve(context.Context, string) (gateways.Relay, error) {
	return apiRelay(g.kind), nil
}

func apiRelay(kind api.GatewayType) gateways.Relay {
	return gateways.Relay{Gateway: string(kind), Type: kind, API: apisend.Target{Type: kind, ID: string(kind)}}
}

// TestAMessageThatNoGatewayCanCarry: the submit is refused with the field and the reason, unless one of the
// relays for its lane can carry it.
func TestAMessageThatNoGatewayCanCarry(t *testing.T) {
	t.Parallel()
	smtp, brevo, sendgrid := gateways.Relay{}, apiRelay(api.GatewayBrevo), apiRelay(api.GatewaySendGrid)
	bulkSMTP := gateways.Relay{Lane: api.Bulk}
	inline := api.SubmitRequest{To: api.Addresses{{Address: "bob@example.net"}}, Subject: "Hi",
		HTML:        `<img src="cid:logo">`,
		Attachments: []api.Attachment{{Filename: "logo.gif", Content: []byte("GIF89a"), CID: "logo"}}}
	twoReplies := inline
	twoReplies.Attachments, twoReplies.HTML = nil, "<p>Hi</p>"
	twoReplies.ReplyTo = api.Addresses{{Address: "r@example.com"}, {Address: "s@example.com"}}
	secure := inline
	secure.RequireTLS = true
	raw := api.SubmitRequest{Raw: []byte("From: app@example.com\r\nTo: bob@example.net\r\n" +
		"Subject: Hi\r\nX-Sib-Sandbox: drop\r\n\r\nHi\r\n")}
	merge := inline
	merge.To, merge.MailMerge = nil, []api.MailMergeEntry{{To: api.Address{Address: "bob@example.net"}}}
	named := inline
	named.Gateway = "gw"
	for name, row := range map[string]struct {
		relays  []gateways.Relay
		request api.SubmitRequest
		fields  string // empty: accepted
	}{
		"none can":                {[]gateways.Relay{brevo}, inline, "attachments"},
		"one of two":              {[]gateways.Relay{brevo, sendgrid}, inline, ""},
		"a relay":                 {[]gateways.Relay{brevo, smtp}, secure, ""},
		"a relay for other mail":  {[]gateways.Relay{brevo, bulkSMTP}, inline, "attachments"},
		"Reply-To":                {[]gateways.Relay{brevo}, twoReplies, "replyTo"},
		"TLS, none of two":        {[]gateways.Relay{brevo, sendgrid}, secure, "requireTls requireTls"},
		"a raw message":           {[]gateways.Relay{brevo}, raw, "headers"},
		"a raw message elsewhere": {[]gateways.Relay{sendgrid}, raw, ""},
		"a merge":                 {[]gateways.Relay{brevo}, merge, "attachments"},
		"a named gateway":         {[]gateways.Relay{smtp}, named, "attachments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.store.Accounts = &relaysOf{b.people, row.relays}
			b.store.Gateways = apiGateway{kind: api.GatewayBrevo}
			submit := b.Intake.Submit
			if len(row.request.Raw) > 0 { // as the inlet submits
				submit = b.Intake.SubmitSMTP
			}
			_, err := submit(t.Context(), row.request)
			var fields []string
			if f, is := err.(*fault.Error); is { //nolint:errorlint // made in this package
				for _, one := range f.Fields {
					fields = append(fields, one.Key)
				}
			}
			if got := strings.Join(fields, " "); got != row.fields || (err == nil) != (row.fields == "") ||
				err != nil && (!fault.Is(err, fault.Unprocessable) || fault.CodeOf(err) != "MessageNotCarried") {
				t.Errorf("fields %q of %v, want %q", got, err, row.fields)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "No gateway can carry the message (brevo: it ") {
				t.Error(err)
			}
		})
	}
}

// TestAnEntryThatNoGatewayCanCarry: it doesn't stop the other entries of a merge.
func TestAnEntryThatNoGatewayCanCarry(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.store.Accounts = &relaysOf{b.people, []gateways.Relay{apiRelay(api.GatewayBrevo)}}
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Subject: "Hi", HTML: "<p>Hi</p>",
		MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "bob@example.net"}},
			{To: api.Address{Address: "jürgen@example.net"}}}})
	if err != nil {
		t.Fatal(err)
	}
	bob, other := answer.MailMerge[0], answer.MailMerge[1]
	if bob.QueueID == "" || other.QueueID != "" || other.Code != "MessageNotCarried" ||
		other.StatusCode != 422 ||
		len(other.Fields) != 1 || other.Fields[0].Key != "to" {
		t.Errorf("%+v and %+v, want one accepted and one refused", bob, other)
	}
}
