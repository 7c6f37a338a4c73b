package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestRefusals checks each refusal that the server itself makes: its status, its code, its fields.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const to = `"to":{"address":"a@example.net"}`
	f := func(key, message string) api.ProblemField { return api.ProblemField{Key: key, Message: message} }
	cases := []struct {
		name    string
		method  string
		path    string
		body    string
		headers []string
		status  int
		code    string
		message string
		fields  []api.ProblemField
	}{
		{name: "malformed JSON", body: `{bad`, status: 400, message: "Invalid request payload JSON format"},
		{name: "two documents", body: `{"text":"x"} {}`, status: 400,
			message: "Invalid request payload JSON format"},
		{name: "cut off", body: `{"text":"x"`, status: 400, message: "Invalid request payload JSON format"},
		{name: "not UTF-8", body: "{\"text\":\"\xff\"}", status: 400,
			message: "Invalid request payload JSON format"},
		{name: "no body", body: ``, status: 400, message: "The request has no body; a JSON object is expected"},
		{name: "not an object", body: `[]`, status: 400, message: "Invalid input", fields: []api.ProblemField{
			f("", "must be of type object")}},
		{name: "nested too deep", body: `{"metadata":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`,
			101), status: 400, message: "Invalid request payload JSON format"},
		{name: "form", body: "to=x", headers: []string{"Content-Type", "application/x-www-form-urlencoded"},
			status: 415, message: "The body must be application/json"},

		{name: "unknown key", body: `{` + to + `,"foo":"bar"}`, status: 400, fields: []api.ProblemField{
			f("foo", `"foo" is not allowed`)}},
		{name: "key in another case", body: `{` + to + `,"Subject":"x"}`, status: 400, fields: []api.ProblemField{
			f("Subject", `"Subject" is not allowed`)}},
		{name: "unknown key inside", body: `{"to":[{"address":"a@example.net","adress":"b"}]}`, status: 400,
			fields: []api.ProblemField{f("to[0].adress", `"to[0].adress" is not allowed`)}},
		{name: "key given twice", body: `{` + to + `,"text":"a","text":"b"}`, status: 400,
			fields: []api.ProblemField{f("text", `"text" is given twice`)}},
		{name: "string", body: `{` + to + `,"subject":1}`, status: 400, fields: []api.ProblemField{
			f("subject", `"subject" must be a string`)}},
		{name: "number", body: `{` + to + `,"deliveryAttempts":"3"}`, status: 400, fields: []api.ProblemField{
			f("deliveryAttempts", `"deliveryAttempts" must be a number`)}},
		{name: "fraction", body: `{` + to + `,"deliveryAttempts":1.5}`, status: 400, fields: []api.ProblemField{
			f("deliveryAttempts", `"deliveryAttempts" must be an integer`)}},
		{name: "too few attempts", body: `{` + to + `,"deliveryAttempts":0}`, status: 400,
			fields: []api.ProblemField{
				f("deliveryAttempts", `"deliveryAttempts" must be greater than or equal to 1`)}},
		{name: "too many attempts", body: `{` + to + `,"deliveryAttempts":101}`, status: 400,
			fields: []api.ProblemField{f("deliveryAttempts", `"deliveryAttempts" must be less than or equal to 100`)}},
		{name: "boolean", body: `{` + to + `,"dryRun":"yes"}`, status: 400, fields: []api.ProblemField{
			f("dryRun", `"dryRun" must be a boolean`)}},
		{name: "list", body: `{"to":"a@example.net"}`, status: 400, fields: []api.ProblemField{
			f("to", `"to" must be an array`)}},
		{name: "object", body: `{` + to + `,"from":"a@example.net"}`, status: 400, fields: []api.ProblemField{
			f("from", `"from" must be of type object`)}},
		{name: "metadata", body: `{` + to + `,"metadata":[1]}`, status: 400, fields: []api.ProblemField{
			f("metadata", `"metadata" must be of type object`)}},
		{name: "header value", body: `{` + to + `,"headers":{"X-A":{"value":"1"}}}`, status: 400,
			fields: []api.ProblemField{f("headers.X-A", `"headers.X-A" must be a string`)}},
		{name: "header given twice", body: `{` + to + `,"headers":{"X-A":"1","X-A":"2"}}`, status: 400,
			fields: []api.ProblemField{f("headers.X-A", `"headers.X-A" is given twice`)}},
		{name: "date", body: `{` + to + `,"sendAt":"tomorrow"}`, status: 400, fields: []api.ProblemField{
			f("sendAt", `"sendAt" must be in ISO 8601 date format`)}},
		{name: "base64", body: `{` + to + `,"raw":"***"}`, status: 400, fields: []api.ProblemField{
			f("raw", `"raw" must be a valid base64 string`)}},
		{name: "enum", body: `{` + to + `,"lane":"fast"}`, status: 400, fields: []api.ProblemField{
			f("lane", `"lane" must be one of [transactional, bulk]`)}},
		{name: "enum in a list", body: `{` + to + `,"dsn":{"notify":["success","always"]}}`, status: 400,
			fields: []api.ProblemField{
				f("dsn.notify[1]", `"dsn.notify[1]" must be one of [never, success, failure, delay]`)}},
		{name: "long subject", body: `{` + to + `,"subject":"` + strings.Repeat("ä", 10241) + `"}`, status: 400,
			fields: []api.ProblemField{
				f("subject", `"subject" length must be less than or equal to 10240 characters long`)}},
		{name: "long preview", body: `{` + to + `,"previewText":"` + strings.Repeat("x", 1025) + `"}`, status: 400,
			fields: []api.ProblemField{
				f("previewText", `"previewText" length must be less than or equal to 1024 characters long`)}},
		{name: "long key", body: `{` + to + `,"idempotencyKey":"` + strings.Repeat("x", 1025) + `"}`, status: 400,
			fields: []api.ProblemField{
				f("idempotencyKey", `"idempotencyKey" length must be less than or equal to 1024 characters long`)}},
		{name: "many tags", body: `{` + to + `,"tags":["1","2","3","4","5","6","7","8","9","10","11"]}`,
			status: 400, fields: []api.ProblemField{f("tags", `"tags" must contain less than or equal to 10 items`)}},
		{name: "attachment without content", body: `{` + to + `,"attachments":[{"filename":"a.txt"}]}`, status: 400,
			fields: []api.ProblemField{f("attachments[0].content", `"attachments[0].content" is required`)}},
		{name: "attachment encoding", body: `{` + to + `,"attachments":[{"content":"","encoding":"hex"}]}`,
			status: 400, fields: []api.ProblemField{
				f("attachments[0].encoding", `"attachments[0].encoding" must be one of [base64]`)}},

		{name: "all at once, with what the outbox finds", path: "/v1/submit?x=1",
			body: `{"to":{"address":"notanemail"},"subject":1,"foo":"bar","deliveryAttempts":1.5}`, status: 400,
			message: "Invalid input", fields: []api.ProblemField{
				f("subject", `"subject" must be a string`), f("foo", `"foo" is not allowed`),
				f("deliveryAttempts", `"deliveryAttempts" must be an integer`),
				f("x", `"x" is not allowed`), f("to[0].address",
					`"to[0].address" is not a valid email address: it has no @`),
			}},
		{name: "no false alarm about a field that could not be read", body: `{"to":5}`, status: 400,
			fields: []api.ProblemField{f("to", `"to" must be an array`)}},

		{name: "render with true", body: `{` + to + `,"render":true}`, status: 400, fields: []api.ProblemField{
			f("render", `"render" must be of type object`)}},
		{name: "render in another format", body: `{` + to + `,"render":{"format":"mjml","params":[]}}`, status: 400,
			fields: []api.ProblemField{
				f("render.format", `"render.format" must be one of [html, markdown]`),
				f("render.params", `"render.params" must be of type object`)}},
		{name: "mail merge of nobody", body: `{"mailMerge":[]}`, status: 400, fields: []api.ProblemField{
			f("mailMerge", `"mailMerge" must contain at least 1 items`)}},
		{name: "mail merge to nowhere", body: `{"mailMerge":[{"to":{"address":"a@b.com"}},{"params":{},"x":1}]}`,
			status: 400, fields: []api.ProblemField{
				f("mailMerge[1].x", `"mailMerge[1].x" is not allowed`),
				f("mailMerge[1].to", `"mailMerge[1].to" is required`)}},
		{name: "a path to the relay", body: `{` + to + `,"proxy":"ftp://x","localAddress":"here"}`, status: 400,
			fields: []api.ProblemField{
				f("localAddress", `"localAddress" must be an IP address`),
				f("proxy", `"proxy" must be an http, https or socks5 URL such as socks5://user:password@proxy.example.com:1080`)}},
		{name: "a proxy with a password", body: `{` + to + `,"proxy":"http://u:p@x"}`, status: 400,
			fields: []api.ProblemField{
				f("proxy", `"proxy" must not contain a password; set such a proxy in an account or gateway`)}},
		{name: "a header of lists", body: `{` + to + `,"headers":{"X-A":["1",2,[]],"X-B":3,"X-C":null}}`, status: 400,
			fields: []api.ProblemField{f("headers.X-A[2]", `"headers.X-A[2]" must be a string`)}},
		{name: "a time that clocks skip", body: `{` + to + `,"tz":"Europe/Berlin","sendAt":"2027-03-28T02:30:00"}`,
			status: 400, fields: []api.ProblemField{f("sendAt", `"sendAt" must exist: 2027-03-28T02:30:00 does not exist in Europe/Berlin: its clocks jump to 2027-03-28T03:00:00`)}},
		{name: "reference", body: `{` + to + `,"reference":{"message":"AAAA","action":"reply"}}`, status: 400,
			code: "MailboxUnavailable", fields: []api.ProblemField{
				f("reference", `"reference" is not supported: use inReplyTo and references`)}},

		{name: "two keys", body: `{` + to + `,"idempotencyKey":"a"}`, headers: []string{"Idempotency-Key", `"b"`},
			status: 400, fields: []api.ProblemField{
				f("idempotencyKey", `"idempotencyKey" differs from the header Idempotency-Key`)}},
		{name: "long key in header", body: `{` + to + `}`, headers: []string{"Idempotency-Key",
			strings.Repeat("x", 1025)}, status: 400, fields: []api.ProblemField{
			f("idempotencyKey", `"idempotencyKey" length must be less than or equal to 1024 characters long`)}},
		{name: "two accounts", path: "/v1/account/acme/submit", body: `{` + to + `,"account":"other"}`, status: 400,
			fields: []api.ProblemField{f("account", `"account" isn't the account in the path`)}},
		{name: "submit with page", path: "/v1/submit?page=1", body: `{` + to + `}`, status: 400,
			fields: []api.ProblemField{f("page", `"page" is not allowed`)}},

		{name: "unknown query", method: "GET", path: "/v1/outbox?acount=snd", status: 400, message: "Invalid input",
			fields: []api.ProblemField{f("acount", `"acount" is not allowed`)}},
		{name: "page size", method: "GET", path: "/v1/outbox?pageSize=1001", status: 400,
			fields: []api.ProblemField{f("pageSize", `"pageSize" must be less than or equal to 1000`)}},
		{name: "page size zero", method: "GET", path: "/v1/outbox?pageSize=0", status: 400,
			fields: []api.ProblemField{f("pageSize", `"pageSize" must be greater than or equal to 1`)}},
		{name: "negative page", method: "GET", path: "/v1/outbox?page=-1", status: 400, fields: []api.ProblemField{
			f("page", `"page" must be greater than or equal to 0`)}},
		{name: "word for page", method: "GET", path: "/v1/outbox?page=two&state=sent", status: 400,
			fields: []api.ProblemField{f("page", `"page" must be a number`),
				f("state", `"state" must be one of [waiting, active, scheduled, delayed, paused, failed, completed]`)}},
		{name: "query given twice", method: "GET", path: "/v1/outbox?state=active&state=failed", status: 400,
			fields: []api.ProblemField{f("state", `"state" must be given once`)}},
		{name: "query that can't be read", method: "GET", path: "/v1/outbox?search=%zz", status: 400,
			message: "Invalid query string"},
		{name: "created", method: "GET", path: "/v1/outbox?createdAfter=soon", status: 400,
			fields: []api.ProblemField{f("createdAfter", `"createdAfter" must be in ISO 8601 date format`)}},
		{name: "cancel everything", method: "DELETE", path: "/v1/outbox", status: 400, fields: []api.ProblemField{
			f("state", `"state" or another filter is required`)}},
		{name: "filters of the log", method: "GET",
			path: "/v1/messages?status=lost&lane=fast&page=-1&pageSize=0&state=failed&createdBefore=soon&tag=" +
				strings.Repeat("x", 257), status: 400, fields: []api.ProblemField{
				f("state", `"state" is not allowed`), f("page", `"page" must be greater than or equal to 0`),
				f("pageSize", `"pageSize" must be greater than or equal to 1`),
				f("status", `"status" must be one of [queued, sending, sent, failed, cancelled, suppressed, dead, `+
					"delivered, opened, clicked, unsubscribed, bounced, complained]"),
				f("lane", `"lane" must be one of [transactional, bulk]`),
				f("tag", `"tag" length must be less than or equal to 256 characters long`),
				f("createdBefore", `"createdBefore" must be in ISO 8601 date format`)}},
		{name: "filters of counters", method: "GET", path: "/v1/stats?lane=fast&tag=x", status: 400,
			fields: []api.ProblemField{
				f("tag", `"tag" is not allowed`), f("lane", `"lane" must be one of [transactional, bulk]`)}},
		{name: "unknown message in the log", method: "GET", path: "/v1/messages/nope", status: 404,
			code: "MessageNotFound", message: "There is no such message in the email log"},
		{name: "events of an unknown message", method: "GET", path: "/v1/messages/nope/events", status: 404,
			code: "MessageNotFound"},
		{name: "replay to no address", path: "/v1/dead-letters/q1/replay",
			body: `{"to":["a@example.net","bob"],"gateway":7}`, status: 400, fields: []api.ProblemField{
				f("to[1]", `"to[1]" is not a valid email address: it has no @`),
				f("gateway", `"gateway" must be a string`)}},
		{name: "replay to one that is no address", path: "/v1/dead-letters/q1/replay",
			body: `{"to":"<a@example.net>"}`, status: 400, fields: []api.ProblemField{
				f("to", `"to" is not a valid email address: it contains < or >; a display name goes into name`)}},
		{name: "replay to nobody", path: "/v1/dead-letters/q1/replay", body: `{"to":[]}`, status: 400,
			fields: []api.ProblemField{f("to", `"to" must contain at least 1 items`)}},
		{name: "replay to a number", path: "/v1/dead-letters/q1/replay", body: `{"to":[7],"subject":"x"}`,
			status: 400, fields: []api.ProblemField{
				f("to[0]", `"to[0]" must be a string`), f("subject", `"subject" is not allowed`)}},
		{name: "replay to an object", path: "/v1/dead-letters/q1/replay",
			body: `{"to":{"address":"a@example.net"}}`, status: 400, fields: []api.ProblemField{
				f("to", `"to" must be an array`)}},
		{name: "replay with half a body", path: "/v1/dead-letters/q1/replay", body: `{"to"`, status: 400,
			message: "Invalid request payload JSON format"},
		{name: "replay with a form", path: "/v1/dead-letters/q1/replay", body: "to=x", headers: []string{
			"Content-Type", "application/x-www-form-urlencoded"}, status: 415},
		{name: "replay of many to one", path: "/v1/dead-letters/replay",
			body: `{"code":"EAUTH","corrections":{"to":"a@example.net"}}`, status: 400, fields: []api.ProblemField{
				f("corrections.to", `"corrections.to" is for the replay of one dead letter`)}},
		{name: "corrections select nothing", path: "/v1/dead-letters/replay",
			body: `{"corrections":{"gateway":"spare"}}`, status: 400,
			message: "Select dead letters with account, code, reason, tag, ids or accountTrouble"},
		{name: "queue", method: "GET", path: "/v1/settings/queue/sumbit", status: 400, fields: []api.ProblemField{
			f("queue", `"queue" must be one of [submit, bulk, notify, documents, digests]`)}},
		{name: "pause", method: "PUT", path: "/v1/settings/queue/submit", body: `{"paused":"no"}`, status: 400,
			fields: []api.ProblemField{f("paused", `"paused" must be a boolean`)}},
		{name: "patch", method: "PATCH", path: "/v1/outbox/q1", body: `{"deliveryAttempts":0,"subject":"x"}`,
			status: 400, fields: []api.ProblemField{
				f("deliveryAttempts", `"deliveryAttempts" must be greater than or equal to 1`),
				f("subject", `"subject" is not allowed`)}},
		{name: "account", path: "/v1/account", body: `{"account":"../x","smtp":{"host":"","port":0}}`, status: 400,
			fields: []api.ProblemField{
				f("account", `"account" fails to match the required pattern: ^[A-Za-z0-9][A-Za-z0-9._@+-]*$`),
				f("smtp.host", `"smtp.host" is not allowed to be empty`),
				f("smtp.port", `"smtp.port" must be greater than or equal to 1`), f("email", `"email" is required`)}},
		{name: "token", path: "/v1/tokens",
			body: `{"scopes":["root"],"restrictions":{"rateLimit":{"maxRequests":0,"timeWindow":30}}}`, status: 400,
			fields: []api.ProblemField{
				f("scopes[0]", `"scopes[0]" must be one of [api, send, smtp, outbox, lists, campaigns, digests, metrics, admin, *]`),
				f("restrictions.rateLimit.maxRequests",
					`"restrictions.rateLimit.maxRequests" must be greater than or equal to 1`),
				f("description", `"description" is required`)}},
		{name: "setting", path: "/v1/settings", body: `{"queueKeep":-1,"smtpServerPort":2587,"nosuch":1}`,
			status: 400,
			fields: []api.ProblemField{
				f("queueKeep", `"queueKeep" must be greater than or equal to 0`),
				f("nosuch", `"nosuch" is not allowed`)}},
		{name: "no setting", path: "/v1/settings", body: `{}`, status: 400,
			message: "The request changes no setting"},
		{name: "replay without since", path: "/v1/webhook-endpoints/e1/replay", status: 400,
			fields: []api.ProblemField{f("since", `"since" is required`)}},

		{name: "unknown route", method: "GET", path: "/v1/outboxes", status: 404, message: "Not Found"},
		{name: "unknown method", method: "PUT", path: "/v1/outbox", status: 405, message: "Method Not Allowed"},
		{name: "unknown message", method: "GET", path: "/v1/outbox/nope", status: 404,
			code: "MessageNotFound", message: `There is no message with queueId "nope"`},
		{name: "unknown account", method: "DELETE", path: "/v1/account/gone", status: 404,
			code: "AccountNotFound"},
	}
	w := setup(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodPost
			}
			if tc.path == "" {
				tc.path = "/v1/submit"
			}
			got := w.do(t, tc.method, tc.path, adminToken, tc.body, tc.headers...)
			if got.status != tc.status || got.problem.Code != tc.code {
				t.Fatalf("got %d %q, want %d %q: %s", got.status, got.problem.Code, tc.status, tc.code, got.body)
			}
			if tc.message != "" && got.problem.Message != tc.message {
				t.Errorf("message %q, want %q", got.problem.Message, tc.message)
			}
			if diff := cmp.Diff(tc.fields, got.problem.Fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if got.status >= 400 && (got.problem.RequestID == "" || got.problem.StatusCode != got.status ||
				got.problem.Error != http.StatusText(got.status)) {
				t.Errorf("incomplete problem: %s", got.body)
			}
		})
	}
	w.parts.isEmpty(t)
}

// TestFaultsBecomeStatuses holds the one function that knows both.
func TestFaultsBecomeStatuses(t *testing.T) {
	t.Parallel()
	limited := fault.New(fault.Limited, "", "Rate limit exceeded")
	limited.RetryAfter = 5500 * time.Millisecond
	away := fault.New(fault.Unavailable, "RedisAway", "Redis is away")
	away.RetryAfter = 5 * time.Second
	ended := fault.New(fault.NotFound, "MessageFailed", "It failed")
	ended.Details = map[string]any{"deadLetter": "/v1/dead-letters/q1"}
	cases := []struct {
		err    error
		status int
		header string
		value  string
	}{
		{fault.New(fault.Invalid, "X", "Wrong"), 400, "", ""},
		{fault.New(fault.Unauthorized, "", "Token has expired"), 401, "Www-Authenticate",
			`Bearer error="Token has expired"`},
		{fault.New(fault.Forbidden, "", "No"), 403, "", ""},
		{ended, 404, "", ""},
		{fault.New(fault.Conflict, "MessageActive", "It is being sent"), 409, "", ""},
		{fault.New(fault.TooLarge, "", "Too large"), 413, "", ""},
		{fault.New(fault.Unprocessable, "IdempotencyKeyReused", "Used"), 422, "", ""},
		{limited, 429, "Retry-After", "6"},
		{away, 503, "Retry-After", "5"},
		{fault.New(fault.Unavailable, "", "Away"), 503, "Retry-After", "1"},
	}
	w := setup(t)
	for _, tc := range cases {
		w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) { return api.SubmitAnswer{}, tc.err }
		got := w.do(t, http.MethodPost, "/v1/submit", adminToken, `{"to":{"address":"a@example.net"}}`)
		if got.status != tc.status || got.problem.Code != fault.CodeOf(tc.err) ||
			got.problem.Message != tc.err.Error() {
			t.Errorf("%v: %d %s", tc.err, got.status, got.body)
		}
		if tc.header != "" && got.header.Get(tc.header) != tc.value {
			t.Errorf("%v: %s %q, want %q", tc.err, tc.header, got.header.Get(tc.header), tc.value)
		}
		if tc.status == 429 && got.problem.TTL != 6 {
			t.Errorf("ttl %d", got.problem.TTL)
		}
		if tc.status == 404 && got.problem.Details["deadLetter"] == nil {
			t.Errorf("details are lost: %s", got.body)
		}
	}
}

func TestRateLimitIsTold(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.token(t, "limited", api.TokenRequest{Restrictions: &api.Restrictions{
		RateLimit: &api.RateLimit{MaxRequests: 2, TimeWindow: 30}}})
	got := w.do(t, http.MethodGet, "/v1/outbox", "limited", "")
	want := []string{"2", "1", "30"}
	if diff := cmp.Diff(want, []string{got.header.Get("X-RateLimit-Limit"),
		got.header.Get("X-RateLimit-Remaining"), got.header.Get("X-RateLimit-Reset")}); diff != "" {
		t.Error(diff)
	}
}
