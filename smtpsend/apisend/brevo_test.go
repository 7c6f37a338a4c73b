package apisend_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func TestBrevoFixtures(t *testing.T) {
	t.Parallel()
	checkFixtures(t, apisend.Target{Type: api.GatewayBrevo, ID: "gw", Key: "xkeysib-example"},
		func(body map[string]any) {
			headers, _ := body["headers"].(map[string]any)
			if key, _ := headers["idempotencyKey"].(string); uuid.MatchString(key) {
				headers["idempotencyKey"] = "a UUID"
			}
			var custom any
			text, _ := headers["X-Mailin-custom"].(string)
			if err := json.Unmarshal([]byte(text), &custom); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			headers["X-Mailin-custom"] = custom
		})
}

func TestBrevoAnswers(t *testing.T) {
	t.Parallel()
	failed := func(code, text string) string { return `{"code":"` + code + `","message":"` + text + `"}` }
	checkAnswers(t, target(api.GatewayBrevo, ""), []answered{
		{201, `{"messageId":"<1@smtp-relay.mailin.fr>"}`, "sent", 0},
		{201, "", "sent", 0},
		{201, "{}", "doubt", 0},
		{200, "<html>", "doubt", 0},
		{400, failed("invalid_parameter", "valid sender email required"), "auth account", 0},
		{400, failed("missing_parameter", "sender is missing"), "auth account", 0},
		{400, failed("invalid_parameter", "email is not valid in to"), "policy recipient", 0},
		{400, failed("missing_parameter", "a recipient is missing"), "policy recipient", 0},
		{400, failed("duplicate_request", "Duplicate request"), "sent", 0},
		{400, failed("invalid_parameter", "Unsupported file format"), "policy message", 0},
		{400, failed("bad_request", "Input must be a valid JSON object"), "policy message", 0},
		{401, failed("unauthorized", "Key not found"), "auth account", 0},
		{403, failed("permission_denied", "no"), "auth account", 0},
		{403, failed("account_under_validation", "no"), "auth account", 0},
		{402, failed("not_enough_credits", "You do not have enough credits"), "throttle account", time.Hour},
		{429, failed("too_many_requests", "Too many requests"), "throttle account", 0},
		{500, failed("internal_error", "Internal server error"), "soft connection", 0},
		{502, "<html>", "doubt", 0},
		{418, failed("new_word", "something"), "soft message", 0},
	})
}

// TestBrevoRestsWhenItsLimitIsUsedUp: the last answer says so before a request is refused.
func TestBrevoRestsWhenItsLimitIsUsedUp(t *testing.T) {
	t.Parallel()
	b := setup(t, api.GatewayBrevo, testapi.Options{})
	b.Fail(testapi.Fault{Header: map[string]string{"X-Sib-Ratelimit-Remaining": "0",
		"X-Sib-Ratelimit-Reset": "7"}})
	if r := b.send(t, mail("ann@example.net")); r.Recipients[0].Err != nil {
		t.Fatal(r.Recipients[0].Err)
	}
	m := mail("bob@example.net")
	e := b.send(t, m).Recipients[0].Err
	if e == nil || e.Verdict != smtpsend.Throttle || e.Phase != smtpsend.PhaseConnect ||
		e.RetryAfter < 5*time.Second {
		t.Errorf("%v, want to wait 7 seconds", e)
	}
}

// TestABrevoKeyResolvesTheDoubt: a repeat that is answered with duplicate_request was taken at first.
func TestABrevoKeyResolvesTheDoubt(t *testing.T) {
	t.Parallel()
	b := setup(t, api.GatewayBrevo, testapi.Options{})
	b.Fail(testapi.Fault{At: testapi.Read, Taken: true})
	r := b.send(t, mail("ann@example.net"))
	if r.Recipients[0].Err != nil || r.Recipients[0].ProviderID != "" || b.Count("ann@example.net") != 1 {
		t.Errorf("%+v, delivered %d times", r.Recipients[0], b.Count("ann@example.net"))
	}
}
