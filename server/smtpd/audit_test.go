package smtpd_test

import (
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
)

// TestLoginsAreInTheAuditLog: folded, and with who it was where the token is known.
func TestLoginsAreInTheAuditLog(t *testing.T) {
	log := auditLog(t, testredis.New(t))
	w := setup(t, settings{audit: log})
	for _, login := range []struct{ token, want string }{{token, "235 .*"}, {token, "235 .*"}, {"wrong",
		"535 .*"}} {
		c := w.connect()
		c.say("EHLO x", "(?s)250.*")
		c.say("AUTH PLAIN "+plain("", login.token), login.want)
	}
	log.Flush(t.Context())
	page, err := log.List(t.Context(), api.AuditQuery{})
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	for _, e := range page.Entries {
		switch {
		case e.Result == api.AuditDone && e.Who.Kind == "smtp" && e.Count == 2 && e.Who.Address == "127.0.0.1":
		case e.Result == api.AuditRefused && e.Who.Kind == "anonymous" && e.Count == 1 && e.Reason != "":
		default:
			t.Errorf("%+v", e)
		}
	}
}
