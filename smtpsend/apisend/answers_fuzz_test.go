package apisend

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// FuzzAnswers gives any answer to each adapter. Afterwards every recipient has a result or is open. Only a
// 2xx answer is a success, or Brevo's answer to a key that was used before.
func FuzzAnswers(f *testing.F) {
	files, err := filepath.Glob("../../internal/testapi/testdata/provider-send/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var seed recorded
		if json.Unmarshal(raw, &seed) == nil {
			f.Add(seed.Response.Status, string(seed.Response.Body)+seed.Response.Raw, "")
		}
	}
	f.Add(400, `{"message":"x"}`, "ThrottlingException:http://internal/")
	f.Fuzz(func(t *testing.T, status int, body, kind string) {
		if status < 100 || status > 999 {
			return // HTTP has no such status
		}
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, gateway := range Types() {
			to := []string{"ann@example.net", "bob@example.org"}
			d := newDelivery(s, Target{Type: gateway}, smtpsend.Message{To: to})
			d.judge(&exchange{adapter: d.a, to: d.m.To, group: chunks(d.m.To, 0)[0], status: status,
				header: http.Header{"X-Amzn-Errortype": {kind}}, body: []byte(body), method: http.MethodPost})
			for _, r := range d.result.Recipients {
				open := slices.Contains(d.open, r.Address)
				if open != (r.Err == nil && r.Response == "") {
					t.Errorf("%s: %s: open %v, %+v", gateway, r.Address, open, r)
				}
				if r.Err != nil && (r.Err.Verdict == "" || r.Err.Scope == "") {
					t.Errorf("%s: %s: %+v", gateway, r.Address, r.Err)
				}
				duplicate := gateway == api.GatewayBrevo && status == http.StatusBadRequest
				if !open && r.Err == nil && status >= 300 && !duplicate {
					t.Errorf("%s: %s: sent with status %d", gateway, r.Address, status)
				}
			}
		}
	})
}
