package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// want is what we make of a fixture, in our words: where an oracle's word means something else to us, this
// table is the place that says so.
type want struct {
	kind    Kind
	bounce  Bounce
	reason  Reason
	time    string // RFC 3339
	code    int
	status  string // enhanced
	ignored string // the name, for bodies without an event
}

var fixtureTable = map[string]want{
	"ses/bounce_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2016-01-27T14:59:44.101Z", code: 550, status: "5.1.1"},
	"ses/complaint_event.json": {kind: Complained, reason: ReasonSpam,
		time: "2018-03-26T17:58:59.675Z"},
	"ses/incorrect_received_event.json": {ignored: "received"},
	"ses/open_event.json":               {kind: Opened, time: "2017-08-09T22:00:19.652Z"},
	"ses/rendering_failure_event.json":  {kind: Dropped, reason: ReasonOther, time: "2018-03-26T17:58:59.675Z"},

	"sendgrid/bounce_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2016-04-19T19:47:30Z", code: 550, status: "5.1.1"},
	"sendgrid/compatibility_message_id_from_smtp_id.json": {kind: Delivered, time: "2016-04-19T19:47:30Z",
		code: 250, status: "2.0.0"},
	"sendgrid/delivered_event.json": {kind: Delivered, time: "2016-04-19T19:47:30Z",
		code: 250, status: "2.0.0"},
	"sendgrid/dropped_invalid_event.json": {kind: Dropped, reason: ReasonInvalid,
		time: "2016-04-19T19:47:30Z"},
	"sendgrid/open_event.json":                           {kind: Opened, time: "2016-04-19T19:47:30Z"},
	"mailgun/MailgunLegacyTestCase_delivered_event.json": {kind: Delivered, time: "2016-04-21T17:55:30Z"},
	"mailgun/clicked_event.json":                         {kind: Clicked, time: "2018-08-12T21:33:20.089Z"},
	"mailgun/delivered_event.json": {kind: Delivered, time: "2018-08-12T21:17:17.153Z",
		code: 250},
	"mailgun/dropped_bounce.json": {kind: Dropped, reason: ReasonBounced,
		time: "2016-04-21T17:55:30Z"},
	"mailgun/dropped_timed_out.json": {kind: Dropped, reason: ReasonTimedOut,
		time: "2009-02-13T23:31:30Z", code: 499},
	"mailgun/failed_permanent_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2018-08-12T21:47:02.389Z", code: 550, status: "5.1.1"},
	"mailgun/invalid_mailbox.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2009-02-13T23:31:30Z", code: 550, status: "5.1.1"},
	"mailgun/metadata_message_headers.json": {kind: Delivered, time: "2009-02-13T23:31:30Z"},
	"mailgun/misconfigured_inbound.json":    {ignored: "inbound"},
	"mailgun/rejected_event.json": {kind: Dropped, reason: ReasonOther,
		time: "2018-06-22T22:02:56.104Z"},
	"mailgun/unsubscribed_event.json": {kind: Unsubscribed, reason: ReasonUnsubscribed,
		time: "2013-08-22T23:23:11.421Z"},
	"mailgun/x_tags.json": {kind: Delivered, time: "2009-02-13T23:31:30Z"},
	"postmark/bounce_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2016-04-27T20:28:50.396Z", code: 550, status: "5.1.1"},
	"postmark/click_event.json": {kind: Clicked, time: "2017-10-25T15:21:11.906Z"},
	"postmark/open_event.json":  {kind: Opened, time: "2016-04-27T20:21:41.249Z"},
	"postmark/spam_event.json": {kind: Complained, reason: ReasonSpam,
		time: "2016-04-27T20:28:50.396Z"},
	"postmark/unsubscribe.json": {kind: Unsubscribed, reason: ReasonUnsubscribed,
		time: "2022-06-05T17:17:32Z"},
	"mailjet/blocked_event.json": {kind: Dropped, reason: ReasonInvalid,
		time: "2017-06-22T01:05:27Z"},
	"mailjet/bounced_greylist_event.json": {kind: Deferred, reason: ReasonOther,
		time: "2017-06-22T01:05:27Z"},
	"mailjet/non_grouped_event.json": {kind: Delivered, time: "2017-06-22T01:05:27Z",
		code: 250, status: "2.0.0"},
	"mailjet/sent_event.json": {kind: Delivered, time: "2017-06-22T01:05:27Z",
		code: 250, status: "2.0.0"},
	"mailjet/unsub_event.json": {kind: Unsubscribed, reason: ReasonUnsubscribed,
		time: "2017-06-22T01:05:27Z"},
	"sparkpost/amp_events.json": {}, // three events: see TestSparkPostAMP
	"sparkpost/bounce_event.json": {kind: Bounced, bounce: Hard, reason: ReasonInvalid,
		time: "2016-06-01T23:42:28Z", code: 550, status: "5.1.1"},
	"sparkpost/delay_event.json": {kind: Deferred, time: "2016-06-02T00:02:28Z",
		code: 454, status: "4.4.4"},
	"sparkpost/generation_failure_event.json": {kind: Dropped, reason: ReasonOther,
		time: "2018-10-11T23:24:45Z", code: 554, status: "5.3.3"},
	"sparkpost/initial_open_event_as_opened.json": {kind: Opened},
	"sparkpost/injection_event.json":              {kind: Accepted, time: "2016-02-02T19:50:00Z"},
	"sparkpost/ping_event.json":                   {ignored: "ping"},
	"brevo/blocked.json": {kind: Dropped, reason: ReasonBlocked,
		time: "2018-03-06T19:10:23Z"},
	"brevo/complaint.json": {kind: Complained, reason: ReasonSpam,
		time: "2020-11-09T14:54:14Z"},
	"brevo/delivered_event.json": {kind: Delivered, time: "2018-03-06T19:10:23Z"},
	"brevo/hard_bounce.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2018-03-06T19:10:23Z", code: 550, status: "5.5.0"},
	"brevo/opened_event.json": {kind: Opened, time: "2018-03-06T19:10:23Z"},
	"brevo/sent_event.json":   {kind: Accepted, time: "2018-03-06T19:10:23Z"},
	"brevo/spam.json": {kind: Complained, reason: ReasonSpam,
		time: "2018-03-06T19:10:23Z"},
	"brevo/unique_proxy_open_event.json": {kind: Opened, time: "2018-08-17T06:18:02Z"},
	"resend/clicked_event.json":          {kind: Clicked, time: "2023-09-28T17:21:35.257Z"},
	"resend/delivered_event.json":        {kind: Delivered, time: "2023-09-28T17:19:44.823Z"},
	"resend/hard_bounced_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2023-10-02T18:11:26.101Z"},
	"resend/sent_event.json": {kind: Accepted, time: "2023-09-28T17:19:43.736Z"},

	"postal/bounce_event.json": {kind: Bounced, bounce: Soft, reason: ReasonBounced,
		time: "2020-11-30T16:18:21.911Z"},
	"postal/deferred_event.json": {kind: Deferred, time: "2020-11-30T16:18:21.911Z"},
	"postal/failed_event.json":   {kind: Dropped, reason: ReasonOther, time: "2020-11-30T16:21:58.701Z"},
	"postal/delivered_event.json": {kind: Delivered, time: "2020-11-30T16:01:46.985Z",
		code: 250, status: "2.0.0"},

	"mandrill/send_event.json": {kind: Accepted, time: "2016-04-19T19:47:26Z"},
	"mandrill/hard_bounce_event.json": {kind: Bounced, bounce: Hard, reason: ReasonBounced,
		time: "2016-04-19T19:47:26Z", code: 550, status: "5.1.1"},
	"mandrill/click_event.json": {kind: Clicked, time: "2016-04-19T19:47:26Z"},
	"mandrill/sync_event.json":  {ignored: "list"},
}

// oracleKinds translates the oracle's names.
var oracleKinds = map[string]Kind{
	"queued": Accepted, "sent": Accepted, "delivered": Delivered, "deferred": Deferred, "bounced": Bounced,
	"rejected": Dropped, "failed": Dropped,
	"complained": Complained, "unsubscribed": Unsubscribed, "opened": Opened, "clicked": Clicked,
}

func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/fixtures/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	if len(files) != len(fixtureTable) {
		t.Errorf("%d fixtures, %d rows", len(files), len(fixtureTable))
	}
	for _, path := range files {
		name, file := Name(filepath.Base(filepath.Dir(path))), filepath.Base(path)
		row := string(name) + "/" + file
		t.Run(row, func(t *testing.T) {
			w, ok := fixtureTable[row]
			if !ok {
				t.Fatal("no row says what this is")
			}
			f, r := loadFixture(t, name, file)
			b, err := Read(name, r)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Broken) > 0 {
				t.Fatalf("broken: %v", b.Broken)
			}
			checkRow(t, b, w)
			if w.kind != "" && len(b.Events) > 0 {
				checkOracle(t, f, b.Events[0])
			}
		})
	}
}

func checkRow(t *testing.T, b Batch, w want) {
	t.Helper()
	if w.ignored != "" {
		if len(b.Events) != 0 || len(b.Ignored) != 1 || b.Ignored[0].Name != w.ignored {
			t.Fatalf("events %v, ignored %v; want %s ignored", b.Events, b.Ignored, w.ignored)
		}
		return
	}
	if len(b.Events) == 0 || len(b.Ignored) > 0 {
		t.Fatalf("events %v, ignored %v", b.Events, b.Ignored)
	}
	if w.kind == "" {
		return
	}
	e := b.Events[0]
	got := want{kind: e.Kind, bounce: e.Bounce, reason: e.Reason, code: e.SMTPCode, status: e.Enhanced}
	if !e.Time.IsZero() {
		got.time = e.Time.Format(time.RFC3339Nano)
	}
	if got != w {
		t.Errorf("read %+v\nwant %+v", got, w)
	}
	if e.Key == "" || e.Word == "" {
		t.Errorf("no key or no word of the provider: %+v", e)
	}
}

// checkOracle compares with what another program reads. It takes the message id and the event id from where
// it pleases; ours must have them in one of the fields for ids.
func checkOracle(t *testing.T, f fixture, e Event) {
	t.Helper()
	x := f.Origin.Expected
	if kind := oracleKinds[x.Type]; x.Type != "" && kind != e.Kind {
		t.Errorf("kind %s, the oracle says %s", e.Kind, x.Type)
	}
	if x.Recipient != "" && e.Recipient != x.Recipient {
		t.Errorf("recipient %q, the oracle says %q", e.Recipient, x.Recipient)
	}
	ids := join([]string{"", e.ProviderMessageID, e.ProviderAlias, e.MessageID, e.Metadata["anymail_id"], ""})
	if !strings.Contains(ids, "|"+x.MessageID+"|") {
		t.Errorf("ids of the message %s, the oracle says %q", ids, x.MessageID)
	}
	// Mailgun's token is an id of the request: the event has its own.
	if x.EventID != "" && e.EventID != x.EventID && e.EventID != "hTWCTD81RtiDN-..." {
		t.Errorf("event id %q, the oracle says %q", e.EventID, x.EventID)
	}
	text := x.Reply
	if text == "" {
		text = x.Description
	}
	if text != "" && e.Diagnostic != strings.TrimSpace(text) {
		t.Errorf("diagnostic %q, the oracle says %q", e.Diagnostic, text)
	}
	if x.UserAgent != "" && e.UserAgent != x.UserAgent {
		t.Errorf("user agent %q, the oracle says %q", e.UserAgent, x.UserAgent)
	}
	if e.URL != x.URL {
		t.Errorf("url %q, the oracle says %q", e.URL, x.URL)
	}
	if x.Reason != "" && string(e.Reason) != x.Reason {
		t.Errorf("reason %q, the oracle says %q", e.Reason, x.Reason)
	}
	if len(e.Tags) < len(x.Tags) || join(e.Tags[:len(x.Tags)]) != join(x.Tags) {
		t.Errorf("tags %q, the oracle says %q", e.Tags, x.Tags)
	}
	for name, value := range x.Metadata {
		if got := e.Metadata[name]; got != fmt.Sprint(value) {
			t.Errorf("metadata %s is %q, the oracle says %v", name, got, value)
		}
	}
}

// The same body always gives the same keys; a body that differs gives others.
func TestKeysAreStable(t *testing.T) {
	files, _ := filepath.Glob("testdata/fixtures/*/*.json")
	for _, path := range files {
		name := Name(filepath.Base(filepath.Dir(path)))
		_, r := loadFixture(t, name, filepath.Base(path))
		first, err := Read(name, r)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := Read(name, r)
		seen := map[string]bool{}
		for i, e := range first.Events {
			if e.Key != second.Events[i].Key {
				t.Errorf("%s: key %q, then %q", path, e.Key, second.Events[i].Key)
			}
			if seen[e.Key] {
				t.Errorf("%s: two events with the key %q", path, e.Key)
			}
			seen[e.Key] = true
		}
	}
}

func TestTestdataIsListed(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/signatures/*.json")
	for _, f := range files {
		if !strings.Contains(string(readme), filepath.Base(f)) {
			t.Errorf("testdata/README.md doesn't say where %s is from", f)
		}
	}
}

func TestEventsAreJSON(t *testing.T) {
	_, r := loadFixture(t, SES, "bounce_event.json")
	b, _ := Read(SES, r)
	raw, err := json.Marshal(b.Events[0])
	if err != nil {
		t.Fatal(err)
	}
	var back Event
	if err := json.Unmarshal(raw, &back); err != nil || back.Key != b.Events[0].Key ||
		!back.Time.Equal(b.Events[0].Time) {
		t.Errorf("%s came back as %+v (%v)", raw, back, err)
	}
}
