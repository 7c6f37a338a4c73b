package apisend

import (
	"testing"

	"github.com/postroom/postroom/api"
)

func TestResendAnswers(t *testing.T) {
	of := func(name, text string) string {
		return `{"statusCode":1,"name":"` + name + `","message":"` + text + `"}`
	}
	for name, row := range map[string]saying{
		"sent":         {200, `{"id":"m"}`, "sent m, sent m"},
		"without id":   {200, `{}`, "doubt, doubt"},
		"null":         {200, `null`, "doubt, doubt"},
		"key":          {401, of("validation_error", "API key is invalid"), "auth account, auth account"},
		"a key as 400": {400, of("validation_error", "API key is invalid"), "auth account, auth account"},
		"no key":       {401, of("missing_api_key", ""), "auth account, auth account"},
		"invalid key":  {403, of("invalid_api_key", ""), "auth account, auth account"},
		"unverified": {403, of("validation_error", "The a.example domain is not verified."),
			"auth account, auth account"},
		"testing": {403, of("validation_error", "You can only send testing emails to"),
			"auth account, auth account"},
		"to": {422, of("validation_error", "Invalid `to` field."),
			"policy recipient, policy recipient"},
		"cc": {422, of("validation_error", "Invalid `cc` field: bob@b.example"),
			"again, policy recipient"},
		"bcc": {422, of("validation_error", "Invalid `bcc` field"),
			"policy recipient, policy recipient"},
		"from":         {422, of("validation_error", "Invalid `from` field."), "auth account, auth account"},
		"from address": {422, of("invalid_from_address", ""), "auth account, auth account"},
		"attachment":   {422, of("invalid_attachment", ""), "policy message, policy message"},
		"missing": {422, of("missing_required_field", "Missing `subject`"),
			"policy message, policy message"},
		"another field": {422, of("validation_error", "Invalid `headers` field."),
			"policy message, policy message"},
		"rate": {429, of("rate_limit_exceeded", ""), "throttle account, throttle account"},
		"day":  {429, of("daily_quota_exceeded", ""), "throttle account 1h0m0s, throttle account 1h0m0s"},
		"month": {429, of("monthly_quota_exceeded", ""),
			"throttle account 1h0m0s, throttle account 1h0m0s"},
		"security":       {451, of("security_error", ""), "policy message, policy message"},
		"in flight":      {409, of("concurrent_idempotent_requests", ""), "doubt, doubt"},
		"other bytes":    {409, of("invalid_idempotent_request", ""), "doubt, doubt"},
		"application":    {500, of("application_error", ""), "soft connection, soft connection"},
		"internal":       {500, of("internal_server_error", ""), "soft connection, soft connection"},
		"500 of a proxy": {500, `<html>`, "doubt, doubt"},
		"unknown":        {422, of("new_error", ""), "soft message, soft message"},
		"451 of others":  {451, of("legal", ""), "soft message, soft message"},
	} {
		if got := said(t, api.GatewayResend, row.status, row.body, "ann@b.example",
			"bob@b.example"); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	if x := (&exchange{status: 401, body: []byte(of("restricted_api_key", ""))}); !resend.fine(x) {
		t.Error("a key that may only send is not good")
	}
}
