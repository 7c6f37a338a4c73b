package apisend

import (
	"testing"

	"github.com/postroom/postroom/api"
)

func TestPostmarkAnswers(t *testing.T) {
	for name, row := range map[string]saying{
		"sent": {200, `{"ErrorCode":0,"MessageID":"m","Message":"OK"}`, "sent m, sent m"},
		"delayed": {200, `{"MessageID":"m","Message":"Message accepted, but delivery may be delayed."}`,
			"sent m, sent m"},
		"without id": {200, `{"ErrorCode":0}`, "doubt, doubt"},
		"null":       {200, `null`, "doubt, doubt"},
		"some inactive": {200,
			`{"ErrorCode":0,"MessageID":"m","Message":"Message OK, but will not deliver to these ` +
				`inactive addresses: bob@b.example, x@b.example. Inactive"}`, "sent m, hard recipient suppress"},
		"inactive": {422,
			`{"ErrorCode":406,"Message":"Found inactive addresses: ann@b.example. Inactive recipients"}`,
			"hard recipient suppress, again"},
		"inactive unsaid": {422, `{"ErrorCode":406,"Message":"no"}`, "policy recipient, policy recipient"},
		"to": {422,
			`{"ErrorCode":300,"Message":"Error parsing 'To': Illegal email address 'ann@b.example'."}`,
			"policy recipient, again"},
		"bcc": {422, `{"ErrorCode":300,"Message":"Invalid 'Bcc' address."}`,
			"policy recipient, policy recipient"},
		"from": {422, `{"ErrorCode":300,"Message":"Invalid 'From' address"}`,
			"auth account, auth account"},
		"300":            {422, `{"ErrorCode":300,"Message":"no body"}`, "policy message, policy message"},
		"402":            {422, `{"ErrorCode":402}`, "policy message, policy message"},
		"403":            {422, `{"ErrorCode":403}`, "policy message, policy message"},
		"409":            {422, `{"ErrorCode":409}`, "policy message, policy message"},
		"410":            {422, `{"ErrorCode":410}`, "policy message, policy message"},
		"411":            {422, `{"ErrorCode":411}`, "policy message, policy message"},
		"400":            {422, `{"ErrorCode":400}`, "auth account, auth account"},
		"401":            {422, `{"ErrorCode":401}`, "auth account, auth account"},
		"405":            {422, `{"ErrorCode":405}`, "auth account, auth account"},
		"412":            {422, `{"ErrorCode":412}`, "auth account, auth account"},
		"413":            {422, `{"ErrorCode":413}`, "auth account, auth account"},
		"stream":         {422, `{"ErrorCode":1235}`, "auth account, auth account"},
		"key":            {401, `{"ErrorCode":10}`, "auth account, auth account"},
		"maintenance":    {503, `{"ErrorCode":100}`, "soft connection, soft connection"},
		"429":            {422, `{"ErrorCode":429}`, "throttle account, throttle account"},
		"429 status":     {429, `<html>`, "throttle account, throttle account"},
		"unknown":        {422, `{"ErrorCode":999}`, "soft message, soft message"},
		"500":            {500, `{"ErrorCode":999}`, "soft connection, soft connection"},
		"500 of a proxy": {500, `<html>`, "doubt, doubt"},
	} {
		if got := said(t, api.GatewayPostmark, row.status, row.body, "Ann@b.example",
			"bob@b.example"); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
