package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// subjects lists the subjects of the messages on a page, in order.
func (p page) subjects() []string {
	var out []string
	for _, m := range regexp.MustCompile(`<a href="/messages/[0-9A-Z]{26}">([^<]*)</a>`).FindAllStringSubmatch(
		p.body, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestOutboxShowsMessages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["busy@example.net"] = "451 4.3.2 Come back later"
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	busy := w.submit(api.SubmitRequest{Subject: "to busy", To: api.Addresses{{Address: "busy@example.net"}}})
	nobody := w.submit(api.SubmitRequest{Subject: "to nobody", To: api.Addresses{
		{Address: "nobody@example.net"}}})
	w.deliver(busy)
	w.deliver(nobody)
	w.later(api.SubmitRequest{Subject: "bulk one", Lane: api.Bulk, Tags: []string{"news"}, To: api.Addresses{
		{Address: "a@example.net"}, {Address: "b@example.net"}}})
	w.submit(api.SubmitRequest{Subject: "waits"})

	b := w.operator()
	p := b.get("/outbox")
	if diff := cmp.Diff([]string{"to busy", "to nobody", "bulk one", "waits"}, p.subjects()); diff != "" {
		t.Errorf("oldest first (-want +got):\n%s", diff)
	}
	p.has(t, busy, "451 4.3.2 Come back later", "550 5.1.1 No such user", "1 / 10", "(2 recipients)", "#news",
		"shop@example.com",
		"1–4 of <strong>4 messages</strong>", "4</span> <span class=\"l\">in the outbox", "Sending", "1.2.3")
	p.has(t, `<time datetime="`, `data-past="due"><span>in `, " UTC</small>")

	for query, want := range map[string][]string{
		"state=failed":                            {"to nobody"},
		"state=delayed":                           {"to busy"},
		"state=scheduled":                         {"bulk one"},
		"lane=bulk":                               {"bulk one"},
		"tag=news":                                {"bulk one"},
		"search=NOBODY":                           {"to nobody"},
		"account=default&state=waiting":           {"waits"},
		"account=nobody":                          nil,
		"before=2020-01-01T00:00":                 nil,
		"after=2020-01-01T00:00&search=one":       {"bulk one"},
		"after=2020-01-01&lane=bulk&state=failed": nil,
		"page=2":                                  nil,
	} {
		if diff := cmp.Diff(want, b.get("/outbox?"+query).subjects()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	b.get("/outbox?account=nobody").has(t, "No messages match.", "Clear")
}

func TestWrongFiltersAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	p := b.get("/outbox?state=lost&lane=fast&after=yesterday&search=" + strings.Repeat("x", 300))
	if p.status != http.StatusBadRequest {
		t.Errorf("status %d", p.status)
	}
	p.has(t, "is not a state", "neither transactional nor bulk", "not a date and time", "longer than 256")
}

func TestOutboxHasPages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range rowsPerPage + 3 {
		w.later(api.SubmitRequest{Subject: fmt.Sprintf("number %d", i)})
	}
	b := w.operator()
	p := b.get("/outbox?state=scheduled")
	p.has(t, "1–50 of <strong>53 messages</strong>", "Page 1 of 2", `href="/outbox?page=2&state=scheduled"`)
	p = b.get("/outbox?page=2&state=scheduled")
	p.has(t, "51–53 of <strong>53 messages</strong>", "number 52", `href="/outbox?state=scheduled"`)
	if n := len(p.subjects()); n != 3 {
		t.Errorf("the second page has %d messages", n)
	}
	b.get("/outbox?page=9").has(t, "There is no page 9", `href="/outbox?page=2"`)
}

func TestPartsAreForTheScript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.later(api.SubmitRequest{Subject: "in the rows"})
	b := w.operator()
	rows := b.get("/outbox?part=rows")
	rows.has(t, "in the rows", "1 message")
	rows.lacks(t, "<html", "Pause sending")
	counts := b.get("/outbox?part=counts")
	counts.has(t, "Pause sending", "delayed")
	counts.lacks(t, "<html", "in the rows")
	if p := b.get("/outbox?part=nothing"); !strings.Contains(p.body, "<html") {
		t.Error("a part that there is none of is not the page")
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.submit(api.SubmitRequest{})
	b := w.operator()
	p := b.submitForm("/queues/submit/pause", url.Values{"back": {"/outbox?tag=x"}})
	p.has(t, "Sending is paused. Running attempts finish", "Resume sending", `value="x"`)
	p.lacks(t, "Pause bulk")
	if got := w.state(id); got != api.Paused {
		t.Errorf("the message is %s", got)
	}
	if p := b.get("/outbox"); strings.Contains(p.body, "Running attempts finish") {
		t.Error("the sentence is said twice")
	}
	back := url.Values{"back": {"/outbox"}}
	b.submitForm("/queues/submit/resume", back).has(t, "Sending resumed.", "Pause sending")
	b.submitForm("/queues/bulk/pause", back).has(t, "Bulk sending is paused", "Resume bulk",
		"Pause sending")
	b.submitForm("/queues/bulk/resume", nil)
	b.submitForm("/queues/notify/pause", url.Values{"back": {"/webhooks"}}).has(t, "Webhooks are paused",
		"Resume webhooks")
	if p := b.post("/queues/other/pause", nil); p.status != http.StatusNotFound {
		t.Errorf("a queue that there is none of: %d", p.status)
	}
}

// hidden reads the hidden fields of a page's form.
func (p page) hidden() url.Values {
	v := url.Values{}
	for _, m := range regexp.MustCompile(
		`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(p.text(), -1) {
		v.Set(m[1], m[2])
	}
	return v
}

func TestCancelWhatAFilterLeaves(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	for range 3 {
		w.later(api.SubmitRequest{Subject: "old news", Tags: []string{"news"}})
	}
	dead := w.submit(api.SubmitRequest{Subject: "dead news", Tags: []string{"news"}, To: api.Addresses{
		{Address: "nobody@example.net"}}})
	w.deliver(dead)
	other := w.later(api.SubmitRequest{Subject: "an invoice"})
	b := w.operator()

	b.get("/outbox?tag=news").has(t, `href="/cancel?tag=news"`)
	p := b.get("/cancel?tag=news")
	p.has(t, "Cancel 4 messages?", "tagged “news”", "1 of them has failed", "Keep them")
	form := p.hidden()
	if form.Get("total") != "4" || form.Get("back") != "/outbox?tag=news" {
		t.Errorf("the form is %v", form)
	}

	w.tick() // what is accepted in the very moment of the question makes Postroom ask again
	young := w.later(api.SubmitRequest{Subject: "young news", Tags: []string{"news"}})
	p = b.submitForm("/cancel", form)
	p.has(t, "4 messages were cancelled.", "young news")
	p.lacks(t, "old news", "dead news")
	if w.state(other) != api.Scheduled || w.state(young) != api.Scheduled {
		t.Error("a message was cancelled that nobody confirmed")
	}
}

func TestCancelAsksAgainWhenThereAreMore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.later(api.SubmitRequest{})
	moved := w.submit(api.SubmitRequest{})
	b := w.operator()
	form := b.get("/cancel?state=scheduled").hidden()
	if form.Get("total") != "1" {
		t.Fatalf("the form is %v", form)
	}
	at := time.Now().Add(time.Hour)
	_, err := w.outbox.Operations.Patch(t.Context(), moved, api.OutboxPatch{SendAt: &at})
	w.must(err)
	p := b.post("/cancel", form)
	p.has(t, "You confirmed 1 message, but there are more now", "Cancel 2 messages?")
	if w.state(moved) != api.Scheduled {
		t.Error("it was cancelled all the same")
	}
	b.submitForm("/cancel", p.hidden()).has(t, "2 messages were cancelled.")

	for name, form := range map[string]url.Values{"nothing": {}, "no number": {"before": {"2100-01-01T00:00"}},
		"no moment": {"total": {"9"}}} {
		if p := b.post("/cancel", form); p.status != http.StatusBadRequest {
			t.Errorf("a form with %s answers %d", name, p.status)
		}
	}
}

func TestCancelAll(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.later(api.SubmitRequest{})
	w.later(api.SubmitRequest{})
	b := w.operator()
	p := b.get("/cancel")
	p.has(t, "Cancel 2 messages?", "These are all messages in the outbox.")
	b.submitForm("/cancel", p.hidden()).has(t, "2 messages were cancelled.", "The outbox is empty.")
	b.get("/cancel").has(t, "Cancel 0 messages?", "Back to the list")
}

func TestFilterStandsInAddresses(t *testing.T) {
	f := filter{
		State: api.Failed, Account: "a&b=c", Lane: api.Bulk, Tag: "x y", Search: `"><script>`,
		After: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Before: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
	}
	u, err := url.Parse(f.URL())
	if err != nil {
		t.Fatal(err)
	}
	got, err := readFilter(u.Query())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func FuzzReadFilter(f *testing.F) {
	f.Add("state=failed&account=a&lane=bulk&tag=t&search=s&after=2026-01-02T03:04&before=2026-01-02")
	f.Add("status=dead&cursor=c&search=%e2%98%95&before=2026-01-02T03:04:05Z")
	f.Add("after=2026-01-02T03:04:05.678Z&page=99999999999999999999")
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		_ = pageOf(v)
		if of, err := readLogFilter(v); err == nil {
			if again, err := readLogFilter(of.values()); err != nil || again.URL() != of.URL() {
				t.Fatalf("%q: %s, then %s: %v", raw, of.URL(), again.URL(), err)
			}
		}
		read, err := readFilter(v)
		if err != nil {
			return
		}
		again, err := readFilter(read.values())
		if err != nil || !again.After.Equal(read.After) || !again.Before.Equal(read.Before) ||
			again.Search != read.Search {
			t.Fatalf("%q: %+v, then %+v: %v", raw, read, again, err)
		}
	})
}

// Failed mail is grouped by reason. One reason is replayed, or only what is ticked.
func TestFailedMailIsSentAgainByReason(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["full@example.net"] = "552 5.2.2 Mailbox full"
	w.relay.replies["spf@example.net"] = "550 5.7.23 SPF validation failed"
	var ids []string
	for _, to := range []string{"full@example.net", "full@example.net", "spf@example.net"} {
		id := w.submit(api.SubmitRequest{Subject: "to " + to, To: api.Addresses{{Address: to}}})
		w.deliver(id)
		ids = append(ids, id)
	}
	b := w.operator()
	b.get("/outbox?state=failed").has(t, `href="/replay"`)
	b.get("/outbox?state=failed&account=default").has(t, `href="/replay?account=default"`)
	b.get("/messages/"+ids[0]).has(t, "The mailbox is full.", "What to do:")
	p := b.get("/replay")
	p.isSafe(t, "/replay")
	p.has(t, "The mailbox is full", "SPF does not permit the relay", `href="/replay?reason=mailboxFull"`,
		"Tick "+ids[2])
	p.lacks(t, `value="all"`)
	p = b.get("/replay?reason=mailboxFull")
	p.has(t, "Send 2 failed messages again?", "because of “The mailbox is full”", "Tick "+ids[1])
	p.lacks(t, "Tick "+ids[2])

	b.submitForm("/replay", url.Values{"reason": {"mailboxFull"}, "which": {"ticked"}}).has(t,
		"Tick the messages first.")
	b.submitForm("/replay", url.Values{"reason": {"mailboxFull"}, "which": {"ticked"}, "id": {ids[1]}}).has(t,
		"1 message is due again.", "Send 1 failed message again?")
	if got := w.state(ids[0]); got != api.Failed {
		t.Errorf("what was not ticked is %s", got)
	}
	b.submitForm("/replay", url.Values{"reason": {"mailboxFull"}, "which": {"all"}}).has(t,
		"1 message is due again.")
	if got := w.state(ids[2]); got != api.Failed {
		t.Errorf("what failed for another reason is %s", got)
	}
	for _, form := range []url.Values{{"which": {"all"}}, {"reason": {"none"}}} {
		if p := b.post("/replay", form); p.status != http.StatusBadRequest {
			t.Errorf("%v answers %d", form, p.status)
		}
	}
	if p := b.post("/replay", url.Values{"which": {"ticked"}, "id": {"x"}}); p.status != http.StatusNotFound {
		t.Errorf("an id that is none answers %d", p.status)
	}
}

func TestFailedMailOfAnAccountIsSentAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	w.relay.replies["locked@example.net"] = "535 5.7.8 Authentication failed"
	nobody := w.submit(api.SubmitRequest{Subject: "to nobody", Tags: []string{"news"}, To: api.Addresses{
		{Address: "nobody@example.net"}}})
	locked := w.submit(api.SubmitRequest{Subject: "locked out", To: api.Addresses{
		{Address: "locked@example.net"}}})
	w.deliver(nobody)
	w.deliver(locked)
	b := w.operator()
	for _, query := range []string{"/outbox", "/outbox?state=failed", "/outbox?account=default",
		"/outbox?state=failed&account=default&search=nobody"} {
		b.get(query).lacks(t, "Send these again")
	}
	b.get("/messages/"+locked).has(t, "The relay refused the account, not the message",
		`href="/replay?account=default"`)
	b.get("/messages/"+nobody).lacks(t, "The relay refused the account")
	b.get("/outbox?state=failed&account=default").has(t, "Send these again",
		`href="/replay?account=default&state=failed"`)
	p := b.get("/replay?account=default&state=failed")
	p.isSafe(t, "/replay")
	p.has(t, "Send 2 failed messages again?", "account <strong>default</strong>")

	b.submitForm("/replay", url.Values{"account": {"default"}, "trouble": {"1"}}).has(t,
		"1 message is due again.", "locked out")
	if got := w.state(nobody); got != api.Failed {
		t.Errorf("what failed for another reason is %s", got)
	}
	b.submitForm("/replay", url.Values{"account": {"default"}, "tag": {"none"}}).has(t,
		"0 messages are due again.")
	b.submitForm("/replay", url.Values{"account": {"default"}, "tag": {"news"}}).has(t,
		"1 message is due again.")
	for _, id := range []string{nobody, locked} {
		if got := w.state(id); got != api.Waiting {
			t.Errorf("%s is %s", id, got)
		}
	}
	b.get("/replay?account=default").has(t, "Send 0 failed messages again?", "Back to the list")
	if p := b.post("/replay", url.Values{}); p.status != http.StatusBadRequest {
		t.Errorf("a replay of no account answers %d", p.status)
	}
}
