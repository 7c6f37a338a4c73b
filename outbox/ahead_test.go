package outbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestScheduledTooFarAhead: what may be scheduled for a year is refused a second later, by the field that
// names the time, in each way to name one.
func TestScheduledTooFarAhead(t *testing.T) {
	t.Parallel()
	const most = 8760 * time.Hour
	b := setup(t, Options{MaxAhead: most})
	latest, beyond := storyBegin.Add(most), storyBegin.Add(most+time.Second)
	names := func(err error) string {
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Invalid && len(f.Fields) == 1 {
			return f.Fields[0].Key + " " + f.Fields[0].Message
		}
		return fmt.Sprint(err)
	}
	want := "sendAt must not be after " + latest.Format(time.RFC3339) + " (message.maxAhead)"
	submit := func(req api.SubmitRequest) api.SubmitAnswer {
		t.Helper()
		a, err := b.Intake.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	raw := func(at time.Time) api.SubmitRequest {
		return api.SubmitRequest{To: for1("ann@x.test"), Raw: []byte("From: app@example.com\r\nX-EE-Send-At: " +
			at.Format(time.RFC3339) + "\r\n\r\nHello\r\n")}
	}
	for name, req := range map[string]api.SubmitRequest{
		"single":  {To: for1("ann@x.test"), Text: "x", SendAt: &beyond},
		"dry run": {To: for1("ann@x.test"), Text: "x", SendAt: &beyond, DryRun: true},
		"raw":     raw(beyond),
		"all of mail merge": {Text: "x", SendAt: &beyond,
			MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "ann@x.test"}}}},
	} {
		if _, err := b.Intake.Submit(t.Context(), req); names(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Intake.SubmitSMTP(t.Context(), raw(beyond)); names(err) != want {
		t.Errorf("over SMTP: %v", err)
	}
	merge := submit(api.SubmitRequest{Text: "x", MailMerge: []api.MailMergeEntry{
		{To: api.Address{Address: "ann@x.test"}, SendAt: &beyond},
		{To: api.Address{Address: "ben@x.test"}, SendAt: &latest}}}).MailMerge
	if f := merge[0].Fields; len(f) != 1 || f[0].Key != "sendAt" || merge[0].StatusCode != 400 ||
		!merge[1].Success {
		t.Errorf("entries of a mail merge: %+v", merge)
	}
	submit(raw(latest))
	later := submit(api.SubmitRequest{To: for1("ann@x.test"), Text: "x", SendAt: &latest})
	if _, err := b.Operations.Patch(t.Context(), later.QueueID,
		api.OutboxPatch{SendAt: &beyond}); names(err) != want {
		t.Errorf("reschedule: %v", err)
	}
	b.clock.Advance(time.Minute)
	if _, err := b.Operations.Patch(t.Context(), later.QueueID, api.OutboxPatch{SendAt: &beyond}); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}
