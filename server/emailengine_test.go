package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// exchange is a recorded request to EmailEngine and its answer.
type exchange struct {
	Request struct {
		Method  string            `json:"method"`
		Path    string            `json:"path"`
		Headers map[string]string `json:"headers"`
		Body    any               `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    any               `json:"body"`
	} `json:"response"`
}

// TestAnswersLikeEmailEngine repeats recorded requests, in an order that makes sense, and compares status
// codes and the names and types of the fields. A row says where Postroom differs on purpose, and why.
func TestAnswersLikeEmailEngine(t *testing.T) {
	t.Parallel()
	const (
		stays = 0
		// of an account: those of a mailbox
		mailbox = "logs notifyFrom syncFrom path smtpStatus type sendOnly counters"
		// of a queued message: EmailEngine's own business
		internal = "useStructuredFormat networkRouting"
	)
	cases := []struct {
		file   string
		token  string // other than the admin's
		status int    // where it differs
		code   string // and how that is told
		less   string // fields that Postroom leaves out
		body   string // sent instead of the recorded one
		path   string // asked instead of the recorded one; %s is the last message queued, or template stored
	}{
		{file: "account-create-smtp-only"},
		{file: "account-get-smtp-only", less: mailbox},
		{file: "settings-queue-get-submit"},
		{file: "settings-queue-put-pause"},
		{file: "settings-queue-get-submit-paused"},
		{file: "submit-while-paused"},
		{file: "settings-queue-put-resume"},
		{file: "settings-queue-get-notify"},
		{file: "settings-queue-get-documents"},
		{file: "submit-ok"},
		{file: "submit-scheduled"},
		{file: "outbox-list", less: internal + " error"}, // nothing was attempted here yet
		{file: "outbox-delete-scheduled", path: "/v1/outbox/%s"},
		{file: "outbox-get-completed-404", path: "/v1/outbox/nosuchid"},
		{file: "outbox-list-badpagesize-400"},
		{file: "submit-idempotency-miss"},
		{file: "submit-idempotency-hit"},
		// EmailEngine loses the mail
		{file: "submit-idempotency-hit-different-body", status: 422, code: "IdempotencyKeyReused"},
		// EmailEngine says 200 for what can't be delivered
		{file: "submit-no-recipients", status: 400},
		// EmailEngine sends through another relay
		{file: "submit-unknown-gateway", status: 404, code: "GatewayNotFound"},
		// it will not be available later either
		{file: "submit-reference-on-smtp-only", status: 400, code: "MailboxUnavailable"},
		{file: "submit-dryrun", body: `{"to":{"address":"ok4@example.net"},"subject":"Dry","html":"<p>Hi</p>","dryRun":true}`},
		{file: "submit-400-validation"},
		{file: "submit-400-badjson"},
		{file: "submit-400-listid-without-mailmerge"},
		{file: "submit-404-account"},
		{file: "template-create"},
		{file: "template-get", path: "/v1/templates/template/%s"},
		{file: "blocklist-404"},
		{file: "blocklist-add"},
		{file: "blocklists-list"},
		{file: "error-401-no-token", token: "none"},
		{file: "error-401-bad-token", token: "bad"},
		{file: "token-create", body: `{"account":"snd","description":"acct token","scopes":["api"],"restrictions":{"rateLimit":{"maxRequests":2,"timeWindow":30},"addresses":["127.0.0.0/8"]}}`},
		{file: "error-429-ratelimit", token: "limited"},
		{file: "settings-post", body: `{"queueKeep":5,"deliveryAttempts":7}`},
	}
	w := setup(t)
	last, limited := "", ""
	for _, tc := range cases {
		t.Run(tc.file, func(t *testing.T) {
			x := recorded(t, tc.file)
			body := tc.body
			if s, ok := x.Request.Body.(string); ok {
				body = s
			} else if body == "" && x.Request.Body != nil {
				body = marshal(t, x.Request.Body)
			}
			token := map[string]string{"": adminToken, "none": "", "bad": "x", "limited": limited}[tc.token]
			path := x.Request.Path
			if tc.path != "" {
				path = strings.Replace(tc.path, "%s", last, 1)
			}
			var headers []string
			for name, value := range x.Request.Headers {
				headers = append(headers, name, value)
			}
			repeat := 1
			if tc.token == "limited" {
				repeat = 3
			}
			var got reply
			for range repeat {
				got = w.do(t, x.Request.Method, path, token, body, headers...)
			}

			if tc.status != stays {
				if got.status != tc.status || got.problem.Code != tc.code {
					t.Errorf("got %d %q, want %d %q: %s", got.status, got.problem.Code, tc.status, tc.code, got.body)
				}
				return
			}
			if got.status != x.Response.Status {
				t.Fatalf("got %d, EmailEngine says %d: %s", got.status, x.Response.Status, got.body)
			}
			var ours any
			if err := json.Unmarshal([]byte(got.body), &ours); err != nil {
				t.Fatal(err)
			}
			for _, difference := range compare("", x.Response.Body, ours, strings.Fields(tc.less)) {
				t.Error(difference)
			}
			if want := x.Response.Headers["www-authenticate"]; got.header.Get("WWW-Authenticate") != want {
				t.Errorf("WWW-Authenticate %q, want %q", got.header.Get("WWW-Authenticate"), want)
			}
			if x.Response.Status == http.StatusTooManyRequests && (got.header.Get("X-RateLimit-Limit") != "2" ||
				got.problem.TTL == 0) {
				t.Errorf("the limit is not told: %v", got.header)
			}
			if answer, ok := ours.(map[string]any); ok {
				if id, ok := answer["queueId"].(string); ok {
					last = id
				}
				if id, ok := answer["id"].(string); ok && answer["created"] == true {
					last = id
				}
				if token, ok := answer["token"].(string); ok {
					limited = token
				}
			}
		})
	}
	var page api.OutboxPage
	if err := json.Unmarshal([]byte(w.do(t, "GET", "/v1/outbox", adminToken, "").body), &page); err != nil ||
		page.Total != 3 {
		t.Errorf("%d messages are queued, %v: those that were refused must not be", page.Total, err)
	}
}

// TestValidationWordsAreEmailEngines compares the words for wrong fields, where the field is named alike.
func TestValidationWordsAreEmailEngines(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for file, skip := range map[string][]string{
		"submit-400-validation":       {"address"}, // named by its whole path here, which tells to from cc
		"outbox-list-badpagesize-400": nil,
	} {
		x := recorded(t, file)
		body := ""
		if x.Request.Body != nil {
			body = marshal(t, x.Request.Body)
		}
		got := w.do(t, x.Request.Method, x.Request.Path, adminToken, body)
		ours := map[string]string{}
		for _, f := range got.problem.Fields {
			ours[f.Key] = f.Message
		}
		fields, _ := x.Response.Body.(map[string]any)["fields"].([]any)
		for _, f := range fields {
			theirs, _ := f.(map[string]any)
			key, message := fmt.Sprint(theirs["key"]), fmt.Sprint(theirs["message"])
			if !slices.Contains(skip, key) && !strings.EqualFold(ours[key], message) {
				t.Errorf("%s: %s: %q, EmailEngine says %q", file, key, ours[key], message)
			}
		}
	}
}

func recorded(t *testing.T, name string) exchange {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "emailengine", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var x exchange
	if err := json.Unmarshal(raw, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// compare finds fields of theirs that ours lacks or has with another type. Of lists the first elements are
// compared.
func compare(at string, theirs, ours any, less []string) (differences []string) {
	switch theirs := theirs.(type) {
	case map[string]any:
		ours, ok := ours.(map[string]any)
		if !ok {
			return []string{at + ": not an object"}
		}
		for key, value := range theirs {
			if slices.Contains(less, key) {
				continue
			}
			mine, ok := ours[key]
			if !ok {
				differences = append(differences, at+"."+key+" is missing")
				continue
			}
			differences = append(differences, compare(at+"."+key, value, mine, less)...)
		}
	case []any:
		ours, ok := ours.([]any)
		if !ok || len(theirs) > 0 && len(ours) == 0 {
			return []string{at + ": not a list, or an empty one"}
		}
		if len(theirs) > 0 {
			return compare(at+"[0]", theirs[0], ours[0], less)
		}
	default:
		if a, b := fmt.Sprintf("%T", theirs), fmt.Sprintf("%T", ours); a != b {
			differences = append(differences, fmt.Sprintf("%s is a %s, EmailEngine has a %s", at, b, a))
		}
	}
	return differences
}
