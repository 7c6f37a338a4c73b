package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/smtp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// sink is the relay of the recordings: the local part of a recipient says what happens to it.
type sink struct {
	holding chan struct{} // gets a value when the dot of a slow message waits
	release chan struct{} // closed to answer it
	crashed atomic.Bool   // the message of the crash was held once
}

var sinkRule = regexp.MustCompile(`^(rcpt|data|slow)([0-9]+)(crash)?`)

func (s *sink) respond(c testsmtp.Command) testsmtp.Action {
	for _, to := range append([]string{c.Arg}, c.To...) {
		rule := sinkRule.FindStringSubmatch(to)
		if rule == nil {
			continue
		}
		code := rule[2]
		switch {
		case c.Verb == "RCPT" && rule[1] == "rcpt" && to == c.Arg:
			return testsmtp.Action{Reply: fmt.Sprintf("%s %c.1.1 <%s> rejected at RCPT", code,
				code[0], to)}
		case c.Verb == "DOT" && rule[1] == "data":
			return testsmtp.Action{Reply: fmt.Sprintf("%s %c.7.1 rejected after DATA", code, code[0])}
		case c.Verb == "DOT" && rule[3] == "crash":
			if s.crashed.CompareAndSwap(false, true) {
				s.holding <- struct{}{}
				return testsmtp.Action{Store: true, Hang: true}
			}
		case c.Verb == "DOT" && rule[1] == "slow":
			s.holding <- struct{}{}
			<-s.release
		}
	}
	if c.Verb == "DOT" {
		return testsmtp.Action{Reply: "250 2.0.0 Ok: queued as SINK1"}
	}
	return testsmtp.Action{}
}

// TestDropInForEmailEngine repeats what was recorded of EmailEngine, in its order, and compares every field.
// The table in testdata/emailengine/README.md must list each difference with its reason, and each row must
// happen.
func TestDropInForEmailEngine(t *testing.T) {
	t.Parallel()
	s := &sink{holding: make(chan struct{}, 1), release: make(chan struct{})}
	relay := testsmtp.Start(t, testsmtp.Options{Username: "u", Password: "p", Respond: s.respond})
	hooks := logHooks(t)
	closed, inlet := strconv.Itoa(testkit.FreePort(t)), strconv.Itoa(testkit.FreePort(t))
	set := map[string]string{"redis.url": testredis.URL(t), "data": t.TempDir(), "webhooks.allowPrivate": "true",
		"message.maxAhead": "0", "delivery.retry.base": "1h", "delivery.lease": "2s",
		"smtpd.listen": "127.0.0.1:" + inlet}
	r := &replay{t: t, sink: relay, hooks: hooks, token: apptest.TestToken, process: apptest.Spawn(t, set),
		ours:  map[string]string{},
		files: map[string]bool{}, expected: readDifferences(t),
		addresses: strings.NewReplacer("2590", strconv.Itoa(relay.Port()), "2599", closed, "2587", inlet,
			"127.0.0.1:2591", strings.TrimPrefix(hooks.URL, "http://"))}
	r.call("POST", "/v1/settings", fields{"webhooks": hooks.URL + "/hook", "webhooksEnabled": true,
		"webhookEvents": []string{"*"}, "serviceUrl": "http://127.0.0.1:3390"})
	r.setUp()
	r.submits()
	r.refusals()
	r.mailMerge()
	r.queues()
	r.failures()
	r.whileActive(s)
	r.handIn(inlet)
	r.endpoints()
	r.recipients()
	r.crash(s, set)
	r.finish()
}

// setUp is the first hour: an account, settings, and requests without a token.
func (r *replay) setUp() {
	r.exchange("account-create-smtp-only")
	r.exchange("account-get-smtp-only")
	r.unsent("webhook-accountAdded")
	r.exchange("settings-post")
	r.exchange("settings-get")
	r.exchange("webhook-routes-list")
	r.token = "none"
	r.exchange("error-401-no-token")
	r.token = "bad"
	r.exchange("error-401-bad-token")
	r.token = apptest.TestToken
}

// relay is the relay of an account, which offers no TLS.
func (r *replay) relay(port int) fields {
	return fields{"host": "127.0.0.1", "port": port, "tls": fields{"starttls": "off"},
		"auth": fields{"user": "u", "pass": "p"}}
}

// submits are messages of every fate.
func (r *replay) submits() {
	r.exchange("submit-ok")
	r.webhook("webhook-messageSent")
	r.exchange("outbox-get-completed-404")
	r.exchange("submit-idempotency-miss")
	r.exchange("submit-idempotency-hit")
	r.exchange("submit-idempotency-hit-different-body")
	r.exchange("submit-scheduled")
	r.exchange("submit-temp451-rcpt")
	r.webhook("webhook-messageDeliveryError-451-attempt1")
	r.exchange("submit-perm550-rcpt")
	r.exchange("submit-perm550-data")
	r.webhook("webhook-messageFailed-550")
	r.unsent("webhook-messageDeliveryError-550")
	r.queueRows("outbox-list")
	r.settled("data421a@example.net", "messageDeliveryError")
	r.settled("data550a@example.net", "messageFailed")
	r.exchange("outbox-list")
	r.exchange("outbox-get-failed-404")
	r.exchange("outbox-delete-failed")
	r.retry("1a1fcdc42bbf4ffe100")
	r.webhook("webhook-messageDeliveryError-451-attempt2")
	r.retry("1a1fcdc42bbf4ffe100")
	r.webhook("webhook-messageFailed-451-exhausted")
	r.unsent("webhook-messageDeliveryError-451-attempt3")
	r.retry("1a1fcdc42e3748bbc50")
	r.settledAgain("data421a@example.net", "messageDeliveryError", 2)
	r.retry("1a1fcdc42e3748bbc50")
	r.settled("data421a@example.net", "messageFailed")
	r.exchange("submit-partial-reject")
	r.webhook("webhook-messageSent-partial-rejection")
	r.exchange("outbox-delete-scheduled")
	r.exchange("submit-dryrun")
}

// refusals are requests that one of the two answers with an error.
func (r *replay) refusals() {
	for _, file := range []string{"submit-no-recipients", "submit-empty-body-object", "submit-unknown-gateway",
		"submit-reference-on-smtp-only", "submit-400-badjson", "submit-400-listid-without-mailmerge",
		"submit-400-validation", "submit-404-account", "submit-404-template", "outbox-list-account-filter-400",
		"outbox-list-badpagesize-400", "blocklist-404"} {
		r.exchange(file)
	}
	r.exchange("token-create")
	if r.token = r.ours["832d2b9a6ff105073efb49a98dd12282dbf80073025fb7b5bc53716b56d854b7"]; r.token != "" {
		r.exchange("error-403-account-token-outbox")
		for range 3 {
			r.request("GET", "/v1/account/snd", "", nil) // uses up what the limit allows
		}
		r.exchange("error-429-ratelimit")
	}
	r.token = apptest.TestToken
}

func (r *replay) mailMerge() {
	r.exchange("gateway-create")
	r.exchange("template-create")
	r.exchange("template-get")
	r.exchange("blocklist-add")
	r.exchange("blocklists-list")
	r.exchange("submit-mailmerge")
}

func (r *replay) queues() {
	r.exchange("settings-queue-put-pause")
	r.exchange("submit-while-paused")
	r.exchange("settings-queue-get-submit-paused")
	r.exchange("settings-queue-put-resume")
	r.settled("okp@example.net", "messageSent")
	r.exchange("settings-queue-get-submit")
	r.exchange("settings-queue-get-notify")
	r.exchange("settings-queue-get-documents")
}

// failures causes an account's failures: a wrong password, a relay that is down.
func (r *replay) failures() {
	strict := testsmtp.Start(r.t, testsmtp.Options{Username: "u", Password: "other",
		Respond: func(c testsmtp.Command) testsmtp.Action {
			if c.Verb == "AUTH" {
				return testsmtp.Action{Reply: "535 5.7.8 bad credentials"}
			}
			return testsmtp.Action{}
		}})
	_, closed, _ := strings.Cut(r.addresses.Replace("127.0.0.1:2599"), ":")
	down, _ := strconv.Atoi(closed)
	for account, port := range map[string]int{"badauth": strict.Port(), "down": down} {
		r.call("POST", "/v1/account", fields{"account": account,
			"email": account + "@example.com", "smtp": r.relay(port)})
	}
	r.exchange("submit-temp503-rcpt")
	r.settled("rcpt503a@example.net", "messageDeliveryError")
	r.queueRows("outbox-list-active-processing")
	r.webhook("webhook-messageFailed-badauth")
	r.unsent("webhook-messageDeliveryError-badauth")
	r.webhook("webhook-messageDeliveryError-down")
}

// whileActive looks at a message during its attempt, and deletes it.
func (r *replay) whileActive(s *sink) {
	r.exchange("submit-slow")
	<-s.holding
	r.exchange("outbox-get-active")
	r.exchange("outbox-list-active-processing")
	r.exchange("outbox-delete-active")
	r.exchange("outbox-get-active-after-delete")
	close(s.release)
	r.settled("slow4000@example.net", "messageSent")
}

// handIn submits a message over SMTP.
func (r *replay) handIn(port string) {
	var theirs []fields
	r.load("outbox-entry-source-smtp", &theirs)
	m := theirs[0]
	content := "From: Sender One <sender@example.com>\r\nTo: oksmtp@example.net\r\nSubject: via smtp\r\n" +
		"X-EE-Send-At: 2099-05-05T00:00:00.000Z\r\nX-EE-Delivery-Attempts: 3\r\n" +
		"X-EE-Idempotency-Key: smtp-1\r\n\r\nHello\r\n"
	err := smtp.SendMail("127.0.0.1:"+port, smtp.PlainAuth("", "snd", apptest.TestToken, "127.0.0.1"),
		"env@example.com",
		[]string{"oksmtp@example.net"}, []byte(content))
	if err != nil {
		r.t.Fatal(err)
	}
	list := r.call("GET", "/v1/outbox?search=oksmtp", nil).(fields)["messages"].([]any)
	r.compare("outbox-entry-source-smtp", "", m, list[0])
}

// endpoints are three webhook receivers that answer 404, 410 and 500 to all requests.
func (r *replay) endpoints() {
	const file = "webhook-retries-404-410-500"
	var all []hooked
	r.load(file, &all)
	requests := map[string]int{}
	for _, h := range all {
		name := h.URL + " " + fmt.Sprint(h.Body["event"])
		if requests[name]++; requests[name] > 1 {
			continue
		}
		account := h.Body["account"].(string)
		if h.Body["event"] == "accountAdded" {
			r.call("POST", "/v1/account", fields{"account": account, "email": account + "@example.com",
				"smtp": r.relay(r.sink.Port())})
			r.call("POST", "/v1/webhook-endpoints", fields{"url": r.hooks.URL + h.URL, "accounts": []string{account},
				"events": []string{"messageSent"}, "headers": fields{"X-My": "v1"}})
			r.differ(file, "event accountAdded", "not sent")
			continue
		}
		to := h.data()["envelope"].(fields)["to"].([]any)[0]
		answer := r.call("POST", "/v1/submit", fields{"account": account, "to": fields{"address": to}, "text": "x"})
		r.ours[h.data()["queueId"].(string)] = answer.(fields)["queueId"].(string)
		r.ours[h.data()["messageId"].(string)] = answer.(fields)["messageId"].(string)
		r.compareHook(file, h, r.wait(h.URL, 1, r.about(h)))
	}
	for _, e := range r.call("GET", "/v1/webhook-endpoints", nil).(fields)["endpoints"].([]any) {
		e := e.(fields)
		status := e["url"].(string)[strings.LastIndex(e["url"].(string), "/")+1:]
		deliveries := r.deliveries(e["id"].(string))
		if deliveries["nextAttempt"] == false {
			r.differ(file, "retries of "+status, "none")
		}
	}
}

// deliveries waits until the delivery of an endpoint was attempted, and returns it.
func (r *replay) deliveries(endpoint string) fields {
	for {
		list := r.call("GET", "/v1/webhook-endpoints/"+endpoint+"/deliveries", nil).(fields)["deliveries"].([]any)
		if d := list[0].(fields); d["attempts"] != 0.0 {
			return d
		}
	}
}

var link = regexp.MustCompile(`http://127\.0\.0\.1:3390(/[^"<>\s]*)`)

// recipients open an email and unsubscribe.
func (r *replay) recipients() {
	var opened hooked
	r.load("webhook-trackOpen", &opened)
	answer := r.call("POST", "/v1/submit", fields{"account": "snd", "to": fields{"address": "oktrk@example.net"},
		"html": "<p>Hi</p>", "trackOpens": true, "listId": "test-list"}).(fields)
	r.ours[opened.data()["messageId"].(string)] = answer["messageId"].(string)
	r.settled("oktrk@example.net", "messageSent")
	messages := r.sink.Messages()
	at := slices.IndexFunc(messages, func(m testsmtp.Message) bool { return m.To[0] == "oktrk@example.net" })
	content := string(messages[at].Data)
	m, err := mail.ReadMessage(strings.NewReader(content))
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(content)))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, l := range link.FindAllStringSubmatch(string(body), -1) {
		if strings.HasPrefix(l[1], "/o/") {
			r.visit("GET", l[1], "")
		}
	}
	r.webhook("webhook-trackOpen")
	var left hooked
	r.load("webhook-listUnsubscribe", &left)
	r.ours[left.data()["messageId"].(string)] = answer["messageId"].(string)
	r.visit("POST", link.FindStringSubmatch(m.Header.Get("List-Unsubscribe"))[1], "List-Unsubscribe=One-Click")
	r.webhook("webhook-listUnsubscribe")
}

// visit is a recipient's mail program.
func (r *replay) visit(method, path, body string) {
	status, _, _ := r.request(method, path, body, map[string]string{"User-Agent": "Python-urllib/3.11",
		"Content-Type": "application/x-www-form-urlencoded"})
	if status != http.StatusOK {
		r.t.Fatalf("%s %s answered %d", method, path, status)
	}
}

// crash kills the process at a dot, and starts another one.
func (r *replay) crash(s *sink, set map[string]string) {
	r.queueRows("outbox-list-after-kill9")
	answer := r.call("POST", "/v1/submit", fields{"account": "snd", "subject": "CrashMe", "text": "x",
		"to": fields{"address": "slow6000crash@example.net"}}).(fields)
	<-s.holding
	r.process.Kill()
	r.process = apptest.Spawn(r.t, set)
	var list struct{ Response struct{ Body fields } }
	r.load("outbox-list-after-kill9", &list)
	r.compare("outbox-list-after-kill9", "", list.Response.Body, r.call("GET", "/v1/outbox?pageSize=100", nil))
	var sent []hooked
	r.load("webhook-after-kill9-duplicate", &sent)
	r.ours[sent[0].data()["queueId"].(string)] = answer["queueId"].(string)
	r.ours[sent[0].data()["messageId"].(string)] = answer["messageId"].(string)
	r.compareHook("webhook-after-kill9-duplicate", sent[0], r.wait("after the crash", 1, r.about(sent[0])))
	var theirs []struct {
		From string
		Rcpt []string
		Body string
	}
	r.load("smtp-sink-kill9-duplicate", &theirs)
	var ours []testsmtp.Message
	for _, m := range r.sink.Messages() {
		if slices.Equal(m.To, theirs[0].Rcpt) {
			ours = append(ours, m)
		}
	}
	if len(ours) != len(theirs) || !bytes.Equal(ours[0].Data, ours[1].Data) || ours[0].From != theirs[0].From {
		r.differ("smtp-sink-kill9-duplicate", "[]", "other value", theirs, ours)
	}
	r.compareMailText("smtp-sink-kill9-duplicate", "body", theirs[0].Body, string(ours[0].Data))
}

// queueRows queues the messages of a recorded list whose request was not recorded, each for its first
// recipient.
func (r *replay) queueRows(file string) {
	var x struct {
		Response struct{ Body struct{ Messages []fields } }
	}
	r.load(file, &x)
	for _, m := range x.Response.Body.Messages {
		to := m["envelope"].(fields)["to"].([]any)
		id := m["queueId"].(string)
		if r.ours[id] != "" || len(to) == 0 || m["subject"] == "Slow" {
			continue
		}
		answer := r.call("POST", "/v1/submit", fields{"account": m["account"], "subject": m["subject"], "text": "x",
			"to": fields{"address": to[0]}, "sendAt": m["scheduled"], "deliveryAttempts": m["attempts"]}).(fields)
		r.ours[id], r.ours[m["messageId"].(string)] = answer["queueId"].(string), answer["messageId"].(string)
	}
}

// settled waits for the first event of a recipient.
func (r *replay) settled(recipient, event string) { r.settledAgain(recipient, event, 1) }

// settledAgain waits for the nth event of a recipient.
func (r *replay) settledAgain(recipient, event string, nth int) {
	r.t.Helper()
	r.wait(event+" of "+recipient, nth, func(h hooked) bool {
		envelope, _ := h.data()["envelope"].(fields)
		to, _ := envelope["to"].([]any)
		return h.Body["event"] == event && slices.Contains(to, any(recipient))
	})
}

// retry attempts a message now that was recorded with this id.
func (r *replay) retry(id string) { r.call("POST", "/v1/outbox/"+r.ours[id]+"/retry", nil) }
