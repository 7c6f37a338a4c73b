package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What the fixtures don't have: each row is a body, and what it means: "kind", "kind/bounce", with " reason"
// behind it, or "ignored name".
var meaningTable = map[Name][][2]string{
	SES: {
		{`{"eventType":"Send","mail":{"destination":["a@example.com"]}}`, "accepted"},
		{`{"eventType":"Delivery","mail":{"destination":["a@example.com","b@example.com"]},"delivery":{"recipients":["a@example.com"]}}`, "delivered"},
		{`{"eventType":"DeliveryDelay","deliveryDelay":{"delayType":"MailboxFull","delayedRecipients":[{"emailAddress":"a@example.com","status":"4.2.2"}]}}`, "deferred"},
		{`{"eventType":"Bounce","bounce":{"bounceType":"Transient","bounceSubType":"MailboxFull","bouncedRecipients":[{"emailAddress":"a@example.com"}]}}`, "bounced/soft bounced"},
		{`{"eventType":"Bounce","bounce":{"bounceType":"Undetermined","bouncedRecipients":[{"emailAddress":"a@example.com"}]}}`, "bounced/soft bounced"},
		{`{"eventType":"Bounce","bounce":{"bounceType":"Transient","bounceSubType":"ContentRejected","bouncedRecipients":[{"emailAddress":"a@example.com"}]}}`, "bounced/soft blocked"},
		{`{"eventType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"OnAccountSuppressionList","bouncedRecipients":[{"emailAddress":"a@example.com"}]}}`, "dropped bounced"},
		{`{"eventType":"Bounce","mail":{"destination":["a@example.com"]},"bounce":{"bounceType":"Permanent"}}`,
			"broken"},
		{`{"eventType":"Complaint","complaint":{"complaintSubType":"OnAccountSuppressionList","complainedRecipients":[{"emailAddress":"a@example.com"}]}}`, "dropped spam"},
		{`{"eventType":"Complaint","complaint":{"complaintFeedbackType":"not-spam","complainedRecipients":[{"emailAddress":"a@example.com"}]}}`, "ignored not_spam"},
		{`{"eventType":"Reject","mail":{"destination":["a@example.com"]},"reject":{"reason":"Bad content"}}`,
			"dropped other"},
		{`{"eventType":"Click","mail":{"destination":["a@example.com"]},"click":{"link":"https://example.com/"}}`,
			"clicked"},
		{`{"eventType":"Subscription","mail":{"destination":["a@example.com"]},"subscription":{"newTopicPreferences":{"unsubscribeAll":true}}}`, "unsubscribed unsubscribed"},
		{`{"eventType":"Subscription","subscription":{"oldTopicPreferences":{"topicSubscriptionStatus":[{"topicName":"n","subscriptionStatus":"OptIn"}]},"newTopicPreferences":{"unsubscribeAll":false,"topicSubscriptionStatus":[{"topicName":"n","subscriptionStatus":"OptOut"}]}}}`, "unsubscribed unsubscribed"},
		{`{"eventType":"Subscription","subscription":{"newTopicPreferences":{"topicSubscriptionStatus":[{"topicName":"n","subscriptionStatus":"OptIn"}]}}}`, "ignored resubscribed"},
		{`{"eventType":"Tomorrow"}`, "ignored unknown"},
		{`{"mail":{}}`, "broken"},
		{`Successfully validated SNS topic for Amazon SES event publishing.`, "ignored topic_validated"},
		{`Hello world`, "broken"},
	},
	SendGrid: {
		{`{"event":"processed","email":"a@example.com"}`, "accepted"},
		{`{"event":"deferred","email":"a@example.com","response":"450 4.7.1 later"}`, "deferred"},
		{`{"event":"bounce","type":"blocked","status":"5.7.1","email":"a@example.com"}`, "bounced/soft blocked"},
		{`{"event":"bounce","type":"bounce","status":"4.4.1","email":"a@example.com"}`, "bounced/soft bounced"},
		{`{"event":"dropped","reason":"Bounced Address","email":"a@example.com"}`, "dropped bounced"},
		{`{"event":"dropped","reason":"Unsubscribed Address","email":"a@example.com"}`, "dropped unsubscribed"},
		{`{"event":"dropped","reason":"Spam Reporting Address","email":"a@example.com"}`, "dropped spam"},
		{`{"event":"dropped","reason":"Spam Content (if spam checker app enabled)","email":"a@example.com"}`,
			"dropped blocked"},
		{`{"event":"dropped","reason":"Recipient List over Package Quota","email":"a@example.com"}`,
			"dropped other"},
		{`{"event":"open","sg_machine_open":true,"email":"a@example.com"}`, "opened machine"},
		{`{"event":"click","url":"https://example.com/","email":"a@example.com"}`, "clicked"},
		{`{"event":"spamreport","email":"a@example.com"}`, "complained spam"},
		{`{"event":"unsubscribe","email":"a@example.com"}`, "unsubscribed unsubscribed"},
		{`{"event":"group_unsubscribe","email":"a@example.com"}`, "unsubscribed unsubscribed"},
		{`{"event":"group_resubscribe","email":"a@example.com"}`, "ignored resubscribed"},
		{`{"event":"account_status_change"}`, "ignored account"},
		{`{"event":"sms"}`, "ignored unknown"},
		{`{"email":"a@example.com"}`, "broken"},
	},
	Mailgun: {
		{`{"event-data":{"event":"accepted","recipient":"a@example.com"}}`, "accepted"},
		{`{"event-data":{"event":"failed","severity":"temporary","reason":"generic","recipient":"a@example.com"}}`,
			"deferred"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"suppress-bounce","delivery-status":{"code":605}}}`, "dropped bounced"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"suppress-complaint"}}`, "dropped spam"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"suppress-unsubscribe"}}`,
			"dropped unsubscribed"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"generic","delivery-status":{"code":607}}}`, "dropped spam"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"old","delivery-status":{"code":602}}}`,
			"bounced/soft timed_out"},
		{`{"event-data":{"event":"failed","severity":"permanent","reason":"espblock","delivery-status":{"code":550}}}`, "bounced/soft blocked"},
		{`{"event-data":{"event":"opened","client-info":{"bot":"gmail"}}}`, "opened machine"},
		{`{"event-data":{"event":"opened","client-info":{"bot":""}}}`, "opened"},
		{`{"event-data":{"event":"complained"}}`, "complained spam"},
		{`{"event-data":{"event":"stored"}}`, "ignored stored"},
		{`{"event-data":{"event":"list_uploaded"}}`, "ignored list"},
		{`{"event-data":{"event":"new"}}`, "ignored unknown"},
		{`{"event-data":{}}`, "broken"},
	},
	Postmark: {
		{`{"RecordType":"Delivery","Recipient":"a@example.com","DeliveredAt":"2026-01-02T03:04:05Z"}`, "delivered"},
		{`{"RecordType":"Bounce","Type":"SoftBounce"}`, "bounced/soft bounced"},
		{`{"RecordType":"Bounce","Type":"BadEmailAddress"}`, "bounced/hard invalid"},
		{`{"RecordType":"Bounce","Type":"Transient"}`, "deferred"},
		{`{"RecordType":"Bounce","Type":"DnsError"}`, "deferred"},
		{`{"RecordType":"Bounce","Type":"Blocked"}`, "bounced/soft blocked"},
		{`{"RecordType":"Bounce","Type":"SpamNotification"}`, "bounced/soft blocked"},
		{`{"RecordType":"Bounce","Type":"SpamComplaint"}`, "complained spam"},
		{`{"RecordType":"Bounce","Type":"Unsubscribe"}`, "unsubscribed unsubscribed"},
		{`{"RecordType":"Bounce","Type":"ManuallyDeactivated"}`, "dropped other"},
		{`{"RecordType":"Bounce","Type":"AutoResponder"}`, "ignored autoresponded"},
		{`{"RecordType":"Bounce","Type":"Subscribe"}`, "ignored resubscribed"},
		{`{"RecordType":"Bounce","Type":"AddressChange"}`, "ignored address_change"},
		{`{"RecordType":"Bounce","Type":"InboundError"}`, "ignored inbound"},
		{`{"RecordType":"Bounce","Type":"Tomorrow"}`, "ignored unknown"},
		{`{"RecordType":"Bounce"}`, "broken"},
		{`{"RecordType":"SubscriptionChange","SuppressSending":false}`, "ignored resubscribed"},
		{`{"RecordType":"SubscriptionChange","SuppressSending":true,"SuppressionReason":"HardBounce"}`,
			"bounced/hard bounced"},
		{`{"RecordType":"SubscriptionChange","SuppressSending":true,"SuppressionReason":"SpamComplaint"}`,
			"complained spam"},
		{`{"RecordType":"Inbound"}`, "ignored inbound"},
		{`{"RecordType":"SMTPApiError"}`, "ignored unknown"},
		{`{}`, "broken"},
	},
	Mailjet: {
		{`{"event":"bounce","hard_bounce":true,"error":"user unknown"}`, "bounced/hard bounced"},
		{`{"event":"bounce","hard_bounce":false,"error":"quota exceeded"}`, "bounced/soft bounced"},
		{`{"event":"bounce","error":"policy issue"}`, "bounced/soft blocked"},
		{`{"event":"blocked","error":"preblocked"}`, "dropped blocked"},
		{`{"event":"blocked","error":"spam reporter"}`, "dropped spam"},
		{`{"event":"blocked","error":"duplicate in campaign"}`, "dropped other"},
		{`{"event":"spam","source":"JMRPP"}`, "complained spam"},
		{`{"event":"open","agent":"x"}`, "opened"},
		{`{"event":"click","url":"https://example.com/"}`, "clicked"},
		{`{"event":"typofix"}`, "ignored typofix"},
		{`{"event":"else"}`, "ignored unknown"},
		{`{"email":"a@example.com"}`, "broken"},
	},
	SparkPost: {
		{`{"msys":{"message_event":{"type":"delivery"}}}`, "delivered"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"30"}}}`, "bounced/hard bounced"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"1"}}}`, "bounced/soft bounced"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"22"}}}`, "bounced/soft bounced"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"24"}}}`, "bounced/soft timed_out"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"25"}}}`, "dropped blocked"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"51"}}}`, "bounced/soft blocked"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"60"}}}`, "ignored autoresponded"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"80"}}}`, "ignored resubscribed"},
		{`{"msys":{"message_event":{"type":"bounce","bounce_class":"90"}}}`, "unsubscribed unsubscribed"},
		{`{"msys":{"message_event":{"type":"out_of_band","bounce_class":10}}}`, "bounced/hard invalid"},
		{`{"msys":{"message_event":{"type":"spam_complaint"}}}`, "complained spam"},
		{`{"msys":{"message_event":{"type":"policy_rejection"}}}`, "dropped other"},
		{`{"msys":{"gen_event":{"type":"generation_rejection"}}}`, "dropped other"},
		{`{"msys":{"unsubscribe_event":{"type":"list_unsubscribe"}}}`, "unsubscribed unsubscribed"},
		{`{"msys":{"unsubscribe_event":{"type":"link_unsubscribe","target_link_url":"https://example.com/"}}}`,
			"unsubscribed unsubscribed"},
		{`{"msys":{"track_event":{"type":"click","target_link_url":"https://example.com/"}}}`, "clicked"},
		{`{"msys":{"relay_event":{"type":"relay_delivery"}}}`, "ignored relay_event"},
		{`{"msys":{"message_event":{"type":"sms_status"}}}`, "ignored sms"},
		{`{"msys":{"message_event":{"type":"new"}}}`, "ignored unknown"},
		{`{"msys":{"message_event":{}}}`, "broken"},
		{`{"msys":{"message_event":1}}`, "broken"},
		{`{"msys":{"message_event":{"type":"delivery"},"track_event":{"type":"open"}}}`, "broken"},
		{`{"msys":[]}`, "broken"},
		{`{}`, "broken"},
	},
	Brevo: {
		{`{"event":"deferred"}`, "deferred"},
		{`{"event":"soft_bounce"}`, "bounced/soft bounced"},
		{`{"event":"invalid_email"}`, "bounced/hard invalid"},
		{`{"event":"error"}`, "dropped other"},
		{`{"event":"unsubscribed"}`, "unsubscribed unsubscribed"},
		{`{"event":"click","link":"https://example.com/"}`, "clicked"},
		{`{"event":"proxy_open"}`, "opened machine"},
		{`{"event":"list_addition"}`, "ignored contact"},
		{`{"event":"inboundEmailProcessed"}`, "ignored inbound"},
		{`{"event":"new"}`, "ignored unknown"},
		{`{"event":["delivered"]}`, "broken"},
	},
	Resend: {
		{`{"type":"email.delivery_delayed","data":{"to":["a@example.com"]}}`, "deferred"},
		{`{"type":"email.bounced","data":{"to":["a@example.com"],"bounce":{"type":"Transient"}}}`,
			"bounced/soft bounced"},
		{`{"type":"email.bounced","data":{"to":["a@example.com"],"bounce":{"type":"Permanent","subType":"Suppressed"}}}`, "dropped bounced"},
		{`{"type":"email.complained","data":{"to":["a@example.com"]}}`, "complained spam"},
		{`{"type":"email.failed","data":{"to":["a@example.com"],"failed":{"reason":"reached_daily_quota"}}}`,
			"dropped other"},
		{`{"type":"email.suppressed","data":{"to":["a@example.com"]}}`, "dropped other"},
		{`{"type":"email.opened","data":{"to":["a@example.com"]}}`, "opened"},
		{`{"type":"email.scheduled","data":{}}`, "ignored scheduled"},
		{`{"type":"email.received","data":{}}`, "ignored inbound"},
		{`{"type":"contact.created","data":{}}`, "ignored account"},
		{`{"type":"email.new","data":{}}`, "ignored unknown"},
		{`{"type":7}`, "ignored unknown"},
		{`{"data":{}}`, "broken"},
	},
	Postal: {
		{`{"event":"MessageDeliveryFailed","payload":{"output":"550 5.1.1 no such user","message":{"to":"a@example.com"}}}`, "bounced/hard bounced"},
		{`{"event":"MessageDeliveryFailed","payload":{"output":"452 4.2.2 full","message":{"to":"a@example.com"}}}`, "bounced/soft bounced"},
		{`{"event":"MessageDeliveryFailed","payload":{"output":"451 later","details":"Maximum number of delivery attempts (18) has been reached.","message":{}}}`, "bounced/soft timed_out"},
		{`{"event":"MessageDeliveryFailed","payload":{"details":"Message is likely spam.","message":{}}}`, "dropped other"},
		{`{"event":"MessageBounced","payload":{"original_message":{"to":"a@example.com"},"bounce":{}}}`, "bounced/soft bounced"},
		{`{"event":"MessageHeld","payload":{"message":{}}}`, "deferred"},
		{`{"event":"MessageLoaded","payload":{"message":{"to":"a@example.com"}}}`, "opened"},
		{`{"event":"MessageLinkClicked","payload":{"url":"https://example.com/","message":{"to":"a@example.com"}}}`, "clicked"},
		{`{"event":"MessageSent","payload":{"message":{"direction":"incoming"}}}`, "ignored inbound"},
		{`{"event":"DomainDNSError","payload":{}}`, "ignored account"},
		{`{"event":"New","payload":{}}`, "ignored unknown"},
		{`{"payload":{}}`, "broken"},
	},
	Mandrill: {
		{`[{"event":"send","msg":{"email":"a@example.com"}}]`, "accepted"},
		{`[{"event":"deferral","msg":{"email":"a@example.com"}}]`, "deferred"},
		{`[{"event":"soft_bounce","msg":{"email":"a@example.com","bounce_description":"mailbox_full"}}]`,
			"bounced/soft bounced"},
		{`[{"event":"reject","msg":{"email":"a@example.com"}}]`, "dropped other"},
		{`[{"event":"spam","msg":{"email":"a@example.com"}}]`, "complained spam"},
		{`[{"event":"unsub","msg":{"email":"a@example.com"}}]`, "unsubscribed unsubscribed"},
		{`[{"event":"open","user_agent_parsed":{"type":"robot"},"msg":{"email":"a@example.com"}}]`, "opened machine"},
		{`[{"event":"inbound","msg":{}}]`, "ignored inbound"},
		{`[{"type":"whitelist","action":"add"}]`, "ignored list"},
		{`[{"event":"new"}]`, "ignored unknown"},
		{`[{"msg":{}}]`, "broken"},
	},
	Generic: {
		{`{"type":"delivered","recipient":"a@example.com"}`, "delivered"},
		{`{"type":"bounced","bounce":"hard","reason":"invalid","recipient":"a@example.com"}`,
			"bounced/hard invalid"},
		{`{"type":"bounced","bounce":"soft","reason":"full moon","recipient":"a@example.com"}`,
			"bounced/soft other"},
		{`{"type":"bounced","recipient":"a@example.com"}`, "broken"},
		{`{"type":"dropped","reason":"spam","recipient":"a@example.com"}`, "dropped spam"},
		{`{"type":"opened","machine":true,"recipient":"a@example.com"}`, "opened machine"},
		{`{"type":"delivered"}`, "broken"},
		{`{"type":"delivered","recipient":["a@example.com"]}`, "broken"},
		{`{"type":"message.sent","timestamp":"2026-01-02T03:04:05Z","data":{"recipient":"a@example.com"}}`,
			"ignored unknown"},
		{`{"type":"clicked","timestamp":"2026-01-02T03:04:05Z","data":{"recipient":"a@example.com","url":"https://example.com/"}}`, "clicked"},
		{`{"recipient":"a@example.com"}`, "broken"},
	},
}

func TestMeanings(t *testing.T) {
	for _, name := range Names() {
		if len(meaningTable[name]) == 0 {
			t.Errorf("no rows for %s", name)
		}
		for _, row := range meaningTable[name] {
			body := row[0]
			if name == SES {
				body = sns(t, body)
			}
			b, err := Read(name, request(name, body))
			if err != nil {
				t.Errorf("%s %s: %v", name, row[0], err)
				continue
			}
			if got := meaning(b); got != row[1] {
				t.Errorf("%s %s: %q, want %q", name, row[0], got, row[1])
			}
		}
	}
}

func meaning(b Batch) string {
	if len(b.Events)+len(b.Ignored)+len(b.Broken) != 1 {
		return "not one element"
	}
	if len(b.Broken) > 0 {
		return "broken"
	}
	if len(b.Ignored) > 0 {
		return "ignored " + b.Ignored[0].Name
	}
	e := b.Events[0]
	s := string(e.Kind)
	if e.Bounce != "" {
		s += "/" + string(e.Bounce)
	}
	if e.Reason != "" {
		s += " " + string(e.Reason)
	}
	if e.Bot {
		s += " machine"
	}
	if (e.Kind == Clicked) != (e.URL != "") {
		s += " url " + e.URL
	}
	return s
}

// One SES bounce of several recipients: each has its own diagnostic, and those who didn't bounce are left
// alone.
func TestSESBounceNamesWhoBounced(t *testing.T) {
	b, err := Read(SES, jsonRequest(sns(t, `{"eventType":"Bounce","mail":{"messageId":"m1","destination":["fine@example.com","a@example.com","b@example.com"],
		"commonHeaders":{"messageId":"<ours@example.com>"},"tags":{"ses:caller":["x"],"order":["1","2"]}},
		"bounce":{"bounceType":"Permanent","timestamp":"2026-01-02T03:04:05Z","bouncedRecipients":[
		{"emailAddress":"A <a@EXAMPLE.com>","status":"5.1.1","diagnosticCode":"smtp; 550 5.1.1 no such user"},{"emailAddress":"b@example.com"}]}}`)))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	common := Event{Provider: SES, Kind: Bounced, Bounce: Hard, Reason: ReasonBounced, Word: "Bounce", Time: at,
		EventID:           "sns-1",
		ProviderMessageID: "m1", MessageID: "<ours@example.com>", Metadata: map[string]string{"order": "1,2"}}
	first, second := common, common
	first.Recipient, first.Key, first.Diagnostic, first.SMTPCode, first.Enhanced = "a@example.com", "sns-1",
		"smtp; 550 5.1.1 no such user", 550, "5.1.1"
	second.Recipient, second.Key, second.Diagnostic = "b@example.com", "sns-1#1", "Permanent"
	if diff := cmp.Diff([]Event{first, second}, b.Events); diff != "" {
		t.Error(diff)
	}
}

// If there are several recipients, it is unknown who opened, and no one may be suppressed by a guess.
func TestSeveralRecipientsAreCandidates(t *testing.T) {
	for name, body := range map[Name]string{
		SES:     sns(t, `{"eventType":"Open","mail":{"destination":["a@example.com","b@example.com"]}}`),
		Resend:  `{"type":"email.bounced","data":{"to":["a@example.com"],"cc":["b@example.com"]}}`,
		Mailgun: `{"event-data":{"event":"complained","message":{"headers":{"to":"A <a@example.com>, b@EXAMPLE.com"}}}}`,
	} {
		e := readOne(t, name, body)
		if e.Recipient != "" || join(e.Candidates) != "a@example.com|b@example.com" {
			t.Errorf("%s: recipient %q, candidates %q", name, e.Recipient, e.Candidates)
		}
	}
}

// sg_event_id is another one for each retry (sendgrid-nodejs issue 1435): the key must not follow it, and
// must tell everything else apart.
func TestSendGridRetriesHaveOneKey(t *testing.T) {
	const body = `{"event":"click","email":"a@example.com","sg_event_id":"1","sg_message_id":"m.filter1","timestamp":1700000000,"url":"https://example.com/1"}`
	first := readOne(t, SendGrid, body)
	if again := readOne(t, SendGrid, strings.Replace(body, `_id":"1"`, `_id":"2"`, 1)); again.Key != first.Key {
		t.Errorf("a retry has the key %s, not %s", again.Key, first.Key)
	}
	for _, change := range [][2]string{{"click", "open"}, {"a@", "b@"}, {"m.filter1", "n.filter1"},
		{"1700000000", "1700000001"}, {"com/1", "com/2"}} {
		if other := readOne(t, SendGrid, strings.Replace(body, change[0], change[1], 1)); other.Key == first.Key {
			t.Errorf("%s for %s has the same key", change[1], change[0])
		}
	}
}

// Without an id of the provider, the order of keys in the JSON makes no difference, and everything that was
// said does.
func TestFingerprint(t *testing.T) {
	a := readOne(t, Brevo, `{"event":"delivered","email":"a@example.com","ts_epoch":1520363423000}`)
	b := readOne(t, Brevo, ` { "ts_epoch":1520363423000,"email":"a@example.com", "event":"delivered"}`)
	c := readOne(t, Brevo, `{"event":"delivered","email":"a@example.com","ts_epoch":1520363423001}`)
	if a.Key != b.Key || a.Key == c.Key {
		t.Errorf("keys %s, %s, %s", a.Key, b.Key, c.Key)
	}
}

// Where the provider's id is good for a key, another id is another key; and what has the same id without
// being the same has another, too.
func TestKeysFromIDs(t *testing.T) {
	keys := map[string]string{}
	for _, body := range []string{
		`{"RecordType":"Bounce","Type":"HardBounce","ID":1}`, `{"RecordType":"Bounce","Type":"HardBounce","ID":2}`,
		`{"RecordType":"SpamComplaint","ID":1}`, `{"RecordType":"SpamComplaint","ID":0}`,
	} {
		e := readOne(t, Postmark, body)
		if before, ok := keys[e.Key]; ok {
			t.Errorf("%s has the key %s, as has %s", body, e.Key, before)
		}
		keys[e.Key] = body
	}
	r := jsonRequest(`[{"type":"email.delivered","data":{"to":["a@example.com"]}},{"type":"email.delivered","data":{"to":["b@example.com"]}}]`)
	r.Header.Set("svix-id", "msg_1")
	b, err := Read(Resend, r)
	if err != nil || len(b.Events) != 2 || b.Events[0].Key != "msg_1" || b.Events[1].Key == "msg_1" {
		t.Errorf("Resend, two events in one request: %+v, %v", b.Events, err)
	}
}

func TestIDsOfTheMessage(t *testing.T) {
	e := readOne(t, SendGrid,
		`{"event":"delivered","sg_message_id":"wrfRR.filter0425.1.0","smtp-id":"<ours@example.com>"}`)
	if e.ProviderMessageID != "wrfRR" || e.ProviderAlias != "wrfRR.filter0425.1.0" ||
		e.MessageID != "<ours@example.com>" {
		t.Errorf("SendGrid: %+v", e)
	}
	e = readOne(t, SendGrid, `{"event":"dropped","reason":"Invalid","sg_message_id":"filter0093.1.0","smtp-id":"<wrfRR@ismtpd0006.sendgrid.net>"}`)
	if e.ProviderMessageID != "wrfRR" {
		t.Errorf("SendGrid, dropped: %+v", e)
	}
	e = readOne(t, SparkPost,
		`{"msys":{"message_event":{"type":"delivery","transmission_id":"1","message_id":"2"}}}`)
	if e.ProviderMessageID != "1" || e.ProviderAlias != "2" {
		t.Errorf("SparkPost: %+v", e)
	}
	e = readOne(t, Postmark, `{"RecordType":"SubscriptionChange","SuppressSending":true,"MessageID":"00000000-0000-0000-0000-000000000000"}`)
	if e.ProviderMessageID != "" {
		t.Errorf("Postmark, by hand: %+v", e)
	}
	e = readOne(t, Mailgun, `{"event-data":{"event":"delivered","id":"x","timestamp":1534108637.153125,"message":{"headers":{"message-id":"ours@example.com"}}}}`)
	if e.MessageID != "<ours@example.com>" || e.EventID != "x" || e.Key != "x@1534108637153" {
		t.Errorf("Mailgun: %+v", e)
	}
}

func TestSparkPostAMP(t *testing.T) {
	_, r := loadFixture(t, SparkPost, "amp_events.json")
	b, err := Read(SparkPost, r)
	if err != nil || len(b.Events) != 3 {
		t.Fatalf("%+v, %v", b, err)
	}
	for i, want := range []Kind{Opened, Opened, Clicked} {
		if b.Events[i].Kind != want {
			t.Errorf("event %d is %s, want %s", i, b.Events[i].Kind, want)
		}
	}
}

func TestMailgunMultipart(t *testing.T) {
	const body = "--x\r\nContent-Disposition: form-data; name=\"event\"\r\n\r\nbounced\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"recipient\"\r\n\r\na@example.com\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\n452\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"attachment-1\"; filename=\"m.eml\"\r\n\r\nFrom: x\r\n\r\n\r\n--x--\r\n"
	b, err := Read(Mailgun, Request{Header: http.Header{"Content-Type": {"multipart/form-data; boundary=x"}},
		Body: []byte(body)})
	if err != nil || len(b.Events) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	if e := b.Events[0]; e.Kind != Bounced || e.Bounce != Soft || e.Recipient != "a@example.com" ||
		e.SMTPCode != 452 {
		t.Errorf("%+v", e)
	}
}

func TestMailgunForms(t *testing.T) {
	for _, c := range []struct {
		form string
		want Event
	}{
		{"event=bounced&code=5.1.1&error=smtp%3B550+5.1.1+not+found", Event{Kind: Bounced, Bounce: Hard,
			Reason: ReasonBounced, Diagnostic: "smtp;550 5.1.1 not found", SMTPCode: 550, Enhanced: "5.1.1"}},
		{"event=bounced&code=4.2.2", Event{Kind: Bounced, Bounce: Soft, Reason: ReasonBounced, Enhanced: "4.2.2"}},
		{"event=dropped&reason=hardfail&code=607", Event{Kind: Dropped, Reason: ReasonSpam}},
		{"event=dropped&reason=hardfail&code=606", Event{Kind: Dropped, Reason: ReasonUnsubscribed}},
		{"event=dropped&reason=tuesday", Event{Kind: Dropped, Reason: ReasonOther}},
		{"event=clicked&url=https%3A%2F%2Fexample.com%2F&ip=192.0.2.1&user-agent=x&tag=a&tag=b",
			Event{Kind: Clicked, URL: "https://example.com/", IP: "192.0.2.1", UserAgent: "x",
				Tags: []string{"a", "b"}}},
		{"event=opened&order=7&X-Mailgun-Sid=1&attachment-count=1", Event{Kind: Opened, Metadata: map[string]string{
			"order": "7"}}},
		{"event=complained", Event{Kind: Complained, Reason: ReasonSpam}},
		{"event=unsubscribed", Event{Kind: Unsubscribed, Reason: ReasonUnsubscribed}},
	} {
		b, err := Read(Mailgun, Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
			Body: []byte("token=1&recipient=a%40example.com&" + c.form)})
		if err != nil || len(b.Events) != 1 {
			t.Errorf("%s: %+v, %v", c.form, b, err)
			continue
		}
		c.want.Provider, c.want.Recipient, c.want.EventID, c.want.Key, c.want.Word = Mailgun, "a@example.com", "1",
			"1", string(c.want.Kind)
		if diff := cmp.Diff(c.want, b.Events[0]); diff != "" {
			t.Errorf("%s: %s", c.form, diff)
		}
	}
}

func TestGenericInFull(t *testing.T) {
	r := jsonRequest(`{"type":"bounced","timestamp":"2026-01-02T03:04:05.678+01:00","data":{"bounce":"hard","reason":"invalid","recipient":"Ann@Example.COM",
		"messageId":"ours@example.com","providerMessageId":"77","diagnostic":"550 5.1.1 no such user","tags":["a","b"],"metadata":{"order":7,"who":"ann","none":null},
		"ip":"::ffff:192.0.2.1","userAgent":"x"}}`)
	r.Header.Set("webhook-id", "msg_1")
	b, err := Read(Generic, r)
	if err != nil {
		t.Fatal(err)
	}
	want := []Event{{Provider: Generic, Kind: Bounced, Bounce: Hard, Reason: ReasonInvalid, Word: "bounced",
		Time:      time.Date(2026, 1, 2, 2, 4, 5, 678e6, time.UTC),
		Recipient: "Ann@example.com", EventID: "msg_1", Key: "msg_1", ProviderMessageID: "77",
		MessageID:  "<ours@example.com>",
		Diagnostic: "550 5.1.1 no such user", SMTPCode: 550, Enhanced: "5.1.1", UserAgent: "x", IP: "192.0.2.1",
		Tags: []string{"a", "b"}, Metadata: map[string]string{"order": "7", "who": "ann"}}}
	if diff := cmp.Diff(want, b.Events); diff != "" {
		t.Error(diff)
	}
}
