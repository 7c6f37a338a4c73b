package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func TestJudgeLogins(t *testing.T) {
	account := func(id string) api.AccountInfo {
		return api.AccountInfo{Account: api.Account{Account: id, SMTP: &api.SMTPServer{Host: id + ".example",
			Port: 587}}}
	}
	in, late := login{answer: api.VerifyAnswer{SMTP: api.VerifyResult{Success: true}}}, login{
		err: context.DeadlineExceeded, late: true}
	shared := login{answer: api.VerifyAnswer{SMTP: api.VerifyResult{Success: true},
		Gateways: []api.GatewayVerifyResult{
			{Gateway: "main", VerifyResult: api.VerifyResult{Success: true}},
			{Gateway: "spare", VerifyResult: api.VerifyResult{Error: "535 no", Code: "EAUTH"}},
		}}}
	for _, tc := range []struct {
		name  string
		tried map[string]login
		want  []finding
	}{
		{"all let us in", map[string]login{"a": in, "b": in},
			[]finding{{"accounts", ok, "2, and every relay lets us in", ""}}},
		{"a wrong password", map[string]login{
			"a": in, "b": {answer: api.VerifyAnswer{SMTP: api.VerifyResult{Error: "535 no", Code: "EAUTH"}}}},
			[]finding{
				{"accounts", fail, "b (smtp://b.example:587): 535 no",
					"check user and password; many providers want a password made for programs"}}},
		{"a gateway of both", map[string]login{"a": shared, "b": shared}, []finding{
			{"accounts", fail, "gateway spare: 535 no",
				"check user and password; many providers want a password made for programs"}}},
		{"nothing learned", map[string]login{"a": {err: errors.New("the service went away")}, "b": in}, []finding{
			{"accounts", fail, "a (smtp://a.example:587): the service went away", ""}}},
		{"too slow", map[string]login{"a": late, "b": late}, []finding{
			{"accounts", warn, "2 of 2 relays did not answer in time: a, b", "give them longer: --patience 1m"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := judgeLogins([]api.AccountInfo{account("a"), account("b")}, []login{tc.tried["a"], tc.tried["b"]})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTryLoginsKeepsToItsTime: one relay that hangs is told from those that answer.
func TestTryLoginsKeepsToItsTime(t *testing.T) {
	answered := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req api.VerifyRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		if req.Account == "hangs" {
			<-answered
			cancel()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"smtp":{"success":true}}`))
		close(answered)
	}))
	defer s.Close()
	client := api.NewClient(s.URL, "token", &http.Client{Timeout: time.Minute})
	// The answer may still be on its way when the time is over, so only what is sure is looked at.
	tried := tryLogins(ctx, client, []api.AccountInfo{{Account: api.Account{Account: "hangs"}},
		{Account: api.Account{Account: "answers"}}})
	if len(tried) != 2 || !tried[0].late || tried[0].answer.SMTP.Success {
		t.Errorf("%+v", tried)
	}
	if !tried[1].late && !tried[1].answer.SMTP.Success {
		t.Errorf("the other: %+v", tried[1])
	}
}
