package apisend

import (
	"testing"

	"github.com/postroom/postroom/api"
)

func TestMailjetAnswers(t *testing.T) {
	failed := func(status, code, about string) string {
		return `{"Messages":[{"Status":"error","Errors":[{"ErrorCode":"` + code + `","StatusCode":` + status +
			`,"ErrorMessage":"\"ann@b.example\" is wrong","ErrorRelatedTo":["` + about + `"]}]}]}`
	}
	for name, row := range map[string]saying{
		"sent": {200,
			`{"Messages":[{"Status":"success","To":[{"Email":"ANN@b.example","MessageID":9007199254740993}],` +
				`"Cc":[{"Email":"bob@b.example","MessageID":0}]}]}`, "sent 9007199254740993, sent "},
		"one is missing": {200,
			`{"Messages":[{"Status":"success","To":[{"Email":"ann@b.example","MessageID":1}]}]}`,
			"sent 1, doubt"},
		"two items":    {200, `{"Messages":[{"Status":"success"},{"Status":"success"}]}`, "doubt, doubt"},
		"no items":     {200, `{"Messages":[]}`, "doubt, doubt"},
		"another word": {200, `{"Messages":[{"Status":"queued"}]}`, "doubt, doubt"},
		"to":           {400, failed("400", "mj-0013", "To[0].Email"), "policy recipient, again"},
		"a bare cc":    {400, failed("400", "mj-0013", "Cc"), "policy recipient, again"},
		"from":         {403, failed("403", "send-0008", "From"), "auth account, auth account"},
		"sender":       {400, failed("400", "send-0008", "Sender.Email"), "auth account, auth account"},
		"5xx":          {400, failed("500", "mj-0001", ""), "soft message, soft message"},
		"no content":   {400, failed("400", "send-0003", "HTMLPart"), "policy message, policy message"},
		"custom":       {400, failed("400", "mj-0004", "CustomID"), "policy message, policy message"},
		"malformed": {400, `{"ErrorCode":"mj-0002","ErrorMessage":"Malformed JSON"}`,
			"policy message, policy message"},
		"key": {401, ``, "auth account, auth account"},
		"a said key": {401, `{"ErrorMessage":"API key authentication/authorization failure."}`,
			"auth account, auth account"},
		"quota": {403, `{"ErrorMessage":"Your account quota is reached."}`,
			"throttle account 1h0m0s, throttle account 1h0m0s"},
		"429 as HTML": {429, `Rate limit exceeded`, "throttle account, throttle account"},
		"empty 500":   {500, ``, "doubt, doubt"},
	} {
		if got := said(t, api.GatewayMailjet, row.status, row.body, "ann@b.example",
			"bob@b.example"); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
