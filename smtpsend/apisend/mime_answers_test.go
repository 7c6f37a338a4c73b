package apisend

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestAnswersToMIME has all lines of the providers' tables of answers.
func TestAnswersToMIME(t *testing.T) {
	t.Parallel()
	amazon := func(kind, text string) string { return `{"__type":"` + kind + `","message":"` + text + `"}` }
	gun := func(text string) string { return `{"message":"` + text + `"}` }
	spark := func(code string) string {
		return `{"errors":[{"message":"m","description":"d","code":"` + code + `"}]}`
	}
	counts := func(taken, refused int) string {
		return fmt.Sprintf(`{"results":{"id":"1","total_accepted_recipients":%d,"total_rejected_recipients":%d,`+
			`"rcpt_to_errors":[{"message":"m","code":"1300"}]}}`, taken, refused)
	}
	chimp := func(name string) string {
		return `{"status":"error","code":-1,"name":"` + name + `","message":"m"}`
	}
	one := func(status, reason string) string {
		return `[{"email":"Ann@Example.net","status":"` + status + `","reject_reason":"` + reason + `","_id":"1"}]`
	}
	for kind, rows := range map[api.GatewayType][]saying{
		api.GatewaySES: {
			{200, `{"MessageId":"1"}`, "sent 1"}, {200, `{}`, "doubt"}, {200, `<html>`, "doubt"},
			{429, amazon("TooManyRequestsException", "Maximum sending rate exceeded."), "throttle account 1s"},
			{400, amazon("com.amazonaws.sesv2#ThrottlingException:http://x/", "rate"), "throttle account 1s"},
			{400, amazon("Throttling", "Daily message quota exceeded."), "throttle account 10m0s"},
			{429, amazon("TooManyRequestsException", "Daily message quota exceeded."), "throttle account 10m0s"},
			{400, amazon("LimitExceededException", "m"), "throttle account"},
			{400, amazon("MessageRejected", "Email address is not verified."), "auth account"},
			{400, amazon("MessageRejected", "m"), "policy message"},
			{400, amazon("BadRequestException", "m"), "policy message"},
			{400, amazon("MailFromDomainNotVerifiedException", "m"), "auth account"},
			{400, amazon("AccountSuspendedException", "m"), "auth account"},
			{400, amazon("SendingPausedException", "m"), "auth account"},
			{404, amazon("NotFoundException", "Configuration set x"), "auth account"},
			{403, amazon("AccessDeniedException", "m"), "auth account"},
			{403, amazon("UnrecognizedClientException", "m"), "auth account"},
			{403, amazon("ExpiredTokenException", "m"), "auth account"},
			{403, amazon("InvalidSignatureException", "Signature expired: x"), "auth account"},
			{500, amazon("InternalFailure", ""), "soft connection"},
			{500, amazon("InternalServiceErrorException", ""), "soft connection"},
			{503, amazon("ServiceUnavailable", ""), "soft connection"},
			{500, `<html>`, "doubt"}, {400, amazon("NewException", "m"), "soft message"},
		},
		api.GatewayMailgun: {
			{200, `{"id":"<1@x>","message":"Queued."}`, "sent <1@x>"}, {200, `{"message":"Queued."}`, "doubt"},
			{200, "Mailgun Magnificent API", "auth account"}, {200, "<html>", "doubt"},
			{400, gun("'to' parameter is not a valid address. please check documentation"), "policy recipient"},
			{400, gun("'from' parameter is not a valid address. please check documentation"), "auth account"},
			{400, gun("Sandbox subdomains are for test purposes only."), "auth account"},
			{403, gun("Domain x is not allowed to send: y"), "auth account"},
			{400, gun("something else"), "policy message"}, {401, "Forbidden", "auth account"},
			{402, gun("m"), "auth account"}, {404, gun("Domain not found: x"), "auth account"},
			{413, gun("too large"), "policy message"}, {429, gun("m"), "throttle account"},
			{500, gun("m"), "soft connection"}, {502, gun("m"), "soft message"}, {502, "<html>", "doubt"},
		},
		api.GatewaySparkPost: {
			{200, counts(1, 0), "sent 1"}, {200, counts(0, 1), "policy recipient"}, {200, counts(2, 0), "doubt"},
			{200, counts(0, 0), "doubt"}, {200, `{"results":{}}`, "doubt"}, {200, "<html>", "doubt"},
			{400, spark("1902"), "policy recipient"}, {400, spark("5002"), "policy recipient"},
			{422, spark("1200"), "policy message"}, {400, spark("1300"), "policy message"},
			{422, spark("1301"), "policy message"}, {422, spark("1305"), "policy message"},
			{422, spark("1400"), "policy message"}, {422, spark("1401"), "policy message"},
			{400, spark("1901"), "policy message"}, {400, spark("1910"), "policy message"},
			{422, spark("2002"), "policy message"}, {422, spark("3005"), "policy message"},
			{400, spark("7000"), "auth account"}, {400, spark("7001"), "auth account"},
			{400, spark("1303"), "auth account"}, {403, spark("1304"), "auth account"},
			{403, spark("1100"), "auth account"}, {403, spark("1601"), "auth account"},
			{401, spark(""), "auth account"}, {400, spark(""), "auth account"},
			{420, spark("2101"), "throttle account 1h0m0s"}, {420, spark("2102"), "throttle account 1h0m0s"},
			{420, spark("2105"), "throttle account 1h0m0s"}, {420, spark("2103"), "auth account"},
			{429, spark(""), "throttle account"},
			{400, spark("1502"), "soft connection"}, {500, spark("1500"), "soft connection"},
			{503, spark("1501"), "soft connection"}, {503, spark("1900"), "soft connection"},
			{400, spark("9999"), "soft message"}, {500, spark("9999"), "soft connection"}, {502, "<html>", "doubt"},
			{404, spark("1600"), "auth account"},
			{400, `{"errors":[{"message":"m","code":1902}]}`, "policy recipient"},
		},
		api.GatewayMandrill: {
			{200, one("sent", ""), "sent 1"}, {200, one("queued", ""), "sent 1"},
			{200, one("scheduled", ""), "sent 1"},
			{200, one("rejected", "hard-bounce"), "hard recipient suppress"},
			{200, one("rejected", "soft-bounce"), "soft recipient"},
			{200, one("rejected", "spam"), "policy recipient"}, {200, one("rejected", "unsub"), "policy recipient"},
			{200, one("rejected", "custom"), "policy recipient"}, {200, one("rejected", "new"), "policy recipient"},
			{200, one("invalid", ""), "policy recipient"}, {200, one("invalid", "invalid"), "policy recipient"},
			{200, one("rejected", "rule"), "policy message"},
			{200, one("rejected", "invalid-sender"), "auth account"},
			{200, one("rejected", "unsigned"), "auth account"},
			{200, one("rejected", "test-mode-limit"), "throttle account 1h0m0s"}, {200, one("new", ""), "doubt"},
			{200, `[]`, "doubt"},
			{200, `[{"email":"bob@example.org","status":"sent"}]`, "doubt"}, {200, `{}`, "doubt"},
			{500, chimp("Invalid_Key"), "auth account"}, {500, chimp("PaymentRequired"), "auth account"},
			{500, chimp("Unknown_Subaccount"), "auth account"}, {500, chimp("ValidationError"), "policy message"},
			{500, chimp("GeneralError"), "soft connection"}, {500, chimp("ServiceUnavailable"), "soft connection"},
			{500, chimp("New"), "soft connection"}, {429, chimp("GeneralError"), "throttle account"},
			{500, "<html>", "doubt"},
		},
	} {
		for _, row := range rows {
			if got := said(t, kind, row.status, row.body, "ann@example.net"); got != row.want {
				t.Errorf("%s: %d %s: %s, want %s", kind, row.status, row.body, got, row.want)
			}
		}
	}
	for _, row := range []struct {
		kind   api.GatewayType
		status int
		body   string
		want   string
	}{
		{api.GatewaySparkPost, 200, counts(1, 1), "doubt, doubt"},
		{api.GatewaySparkPost, 200, counts(2, 0), "sent 1, sent 1"},
		{api.GatewaySparkPost, 200, counts(0, 2), "policy recipient, policy recipient"},
		{api.GatewaySparkPost, 400, spark("1902"), "again, again"},
		{api.GatewayMailgun, 400, gun("'to' parameter is not a valid address."), "again, again"},
		{api.GatewayMandrill, 200, one("sent", ""), "sent 1, doubt"},
	} {
		if got := said(t, row.kind, row.status, row.body, "ann@example.net", "bob@example.net"); got != row.want {
			t.Errorf("%s: %d %s: %s, want %s", row.kind, row.status, row.body, got, row.want)
		}
	}
}
