package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// notify hands in an event about a post.
func (w *world) notify(account string, e api.DigestEvent) {
	w.t.Helper()
	e.EntityType = "post"
	answer, err := w.digests.AddEvents(w.t.Context(), "", api.DigestEventsRequest{Account: account,
		Events: []api.DigestEvent{e}})
	w.must(err)
	if !answer.Events[0].Success {
		w.t.Fatalf("%+v", answer.Events[0])
	}
}

// work makes the digests that are due.
func (w *world) work() {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.digests.Run(ctx) }()
	for done := 0; done < 2; time.Sleep(5 * time.Millisecond) { // what is due now is late at the second look
		state, err := w.digests.State(ctx)
		w.must(err)
		if done++; state.Open > 0 || state.Late > 0 {
			done = 0
		}
	}
	stop()
	w.must(<-ended)
}

// newestRun returns the newest run of a recipient.
func (w *world) newestRun(account, recipient string) api.DigestRun {
	w.t.Helper()
	page, err := w.digests.Runs.List(w.t.Context(), "", api.DigestRunQuery{Account: account,
		Recipient: recipient})
	w.must(err)
	if len(page.Runs) == 0 {
		w.t.Fatalf("%s has no run", recipient)
	}
	return page.Runs[0]
}

// cadences are preferences with every field that a form has.
var cadences = map[string]api.DigestPreference{
	"immediate": {Mode: "immediate", Gap: "10m"}, "hourly": {Mode: "hourly", Minute: new(30)},
	"daily": {Mode: "daily", Hour: new(8), Minute: new(5)}, "daily at a minute": {Mode: "daily", Minute: new(5)},
	"weekly":  {Mode: "weekly", Weekdays: []string{"mon", "fri"}, Hour: new(17), Minute: new(0)},
	"monthly": {Mode: "monthly", Day: 31, Hour: new(0), Minute: new(0)},
	"cron":    {Mode: "custom", Cron: "0 9 * * 1-5"},
	"times": {Mode: "custom", Times: []api.DigestWeekTime{{Weekday: "mon", At: "08:30"},
		{Weekday: "fri", At: "16:00"}}},
	"off": {Mode: "off"},
}

// TestTheFormOfACadenceLosesNothing: who opens it and saves it changes nothing.
func TestTheFormOfACadenceLosesNothing(t *testing.T) {
	t.Parallel()
	for name, want := range cadences {
		f := url.Values{}
		setCadence(f, "p.", &want)
		in := cadenceReader{form: f}
		got := in.read("p.", "p")
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" || in.wrong != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, in.wrong, diff)
		}
	}
	in := cadenceReader{}
	quiet := []api.DigestQuiet{{From: "22:00", Until: "07:00"}, {Weekdays: []string{"fri", "sat"}, From: "20:00",
		Until: "09:00"}}
	got := in.quiet(quietText(quiet))
	if diff := cmp.Diff(quiet, got, cmpopts.EquateEmpty()); diff != "" || in.wrong != nil {
		t.Errorf("%v %s", in.wrong, diff)
	}
}

// TestKindsOfDigests are added, changed and deleted.
func TestKindsOfDigests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/digests/categories").has(t, "No category settings yet", `href="/digests/categories/new"`)
	form := url.Values{"category": {"a/b & c"}, "title.0.text": {"<i>Comments"},
		"title.1.language": {"de"}, "title.1.text": {"Kommentare"},
		"required": {"on"},
		"lane":     {"transactional"}, "preference.mode": {"weekly"}, "preference.weekdays": {"mon", "fri"},
		"preference.at": {"17:00"}, "preference.cron": {"is not asked for"}}
	p := b.submitForm("/digests/categories", form)
	p.isSafe(t, "/digests/categories")
	at := "/digests/categories/default/a%2Fb%20&%20c"
	p.has(t, "Category a/b & c added", "<i>Comments", "Kommentare", "every Monday and Friday at 17:00",
		"no</td>", "transactional", `href="`+at+`"`)
	want := api.DigestKind{Category: "a/b & c", Account: "default", Required: true, Lane: api.Transactional,
		Title: map[string]string{"en": "<i>Comments", "de": "Kommentare"}, Preference: &api.DigestPreference{
			Mode: "weekly", Weekdays: []string{"mon", "fri"}, Hour: new(17), Minute: new(0)}}
	get := func() api.DigestKindInfo {
		kind, err := w.digests.Kinds.Get(t.Context(), "", api.DigestAccount{}, "a/b & c")
		w.must(err)
		return kind
	}
	if diff := cmp.Diff(want, get().DigestKind); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if o := *w.entries()[0].Object; o != (api.AuditObject{Kind: "digestKind", ID: "a/b & c",
		Account: "default"}) {
		t.Errorf("the audit log: %+v", o)
	}
	p = b.get(at)
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, `value="Kommentare"`, `value="<i>Comments"`, `value="17:00"`, `value="fri" checked`,
		`name="required" checked`,
		"<option selected>weekly", "<option selected>transactional", "Delete the settings of category a/b & c")
	b.submitForm(at, url.Values{"version": {"1"}, "title.0.text": {"Posts"}}).has(t, "Category saved.",
		"as in the settings", "can turn it off", "Posts")
	want = api.DigestKind{Category: "a/b & c", Account: "default", Title: map[string]string{"en": "Posts"}}
	if diff := cmp.Diff(want, get().DigestKind); diff != "" {
		t.Errorf("what the form no longer has is removed (-want +got):\n%s", diff)
	}
	if p = b.post(at, url.Values{"version": {"1"}, "title.0.text": {"Old"}}); p.status != http.StatusConflict {
		t.Errorf("a change of an old version: %d", p.status)
	}
	p.has(t, "is now at version 2, not 1", `value="Old"`)
	b.submitForm(at+"/delete", nil).has(t, "were deleted", "No category settings yet")
	if p := b.post(at+"/delete", nil); p.status != http.StatusNotFound {
		t.Errorf("deleted twice: %d", p.status)
	}
}

// TestARefusedKindIsNotLost: the form comes again, with what was filled in and which field is wrong.
func TestARefusedKindIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	for name, tt := range map[string]struct {
		form url.Values
		says []string
	}{
		"what can't be read": {url.Values{"category": {"<i>c"}, "title.0.text": {"Comments"},
			"preference.mode": {"daily"},
			"preference.at":   {"noon"}}, []string{"preference.at must be a time such as 08:30",
			`value="<i>c"`, `value="noon"`, `value="Comments"`}},
		"a title twice": {url.Values{"category": {"c"}, "title.0.text": {"A"}, "title.1.language": {"en"},
			"title.1.text": {"B"}},
			[]string{"title.en is there twice"}},
		"no times": {url.Values{"category": {"c"}, "preference.mode": {"custom"},
			"preference.times": {"at dawn"}}, []string{"preference.times must be times of the week", "at dawn"}},
		"values": {url.Values{"category": {"*"}, "title.0.language": {"xxxxxxxxxx"},
			"title.0.text": {"A"}, "lane": {"fast"},
			"preference.mode": {"monthly"}, "preference.day": {"32"}, "template": {"none"}}, []string{
			"category can’t be", "title.xxxxxxxxxx must have a language", "lane must be", "preference.day must be",
			`value="32"`}},
		"template": {url.Values{"category": {"c"}, "template": {"none"}},
			[]string{"template There is no template"}},
		"mode": {url.Values{"category": {"c"}, "preference.mode": {"yearly"}},
			[]string{"preference.mode must be"}},
		"minute": {url.Values{"category": {"c"}, "preference.mode": {"hourly"}, "preference.minute": {"x"}},
			[]string{"preference.minute must be a number"}},
		"day 0": {url.Values{"category": {"c"}, "preference.mode": {"monthly"}, "preference.day": {"0"}},
			[]string{"preference.day must be a day from 1 to 31"}},
	} {
		p := b.post("/digests/categories", tt.form)
		if p.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, p.status)
		}
		p.isSafe(t, "/digests/categories")
		for _, word := range tt.says {
			if !strings.Contains(strings.ReplaceAll(p.text(), "can't", "can’t"), word) {
				t.Errorf("%s: the page does not say %q:\n%s", name, word, p.body)
			}
		}
	}
	b.get("/digests/categories").has(t, "No category settings yet")
}

// TestRecipientOfDigests: what waits, when it is mailed, and the form that changes it.
func TestRecipientOfDigests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.digests.Kinds.Create(t.Context(), "", api.DigestKind{Category: "comment", Required: true,
		Title: map[string]string{"en": "Comments <i>"}, Preference: &api.DigestPreference{Mode: "hourly"}})
	w.must(err)
	for _, actor := range []string{"Ben", "<i>Cleo", "Ben"} {
		w.notify("", api.DigestEvent{Recipient: "u/1 <i>", Email: "ann@example.com", Name: "Ann",
			TZ:       "Europe/Zurich",
			Category: "comment", EntityID: "7", Title: "My <b>holidays", URL: "https://example.com/7",
			Actor: &api.DigestActor{ID: actor, Name: actor}})
	}
	w.notify("", api.DigestEvent{Recipient: "u/1 <i>", Category: "follow", EntityID: "1", Priority: "urgent"})
	w.notify("", api.DigestEvent{Recipient: "u2", Category: "follow", EntityID: "1"})
	b := w.operator()
	at := "/digests/recipients/default/u%2F1%20%3Ci%3E"
	p := b.get("/digests/recipients")
	p.has(t, "u/1 <i>", "ann@example.com", "Europe/Zurich", `href="`+at+`"`, "u2", ">4</td>")
	p.isSafe(t, "/digests/recipients")
	p.eachFieldHasALabel(t, "/digests/recipients")
	b.get("/digests/recipients?q=ANN@").has(t, "u/1 <i>", `value="ANN@"`)
	b.get("/digests/recipients?q=ANN@").lacks(t, ">u2<")
	b.get("/digests/recipients?q=zed").has(t, "No recipient matches")
	b.get("/digests/recipients/default/u2").has(t, "There is no address")

	p = b.get(at)
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, "4 pending events", "My <b>holidays", "post 7", "Ben, <i>Cleo", "urgent", "Comments <i>",
		"can’t be turned off",
		"every hour at minute 0", "every day at 08:00", "by default", "all others", "Send now", at+"/preview")
	times := regexp.MustCompile(`(?s)<h2>Schedule.*?</table>`).FindString(p.body)
	if n := strings.Count(times, "<time"); n != 9 {
		t.Errorf("%d times of three categories:\n%s", n, times)
	}
	form := url.Values{"version": {"1"}, "email": {"ann@example.org"}, "name": {"Ann"}, "locale": {"de"},
		"tz": {"Europe/Vienna"}, "quiet": {"22:00-07:00\r\nfri,sat 20:00-09:00\r\n"},
		"pausedUntil":  {"2090-01-31T08:30"},
		"c.0.category": {"comment"}, "c.0.mode": {"weekly"}, "c.0.weekdays": {"mon"}, "c.0.at": {"08:30"},
		"c.1.category": {"follow"}, "c.2.category": {"*"}, "c.2.mode": {"off"}, "c.3.category": {"like"},
		"c.3.mode": {"custom"}, "c.3.times": {"mon 08:30, fri 16:00"}}
	p = b.submitForm(at, form)
	p.has(t, "Recipient saved.", "ann@example.org", "every Monday at 08:30", "chosen by the reader",
		"every Monday at 08:30 and Friday at 16:00", "never", "22:00 to 07:00", "from fri, sat on", "until <time",
		`value="2090-01-31T08:30"`, "22:00-07:00\nfri,sat 20:00-09:00")
	one, err := w.digests.Get(t.Context(), "", api.DigestAccount{}, "u/1 <i>")
	w.must(err)
	if diff := cmp.Diff(api.DigestPreferences{
		"comment": {Mode: "weekly", Weekdays: []string{"mon"}, Hour: new(8), Minute: new(30)},
		"*":       {Mode: "off"}, "like": cadences["times"]}, one.Preferences); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if one.Locale != "de" || one.TZ != "Europe/Vienna" ||
		!one.PausedUntil.Equal(time.Date(2090, 1, 31, 8, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v", one)
	}
	form = url.Values{"version": {"2"}, "email": {"ann@example.org"}, "c.0.category": {"comment"},
		"c.1.category": {"like"}, "c.2.category": {"*"}}
	b.submitForm(at, form).lacks(t, "chosen by the reader", "until <time", "22:00 to 07:00")
	if p := b.post(at, form); p.status != http.StatusConflict {
		t.Errorf("a change of an old version: %d", p.status)
	}
	for _, e := range w.entries()[:2] {
		if e.Object.Kind != "digestRecipient" || e.Object.Account != "default" ||
			strings.Contains(fmt.Sprint(e.Changes), "ann@") {
			t.Errorf("the audit log: %+v", e)
		}
	}
	b.submitForm(at+"/delete", nil).has(t, "Recipient deleted", "u2")
	b.submitForm("/digests/recipients/default/u2/erase", nil).has(t, `class="flash bad"`) // it has no address
}

// TestARefusedRecipientIsNotLost: the form comes again, with what was filled in and which field is wrong.
func TestARefusedRecipientIsNotLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.notify("", api.DigestEvent{Recipient: "u1", Email: "ann@example.com", Category: "comment", EntityID: "7"})
	b, at := w.operator(), "/digests/recipients/default/u1"
	for name, tt := range map[string]struct {
		form url.Values
		says []string
	}{
		"what can't be read": {url.Values{"version": {"x"}, "email": {"<i>nobody"}, "quiet": {"at night"},
			"pausedUntil": {"soon"}, "c.0.category": {"comment"}, "c.0.mode": {"daily"}, "c.0.at": {"8am"},
			"c.1.category": {"*"}, "c.2.category": {"<i>new"}, "c.2.mode": {"off"}}, []string{
			"preferences.comment.at must be a time", "quiet must have lines such as", "pausedUntil must be a date",
			"version must be a number", `value="<i>nobody"`, ">at night</textarea>", `value="8am"`, `value="<i>new"`}},
		"values": {url.Values{"version": {"1"}, "email": {"nobody"}, "tz": {"Mars"}, "locale": {"??"},
			"c.0.category": {"comment"}, "c.0.mode": {"custom"}, "c.0.cron": {"61 * * * *"}, "c.1.category": {"*"},
			"c.1.mode": {"immediate"}, "c.1.gap": {"often"}, "quiet": {"22:00-07:00\n25:00-07:00"}}, []string{
			"email is not a valid", "tz must be a time zone", "locale must be a language", "preferences.comment.cron",
			"preferences.*.gap must be a duration", "quiet[1].from", `value="61 * * * *"`, `value="often"`}},
		"no category": {url.Values{"version": {"1"}, "c.0.category": {"comment"}, "c.1.category": {"*"},
			"c.2.mode": {"daily"}}, []string{"category is required"}},
		"twice": {url.Values{"version": {"1"}, "c.0.category": {"comment"}, "c.1.category": {"*"},
			"c.2.category": {"comment"}, "c.2.mode": {"off"}}, []string{"preferences.comment is there twice",
			`name="c.2.category" value="comment"`}},
	} {
		p := b.post(at, tt.form)
		if p.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, p.status)
		}
		p.isSafe(t, at)
		p.eachFieldHasALabel(t, at)
		p.has(t, append(tt.says, `<details open><summary id="change">`)...)
	}
	if e := w.entries()[0]; e.Result != api.AuditRefused {
		t.Errorf("the audit log: %+v", e)
	}
}

// TestPreviewOfADigest shows the mail in a frame that runs nothing, and sends nothing.
func TestPreviewOfADigest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b, at := w.operator(), "/digests/recipients/default/u1"
	w.notify("", api.DigestEvent{Recipient: "u1", Email: "ann@example.com", Category: "comment", EntityID: "7",
		Title: "My <b>holidays", Actor: &api.DigestActor{ID: "b", Name: "Ben"}})
	p := b.get(at + "/preview")
	p.isSafe(t, at+"/preview")
	p.has(t, "The next email is due", "Ben: My <b>holidays", `src="`+at+`/preview/mail" sandbox`,
		"Comment: My <b>holidays – Ben")
	frame := b.get(at + "/preview/mail")
	policy := frame.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "sandbox; ") || !strings.Contains(frame.body, "My &lt;b&gt;holidays") {
		t.Errorf("%s\n%s", policy, frame.body)
	}
	if list, err := w.outbox.Reader.List(t.Context(), api.OutboxQuery{}); err != nil || list.Total != 0 {
		t.Errorf("a preview was mailed: %+v %v", list, err)
	}
	b.submitForm(at+"/send", nil)
	w.work()
	b.get(at+"/preview").has(t, "No events are pending, so no email is due")
	b.submitForm(at+"/send", nil).has(t, "Nothing was sent: no events are pending.")
}

// TestRunsOfDigests: a mail that was asked for is a run, which leads to its message and back.
func TestRunsOfDigests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/digests/runs").has(t, "No runs yet")
	w.notify("", api.DigestEvent{Recipient: "u1", Email: "ann@example.com", Category: "comment", EntityID: "7",
		Title: "My <b>holidays", Actor: &api.DigestActor{ID: "b", Name: "<i>Ben"}})
	b.submitForm("/digests/recipients/default/u1/send", nil).has(t,
		"This run contains the pending events", "data-live=")
	w.work()
	run := w.newestRun("", "u1")
	at := "/digests/runs/" + run.Run
	p := b.get(at)
	p.isSafe(t, at)
	p.has(t, "submitted", "1 event", "My <b>holidays", "<i>Ben", `href="/messages/`+run.QueueID+`"`,
		`href="/digests/recipients/default/u1"`)
	p.lacks(t, "Run again")
	b.get("/messages/"+run.QueueID).has(t, `<dt>Digest</dt><dd><a href="`+at+`"`)
	b.submitForm(at+"/retry", nil).has(t, "only a failed run", `class="flash bad"`)

	all := "/digests/runs?recipient=u1&state=submitted&after=2020-01-01T00:00"
	p = b.get(all)
	p.isSafe(t, all)
	p.eachFieldHasALabel(t, all)
	p.has(t, run.Period, run.QueueID, `value="u1"`, "<option selected>submitted")
	for _, other := range []string{"?recipient=u2", "?state=failed", "?before=2020-01-01T00:00"} {
		b.get("/digests/runs"+other).has(t, "No run matches")
	}
	b.get("/digests/recipients/default/u1").has(t, "No pending events", at,
		"/digests/runs?account=default&recipient=u1")
	b.get("/digests").has(t, "1 schedule", "on time", at, "Pause digests")
	b.get("/digests?part=live").lacks(t, "<html")
}

// TestAFailedRunIsRunAgain by a button, which is there only if that is possible.
func TestAFailedRunIsRunAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	w.refusal = fault.New(fault.Unprocessable, "", "the <i>template does not work")
	w.notify("", api.DigestEvent{Recipient: "u1", Email: "ann@example.com", Category: "comment", EntityID: "7"})
	b.submitForm("/digests/recipients/default/u1/send", nil)
	w.work()
	at := "/digests/runs/" + w.newestRun("", "u1").Run
	p := b.get(at)
	p.isSafe(t, at)
	p.has(t, "failed", "the <i>template does not work", "1 attempt", "Run again")
	b.get("/digests").has(t, "Recent failures", at)
	w.person("vic", api.RoleViewer).get(at).lacks(t, "Run again")
	w.refusal = nil
	b.submitForm(at+"/retry", nil).has(t, "Run restarted.")
	w.work()
	if run := w.newestRun("", "u1"); run.State != api.DigestSubmitted {
		t.Errorf("%+v", run)
	}
	if e := w.entries()[0]; e.Object.Kind != "digestRun" || !strings.HasSuffix(at, e.Object.ID) {
		t.Errorf("the audit log: %+v", e)
	}
	for state, says := range map[string]string{"returned": "The next run includes its events",
		"mailed": "The relay refused"} {
		run := api.DigestRun{State: api.DigestFailed, Reason: "x"}
		if state == "mailed" {
			run.QueueID, run.Groups = "Q1", []api.DigestGroup{{Category: "c"}}
		}
		p := w.view(at, "digestrun", digestRunView{run}, false)
		p.has(t, says)
		p.lacks(t, "Run again")
	}
}

// TestDigestsArePausedOnTheirPage, by those who may pause all.
func TestDigestsArePausedOnTheirPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("acme")
	b := w.operator()
	back := url.Values{"back": {"/digests"}}
	b.submitForm("/queues/digests/pause", back).has(t, "Digests are paused. Postroom still accepts events", "Resume digests")
	own := w.person("olga", api.RoleOperator, "acme")
	p := own.get("/digests")
	p.has(t, "Digests are paused")
	p.lacks(t, "Resume digests", "late by", "is late", "schedule")
	if p := own.post("/queues/digests/resume", nil); p.status != http.StatusForbidden {
		t.Errorf("resumed by somebody of one account: %d", p.status)
	}
	b.submitForm("/queues/digests/resume", back).has(t, "Digests resumed", "Pause digests")
}

// TestWrongFiltersOfDigestsAreNamed, and kept.
func TestWrongFiltersOfDigestsAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	for path, says := range map[string][]string{
		"/digests/runs?state=gone&after=soon&before=late&recipient=u9": {"state is not a state",
			"after is not a date", "before is not a date", `value="u9"`},
		"/digests/runs?cursor=x":                            {"cursor isn't a cursor from an earlier page"},
		"/digests/runs?account=nobody":                      {"role=\"alert\"", `value="nobody"`},
		"/digests/recipients?account=nobody&q=ann":          {"role=\"alert\"", `value="nobody"`, `value="ann"`},
		"/digests?account=%3Ci%3E":                          {"role=\"alert\"", `value="<i>"`},
		"/digests/runs/%3Ci%3E":                             {"Nothing here"},
		"/digests/recipients/default/none":                  {"Nothing here"},
		"/digests/recipients/default/none/preview":          {"Nothing here"},
		"/digests/categories/default/none":                  {"Nothing here"},
		"/digests/categories/nobody/none":                   {"Nothing here"},
		"/digests/recipients?q=" + strings.Repeat("x", 300): {"No recipient matches"},
	} {
		p := b.get(path)
		if p.status >= 500 {
			t.Errorf("%s: %d", path, p.status)
		}
		p.isSafe(t, path)
		p.has(t, says...)
	}
}

// TestDigestsOfOthersAreNotShown to persons of another account, viewers change nothing, and without the right
// nobody sees them.
func TestDigestsOfOthersAreNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("acme")
	w.account("other")
	for account, address := range map[string]string{"acme": "ann@example.com", "other": "ben@example.com"} {
		w.notify(account, api.DigestEvent{Recipient: "u1", Email: address, Category: account,
			EntityID: account + "-7", Priority: "urgent"})
		_, err := w.digests.Kinds.Create(t.Context(), "", api.DigestKind{Category: account, Account: account})
		w.must(err)
	}
	w.work()
	run := w.newestRun("acme", "u1")
	w.notify("acme", api.DigestEvent{Recipient: "u1", Category: "acme", EntityID: "acme-8"})
	at, kind := "/digests/recipients/acme/u1", "/digests/categories/acme/acme"
	pages := []string{at, at + "/preview", at + "/preview/mail", kind, "/digests/runs/" + run.Run}
	changes := []string{at, at + "/send", at + "/delete", at + "/erase", kind, kind + "/delete",
		"/digests/runs/" + run.Run + "/retry"}
	own, viewer := w.person("olga", api.RoleOperator, "acme"), w.person("vic", api.RoleViewer, "acme")
	stranger := w.person("sam", api.RoleOperator, "other")
	for _, path := range append(slices.Clone(pages), "/digests", "/digests/recipients", "/digests/categories",
		"/digests/runs") {
		for name, b := range map[string]*browser{"operator": own, "viewer": viewer} {
			p := b.get(path)
			if p.status != http.StatusOK || strings.Contains(p.body, "other-7") || strings.Contains(p.body, "ben@") {
				t.Errorf("%s of the own %s: %d %s", path, name, p.status, p.body)
			}
		}
		if strings.Contains(viewer.get(path).body, `method="post" action="/digests`) {
			t.Errorf("%s has buttons for a viewer", path)
		}
	}
	for _, path := range append(slices.Clone(pages), "/digests?account=acme", "/digests/recipients?account=acme",
		"/digests/categories?account=acme", "/digests/runs?account=acme",
		"/digests/runs?account=acme&recipient=u1") {
		p := stranger.get(path)
		if p.status != http.StatusNotFound || strings.Contains(p.body, "ann@") ||
			strings.Contains(p.body, run.Run+`"`) {
			t.Errorf("%s of another account: %d %s", path, p.status, p.body)
		}
	}
	stranger.get("/digests/recipients").lacks(t, "ann@")
	stranger.get("/digests/categories").lacks(t, ">acme<")
	stranger.get("/digests/runs").lacks(t, run.Run)
	stranger.get("/digests").lacks(t, run.Run)
	form := url.Values{"version": {"1"}, "email": {"evil@example.com"}, "account": {"acme"},
		"category": {"evil"}}
	for _, path := range append(slices.Clone(changes), "/digests/categories") {
		if p := viewer.post(path, form); p.status != http.StatusForbidden {
			t.Errorf("POST %s of a viewer: %d", path, p.status)
		}
		if p := stranger.post(path, form); p.status != http.StatusNotFound {
			t.Errorf("POST %s of another account: %d", path, p.status)
		}
	}
	one, err := w.digests.Get(t.Context(), "acme", api.DigestAccount{}, "u1")
	w.must(err)
	if one.Email != "ann@example.com" || one.Waiting["acme"] != 1 {
		t.Errorf("changed by another account: %+v", one)
	}
	kinds, err := w.digests.Kinds.Page(t.Context(), "", api.DigestKindQuery{})
	w.must(err)
	if kinds.Total != 2 {
		t.Errorf("%+v", kinds)
	}
	token, err := w.access.Create(t.Context(), api.TokenRequest{Description: "x",
		Scopes: []api.Scope{api.ScopeSend}}, time.Now())
	w.must(err)
	program := w.program(token.Token)
	for _, path := range append(slices.Clone(pages), "/digests", "/digests/categories/new") {
		if p := program.get(path); p.status != http.StatusForbidden {
			t.Errorf("%s with the scope send: %d", path, p.status)
		}
		if p := w.browser().get(path); p.status != http.StatusSeeOther || !strings.HasPrefix(p.to(), "/login") {
			t.Errorf("%s without a login: %d", path, p.status)
		}
	}
}
