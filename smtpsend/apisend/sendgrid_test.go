package apisend_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/apisend"
)

func TestSendGridFixtures(t *testing.T) {
	t.Parallel()
	checkFixtures(t, apisend.Target{Type: api.GatewaySendGrid, ID: "gw", Key: "SG.example"}, func(map[string]any) {})
}

func TestSendGridAnswers(t *testing.T) {
	t.Parallel()
	failed := func(field, text string) string {
		return `{"errors":[{"message":"` + text + `","field":"` + field + `","help":null}]}`
	}
	checkAnswers(t, target(api.GatewaySendGrid, ""), []answered{
		{202, "", "sent", 0},
		{200, "", "doubt", 0}, // only a sandbox answers so
		{202, "<html>", "doubt", 0},
		{400, failed("personalizations.0.to.0.email", "Does not contain a valid address."), "policy recipient", 0},
		{400, failed("personalizations.0.to.7.email", "Does not contain a valid address."), "policy message", 0},
		{400, failed("personalizations.9.to.0.email", "Does not contain a valid address."), "policy message", 0},
		{400, failed("from.email", "The from email does not contain a valid address."), "auth account", 0},
		{400, failed("content.0.value", "The content value must be a string"), "policy message", 0},
		{400, `{"errors":[{"message":"a","field":"personalizations.0.to.0.email"},{"message":"b","field":"subject"}]}`,
			"policy message", 0},
		{400, `{"errors":[{"message":"b","field":"subject"},{"message":"a","field":"from"}]}`, "auth account", 0},
		{401, failed("", "Maximum credits exceeded"), "throttle account", time.Hour},
		{403, failed("", "Maximum credits exceeded"), "throttle account", time.Hour},
		{401, failed("", "The provided authorization grant is invalid, expired, or revoked"), "auth account", 0},
		{403, failed("from", "The from address does not match a verified Sender Identity."), "auth account", 0},
		{403, failed("", "access forbidden"), "auth account", 0},
		{403, failed("", "You sent too many bad requests"), "throttle connection", time.Minute},
		{413, failed("", "The JSON payload you have included in your request is too large."), "policy message", 0},
		{429, failed("", "too many requests"), "throttle account", 0},
		{500, failed("", "internal error"), "soft connection", 0},
		{500, "<html>", "doubt", 0},
		{503, failed("", "unavailable"), "soft connection", 0},
		{418, failed("", "a new word"), "soft message", 0},
	})
}
