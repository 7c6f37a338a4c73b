package main

import (
	"bytes"
	"mime"
	"net/mail"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// letter is what a recipient sees of a mail.
type letter struct{ from, subject, body string }

// letters are the mails that a relay got, by recipient. A second one to the same address is a failure.
func letters(t *testing.T, relay *testsmtp.Server) map[string]letter {
	t.Helper()
	all := map[string]letter{}
	for _, m := range relay.Messages() {
		read, err := mail.ReadMessage(bytes.NewReader(m.Data))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject"))
		if err != nil {
			t.Fatal(err)
		}
		body := strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(string(m.Data))
		for _, to := range m.To {
			if _, twice := all[to]; twice {
				t.Errorf("%s got two mails", to)
			}
			all[to] = letter{read.Header.Get("From"), subject, strings.ReplaceAll(body, "&#x3D;", "=")}
		}
	}
	return all
}

// runExample runs the program with its flags, and returns what it printed.
func runExample(t *testing.T, p *apptest.Postroom, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	args = append([]string{"-url", p.URL, "-token", p.Token, "-list", "news"}, args...)
	err := parse(args, &out).run(t.Context())
	return out.String(), err
}

// wants fails unless a text has all parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// leave is a link to leave the list.
var leave = regexp.MustCompile(`href="https://mail\.example\.com/unsubscribe\?t=([\w-]+)"`)

// TestNewsletterReachesEachPersonOnce runs the program twice, and looks at the mail: its words, its
// fallbacks, and a link to leave for each person. Who left in between stays away.
func TestNewsletterReachesEachPersonOnce(t *testing.T) {
	p := apptest.Start(t, map[string]string{"serviceUrl": "https://mail.example.com"})
	out, err := runExample(t, p, "-from", "News <news@example.com>", "-test", "me@example.com")
	if err != nil {
		t.Fatalf("%v after\n%s", err, out)
	}
	wants(t, out, "list news: 3 added, 0 known, 0 bad\n", "warning NoText: ", "up to 3 people get it\n",
		"subject: Spring has come to Bern\n", "test to me@example.com: ", "campaign spring-news: sending\n",
		"3 of 3 sent, 0 open, 0 bounced, 0 failed, 0 in doubt: sent")
	p.Relay.Wait(4)
	got := letters(t, p.Relay)
	links, subjects := map[string]string{}, map[string]string{}
	for to, m := range got {
		subjects[to] = m.subject
		if m.from != "News <news@example.com>" {
			t.Errorf("the mail to %s is from %s", to, m.from)
		}
		link := leave.FindString(m.body)
		if other := links[link]; link == "" || other != "" {
			t.Errorf("the link to leave of %s is %q, which is also that of %q", to, link, other)
		}
		links[link] = to
	}
	if diff := cmp.Diff(map[string]string{"me@example.com": "[Test] Spring has come to Bern",
		"ann@example.net": "Spring has come to Bern", "ben@example.net": "Spring has come to your town",
		"cleo@example.net": "Spring has come to Graz"}, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	wants(t, got["ann@example.net"].body, "<p>Hello Ann,</p>")
	wants(t, got["cleo@example.net"].body, "<p>Hello reader,</p>")
	_, err = api.LeaveList.Do(t.Context(), p.Client, api.SubscriberAccount{}, "ben@example.net", "news")
	if err != nil {
		t.Fatal(err)
	}
	out, err = runExample(t, p)
	if err != nil {
		t.Fatalf("%v after\n%s", err, out)
	}
	wants(t, out, "list news: 0 added, 3 known, 0 bad\n", "up to 2 people get it\n",
		"campaign spring-news: sent\n")
	if n := p.Relay.Count(); n != 4 {
		t.Errorf("the relay has %d mails after the second run, want the 4 of the first", n)
	}
}

// TestFaultIsPrintedAndNothingSent: without an address that recipients reach, nobody could leave. An earlier
// draft gets what the next run says.
func TestFaultIsPrintedAndNothingSent(t *testing.T) {
	p := apptest.Start(t, nil)
	for _, from := range []string{"Old <old@example.com>", "New <new@example.com>"} {
		out, err := runExample(t, p, "-from", from, "-test", "me@example.com")
		if err == nil || !strings.Contains(err.Error(), "spring-news can't be sent") {
			t.Errorf("the error is %v", err)
		}
		wants(t, out, "fault NoPublicUrl: ")
	}
	c, err := api.GetCampaign.Do(t.Context(), p.Client, "spring-news")
	if err != nil || c.State != api.CampaignDraft || c.From == nil || c.From.Address != "new@example.com" {
		t.Errorf("the campaign is %+v, %v", c, err)
	}
	if n := p.Relay.Count(); n != 0 {
		t.Errorf("the relay got %d mails", n)
	}
}
