package e2e_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

const offer = `<html><body><p>An <a href="https://shop.test/offer?a=1&amp;b=2">offer</a>, or <a href="mailto:shop@example.com">write</a>.</p></body></html>`

// marked is an email sent with tracking, as its reader has it.
type marked struct {
	id, html    string
	link, pixel string // paths
	client      *api.Client
}

// sendOffer sends the offer and reads it from the relay.
func sendOffer(t *testing.T, a *app.App, relay *testsmtp.Server, change func(*api.SubmitRequest)) marked {
	t.Helper()
	client := api.NewClient(a.URL(), a.Token(), nil)
	req := api.SubmitRequest{To: api.Addresses{{Address: "ann@example.net"}}, Subject: "Offer", HTML: offer}
	if change != nil {
		change(&req)
	}
	before := relay.Count()
	answer, err := api.Submit.Do(t.Context(), client, req)
	if err != nil {
		t.Fatal(err)
	}
	mails := relay.Wait(before + 1)
	m := marked{id: answer.QueueID, client: client, html: htmlOf(t, mails[before].Data)}
	if found := regexp.MustCompile(`href="https://mail\.example\.com(/c/[^"]*)"`).FindStringSubmatch(
		m.html); found != nil {
		m.link = found[1]
	}
	if found := regexp.MustCompile(
		`<img src="https://mail\.example\.com(/o/[^"]*)" width="1" height="1" alt=""></body>`).FindStringSubmatch(
		m.html); found != nil {
		m.pixel = found[1]
	}
	return m
}

// htmlOf returns the HTML part of an email.
func htmlOf(t *testing.T, content []byte) string {
	t.Helper()
	letter, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return htmlPart(t, letter.Header.Get("Content-Type"), letter.Header.Get("Content-Transfer-Encoding"),
		letter.Body)
}

func htmlPart(t *testing.T, contentType, encoding string, body io.Reader) string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			part, err := parts.NextRawPart()
			if err != nil {
				t.Fatalf("no html in the mail: %v", err)
			}
			if html := htmlPart(t, part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"),
				part); html != "" {
				return html
			}
		}
	}
	if kind != "text/html" {
		return ""
	}
	if strings.EqualFold(encoding, "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	html, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

// browse requests a path as a browser does, without following redirects.
func browse(t *testing.T, a *app.App, path, agent string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp
}

// story waits until the message has the wanted number of events of a kind, and returns them.
func (m marked) story(t *testing.T, kind event.Type, times int) (found []api.MessageEvent) {
	t.Helper()
	apptest.Eventually(t, string(kind), func() bool {
		events, err := api.ListMessageEvents.Do(t.Context(), m.client, m.id)
		found = nil
		for _, e := range events.Events {
			if e.Event == string(kind) {
				found = append(found, e)
			}
		}
		return err == nil && len(found) >= times
	})
	return found
}

const thunderbird = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0"

// TestOpensAndClicks follows an email from its submit to the opens and clicks of its reader.
func TestOpensAndClicks(t *testing.T) {
	t.Parallel()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	a := apptest.Run(t, map[string]string{
		"smtp": relay.URL(), "from": "shop@example.com", "webhooks.allowPrivate": "true",
		"serviceUrl":     "https://mail.example.com",
		"tracking.opens": "true", "tracking.clicks": "true",
	})
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL, Events: []string{
		"trackOpen", "trackClick"}}); err != nil {
		t.Fatal(err)
	}
	m := sendOffer(t, a, relay, nil)
	if m.link == "" || m.pixel == "" || !strings.Contains(m.html, `<a href="mailto:shop@example.com">`) {
		t.Fatalf("the reader got %s", m.html)
	}
	if resp := browse(t, a, m.pixel, thunderbird); resp.StatusCode != 200 ||
		resp.Header.Get("Content-Type") != "image/gif" {
		t.Errorf("the picture: %d %v", resp.StatusCode, resp.Header)
	}
	if resp := browse(t, a, m.link, "curl/8.5.0"); resp.StatusCode != 302 ||
		resp.Header.Get("Location") != "https://shop.test/offer?a=1&b=2" {
		t.Errorf("the link: %d %v", resp.StatusCode, resp.Header)
	}
	opens, clicks := m.story(t, event.TrackOpen, 1), m.story(t, event.TrackClick, 1)
	if d := opens[0].Details; d == nil || d.Bot || d.RemoteAddress != "127.0.0.0" ||
		d.UserAgent != thunderbird || opens[0].Recipients[0] != "ann@example.net" {
		t.Errorf("open: %+v %+v", opens[0], d)
	}
	if d := clicks[0].Details; d == nil || !d.Bot || d.BotReason != "crawler" ||
		d.URL != "https://shop.test/offer?a=1&b=2" {
		t.Errorf("click: %+v %+v", clicks[0], d)
	}
	if told := hooks.Wait(t, event.TrackClick); told.QueueID != m.id {
		t.Errorf("the webhook is about %s", told.QueueID)
	}
	hooks.Wait(t, event.TrackOpen)
	stats, err := api.GetStats.Do(t.Context(), client, api.CounterQuery{})
	if l := stats.Counters.LaterHour; err != nil || l.Opened != 1 || l.ClickedBots != 1 || l.Clicked != 0 ||
		l.OpenedBots != 0 {
		t.Errorf("counted: %+v, %v", stats.Counters, err)
	}
	for _, path := range []string{"/o/forged", m.pixel + "x"} {
		if resp := browse(t, a, path, thunderbird); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/c/forged", m.link[:len(m.link)-1], "/c/" + strings.TrimPrefix(m.pixel,
		"/o/"), "/track/click?mid=" + m.link[3:] + "&url=https://evil.test/"} {
		if resp := browse(t, a, path, thunderbird); resp.StatusCode != 404 || resp.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, resp.Header.Get("Location"))
		}
	}
}

// TestWhoseMailIsTracked: the message decides, else its account, else the current settings.
func TestWhoseMailIsTracked(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"serviceUrl": "https://mail.example.com"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	account := api.Account{Account: "loud", Email: "loud@example.com", SMTP: &api.SMTPServer{Host: relay.Host(),
		Port: relay.Port()}, TrackOpens: new(true)}
	if _, err := api.CreateAccount.Do(t.Context(), client, account); err != nil {
		t.Fatal(err)
	}
	by := func(id string) func(*api.SubmitRequest) {
		return func(r *api.SubmitRequest) { r.Account = id }
	}
	expect := func(when string, change func(*api.SubmitRequest), opens, clicks bool) {
		t.Helper()
		if m := sendOffer(t, a, relay, change); (m.pixel != "") != opens || (m.link != "") != clicks || !opens &&
			!clicks && strings.TrimSpace(m.html) != offer {
			t.Errorf("%s: opens %q, clicks %q, want %v, %v", when, m.pixel, m.link, opens, clicks)
		}
	}
	expect("nobody says", nil, false, false)
	expect("the message says", func(r *api.SubmitRequest) { r.TrackClicks = new(true) }, false, true)
	expect("the message says, as of old", func(r *api.SubmitRequest) { r.TrackingEnabled = new(true) }, true,
		true)
	expect("the account says", by("loud"), true, false)
	expect("the message says otherwise", func(r *api.SubmitRequest) {
		r.Account, r.TrackOpens = "loud",
			new(false)
	}, false, false)
	if _, err := api.UpdateSettings.Do(t.Context(), client, api.Settings{TrackClicks: new(true)}); err != nil {
		t.Fatal(err)
	}
	expect("the settings say", nil, false, true)
	expect("the account, and the settings", by("loud"), true, true)
}

// TestLinksWorkWhileRedisIsAway: links work without Redis, and hits are reported later.
func TestLinksWorkWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	server := testredis.Server(t)
	a := apptest.Run(t, map[string]string{
		"redis.url": server.URL(), "smtp": relay.URL(), "from": "shop@example.com",
		"serviceUrl": "https://mail.example.com", "tracking.opens": "true", "tracking.clicks": "true",
		"documents.store": "none",
	})
	m := sendOffer(t, a, relay, nil)
	m.story(t, event.MessageSent, 1)
	server.Kill()
	if resp := browse(t, a, m.link, thunderbird); resp.StatusCode != 302 {
		t.Errorf("the link: %d", resp.StatusCode)
	}
	if resp := browse(t, a, m.pixel, thunderbird); resp.StatusCode != 200 {
		t.Errorf("the picture: %d", resp.StatusCode)
	}
	server.Restart(t)
	m.story(t, event.TrackOpen, 1)
	m.story(t, event.TrackClick, 1)
}
