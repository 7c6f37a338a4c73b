package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestControlHeadersInTheFieldHeaders: they mean what they mean in raw email, and no reader gets one.
func TestControlHeadersInTheFieldHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxAhead: 10 * 8760 * time.Hour})
	at := time.Date(2031, 7, 1, 6, 0, 0, 0, time.UTC)
	for name, prefix := range map[string]string{"ours": "X-Postroom-", "EmailEngine's": "x-ee-"} {
		t.Run(name, func(t *testing.T) {
			headers := api.Headers{
				prefix + "Send-At": {"2031-07-01T08:00:00"}, prefix + "Delivery-Attempts": {"3"},
				prefix + "Idempotency-Key": {api.HeaderValue("key of " + name)}, prefix + "Lane": {"Bulk"},
				prefix + "Priority": {"low"}, prefix + "Tracking-Enabled": {"no"}, "X-Other": {"stays"},
			}
			a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x",
				Headers: headers,
				TZ:      "Europe/Berlin"})
			if err != nil {
				t.Fatal(err)
			}
			m, err := b.Reader.Get(t.Context(), a.QueueID)
			if err != nil || !m.Scheduled.Equal(at) || m.Attempts != 3 || m.IdempotencyKey != "key of "+name ||
				m.Lane != api.Bulk {
				t.Errorf("queued as %+v, %v", m, err)
			}
			content, err := b.Reader.Content(t.Context(), a.QueueID)
			if head := strings.ToLower(string(content)); err != nil || !strings.Contains(head, "x-other: stays") ||
				strings.Contains(head, strings.ToLower(prefix)) {
				t.Errorf("content %v:\n%s", err, content)
			}
		})
	}
	for name, c := range map[string]struct {
		req  api.SubmitRequest
		want []string
	}{
		"differ": {api.SubmitRequest{SendAt: &at, DeliveryAttempts: 4, Gateway: "a", Lane: api.Bulk,
			Headers: api.Headers{
				"X-EE-Send-At": {"2027-01-01T00:00:00Z"}, "X-EE-Delivery-Attempts": {"3"}, "X-EE-Gateway": {"b"},
				"X-Postroom-Lane": {"transactional"}}}, []string{
			"sendAt differs from headers.X-EE-Send-At", "deliveryAttempts differs from headers.X-EE-Delivery-Attempts",
			"gateway differs from headers.X-EE-Gateway", "lane differs from headers.X-Postroom-Lane"}},
		"can't be read, beside another fault": {api.SubmitRequest{Tags: []string{""}, Headers: api.Headers{
			"X-EE-Send-At": {"soon"}, "x-ee-priority": {"urgent"}}}, []string{
			"headers.X-EE-Send-At must be a time such as 2026-01-31T09:00:00Z",
			"headers.x-ee-priority must be one of high, normal, low", "tags[0] must have 1 to 128 characters"}},
		"same": {api.SubmitRequest{SendAt: &at, Headers: api.Headers{"X-EE-Send-At": {"2031-07-01T06:00Z"}}}, nil},
	} {
		c.req.To, c.req.Text = for1("ann@x.test"), "x"
		_, err := b.Intake.Submit(t.Context(), c.req)
		if diff := cmp.Diff(c.want, faultTexts(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x",
		Headers: api.Headers{"X-EE-Gateway": {"nope"}}})
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != "GatewayNotFound" {
		t.Errorf("an unknown gateway: %v", err)
	}
}

// faultTexts are the wrong fields of an error, each with its text.
func faultTexts(err error) (all []string) {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		for _, f := range e.Fields {
			all = append(all, f.Key+" "+f.Message)
		}
	}
	return all
}

// TestAHeaderOfAFieldIsThatField: a fault never says that something was given twice that was given once.
func TestAHeaderOfAFieldIsThatField(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	headers := api.Headers{"message-id": {"<1@x.test>"}, "Subject": {"S"}, "In-Reply-To": {"<0@x.test>"},
		"References": {"<0@x.test>"}, "Reply-To": {"R <r@x.test>"}, "Sender": {"s@x.test"}, "MIME-Version": {"1.0"},
		"Content-Language": {"de"}, "Date": {"Thu, 1 Jul 2027 08:00:00 +0200"}}
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x", Subject: "S",
		Headers: headers})
	if err != nil || a.MessageID != "<1@x.test>" {
		t.Fatalf("%+v, %v", a, err)
	}
	content, err := b.Reader.Content(t.Context(), a.QueueID)
	for _, want := range []string{"Subject: S", "In-Reply-To: <0@x.test>", "References: <0@x.test>",
		"Reply-To: R <r@x.test>", "Sender: s@x.test", "Content-Language: de",
		"Date: Thu, 01 Jul 2027 08:00:00 +0200",
		"Message-ID: <1@x.test>"} {
		if strings.Count(string(content), want+"\r\n") != 1 {
			t.Errorf("no %q once, %v:\n%s", want, err, content)
		}
	}
	_, err = b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x", Subject: "other",
		Headers: api.Headers{"Subject": {"S"}, "Reply-To": {"a@x.test", "b@x.test"}, "Return-Path": {"<a@x.test>"},
			"Message-ID": {"abc"}, "Content-Type": {"text/html"}, "To": {"a@x.test"}}})
	want := []string{
		"headers.Content-Type can't be set, because Postroom writes it from text, html and attachments, or from raw",
		"headers.Message-ID is not a valid message id: it has to be like <id@domain>",
		"headers.Reply-To is given more than once, but a message has one Reply-To",
		"headers.Return-Path can't be set, because the last server writes it. Use the field envelope.from",
		"headers.Subject differs from the field subject", "headers.To can't be set as a header. Use the field to",
	}
	if diff := cmp.Diff(want, faultTexts(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDefaultsThatAreWrittenOutKeepTheirKey, in both directions, alone and together.
func TestDefaultsThatAreWrittenOutKeepTheirKey(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	no := false
	account, err := b.store.Accounts.Resolve(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	own := &api.Address{Name: account.Name, Address: account.Email}
	defaults := []func(*api.SubmitRequest){
		func(r *api.SubmitRequest) { r.Lane = api.Transactional },
		func(r *api.SubmitRequest) { r.Priority = api.Normal },
		func(r *api.SubmitRequest) { r.Metadata = []byte("{ }") },
		func(r *api.SubmitRequest) { r.DeliveryAttempts = b.store.opts.Attempts() },
		func(r *api.SubmitRequest) { r.TrackOpens = &no }, func(r *api.SubmitRequest) { r.TrackClicks = &no },
		func(r *api.SubmitRequest) { r.TrackingEnabled = &no }, func(r *api.SubmitRequest) { r.From = own },
		func(r *api.SubmitRequest) { r.Copy = &no }, func(r *api.SubmitRequest) { r.SentMailPath = "Sent" },
		func(r *api.SubmitRequest) { r.Render = &api.Render{Off: true} },
	}
	all := func(r *api.SubmitRequest) {
		for _, change := range defaults {
			change(r)
		}
	}
	for i, change := range append(defaults, all) {
		plain := api.SubmitRequest{To: for1("ann@x.test"), HTML: "<p>x</p>", IdempotencyKey: string(rune('a' + i))}
		written := plain
		change(&written)
		if i%2 == 1 {
			plain, written = written, plain
		}
		for _, req := range []api.SubmitRequest{plain, written, plain} {
			if _, err := b.Intake.Submit(t.Context(), req); err != nil {
				t.Errorf("default %d: %v", i, err)
			}
		}
		for name, other := range map[string]func(*api.SubmitRequest){
			"lane":     func(r *api.SubmitRequest) { r.Lane = api.Bulk },
			"name":     func(r *api.SubmitRequest) { r.From = &api.Address{Name: "Other", Address: own.Address} },
			"attempts": func(r *api.SubmitRequest) { r.DeliveryAttempts = 9 },
		} {
			req := plain
			other(&req)
			if _, err := b.Intake.Submit(t.Context(), req); !fault.Is(err, fault.Unprocessable) {
				t.Errorf("another %s: %v", name, err)
			}
		}
	}
}
