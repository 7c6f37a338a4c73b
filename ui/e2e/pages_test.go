package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestOperatorAtThePages is an operator's working day in a real browser. Nothing may log errors on the
// console, violate the content security policy, or contact another host.
func TestOperatorAtThePages(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	later := func(subject string) string {
		at := time.Now().Add(24 * time.Hour)
		answer, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
			To: api.Addresses{{Address: "ada@example.net"}}, Subject: subject, SendAt: &at})
		if err != nil {
			t.Fatal(err)
		}
		return answer.QueueID
	}
	wanted, other, doomed := later("the wanted one"), later("another one"), later("a doomed one")
	v := visit(t, a.URL())

	v.open("/outbox?search=wanted")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("the wanted one")
	v.seesNot("another one")

	v.open("/outbox")
	v.sees("another one", "a doomed one", "Pause sending")
	v.do(chromedp.SendKeys(chromedp.CSS("input[name=search]"), "the wanted"))
	v.click(".filters button")
	v.seesNot("another one")
	if where := v.where(); where != "/outbox?search=the+wanted" {
		t.Errorf("the filter leads to %s", where)
	}

	v.click(`a[href="/messages/` + wanted + `"]`)
	v.sees("Timeline", "Next attempt")
	v.do(chromedp.Click(chromedp.CSS("#main > details > summary")))
	v.sees("(Asia/Tokyo)")
	day := time.Now().AddDate(0, 6, 0)
	v.do(chromedp.SetValue(chromedp.CSS("input[name=at]"), day.Format(time.DateOnly)+"T09:30"))
	v.click("#main > details button")
	v.sees("The message has a new schedule.")
	m, err := api.GetMessage.Do(t.Context(), client, wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(day.Year(), day.Month(), day.Day(), 0, 30, 0, 0, time.UTC)
	if !m.NextAttempt.Time.Equal(want) {
		t.Errorf("half past nine in Tokyo became %v", m.NextAttempt.Time)
	}
	v.do(chromedp.Click(chromedp.CSS("#ask-cancel")))
	v.click("#confirm-cancel")
	v.sees("Message " + wanted + " was cancelled.")
	wantEnd(t, client, wanted, "MessageCancelled")

	v.do(chromedp.Click(chromedp.CSS("#pause")))
	v.click("#confirm-pause")
	v.sees("Sending is paused.")
	held, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "eve@example.net"}}, Subject: "came in meanwhile"})
	if err != nil {
		t.Fatal(err)
	}
	v.sees("came in meanwhile", "paused") // without a reload
	v.click("#resume")
	v.sees("Sending resumed.")
	relay.Wait(1)
	v.open("/messages/" + held.QueueID)
	v.sees("This message was sent")

	for _, path := range []string{"/webhooks", "/accounts", "/status", "/cancel?search=another", "/docs"} {
		v.open(path)
	}
	v.open("/admin/queues")
	v.sees("submit", "bulk", "notify", "documents", "← Postroom")
	v.open("/admin/queues/queues/submit?status=scheduled")
	v.sees("the message that the task's id names")
	task := run(v, chromedp.Evaluate[string](`(async () => {
		const tasks = await (await fetch("/admin/queues/api/queues/submit/scheduled_tasks")).json();
		const task = tasks.tasks.find((t) => t.id.startsWith("`+doomed+`."));
		const answer = await fetch("/admin/queues/api/queues/submit/scheduled_tasks/" + task.id, { method: "DELETE" });
		return String(answer.ok);
	})()`, chromedp.EvalAwaitPromise))
	if task != "true" {
		t.Errorf("deleting a task answered ok %s", task)
	}
	wantEnd(t, client, doomed, "MessageCancelled")
	if _, err := api.GetMessage.Do(t.Context(), client, other); err != nil {
		t.Errorf("the message beside it: %v", err)
	}

	v.click(`a[href="/"]`)
	v.open("/outbox")
	v.sees("another one")
	v.click(".logout button")
	v.open("/status")
	v.sees("Access token")
}

// TestDashboardActsOnMessages does to tasks what the dashboard's buttons do, and checks the messages of those
// tasks.
func TestDashboardActsOnMessages(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	at := time.Now().Add(24 * time.Hour)
	task := func(to string) string {
		answer, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{To: api.Addresses{{Address: to}},
			Subject: "x", SendAt: &at})
		if err != nil {
			t.Fatal(err)
		}
		return answer.QueueID
	}
	const tasks = "/admin/queues/api/queues/submit/scheduled_tasks"
	act := func(method, path string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Token())
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s %s answered %d: %s %v", method, path, res.StatusCode, body, err)
		}
		return string(body)
	}
	run, archived := task("now@example.net"), task("later@example.net")
	list := act(http.MethodGet, tasks)
	taskOf := func(id string) string { return regexp.MustCompile(id + `\.[0-9]+`).FindString(list) }

	act(http.MethodPost, tasks+"/"+taskOf(run)+":run")
	if got := relay.Wait(1)[0].To; !slices.Equal(got, []string{"now@example.net"}) {
		t.Errorf("the relay got mail for %v", got)
	}
	act(http.MethodPost, tasks+"/"+taskOf(archived)+":archive")
	wantEnd(t, client, archived, "MessageFailed")
	act(http.MethodPost, "/admin/queues/api/queues/submit:pause")
	if q, err := api.GetQueue.Do(t.Context(), client, "submit"); err != nil || q.Jobs.Failed != 1 {
		t.Errorf("queue %+v: %v", q, err)
	}
}

// wantEnd fails the test unless a message has ended with code.
func wantEnd(t *testing.T, client *api.Client, id, code string) {
	t.Helper()
	_, err := api.GetMessage.Do(t.Context(), client, id)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != code {
		t.Errorf("message %s: %v, want %s", id, err, code)
	}
}

// visitor is a browser in Tokyo's time zone that records everything it complains of.
type visitor struct {
	t    *testing.T
	base string
	ctx  context.Context

	refusals atomic.Bool // the console may tell of answers with the statuses 400 and 503: they are wanted

	mu         sync.Mutex
	complaints []string
}

// browser is the one chromium of all tests. Each visit has its own cookies and storage in it.
var browser struct {
	start sync.Once
	ctx   context.Context // of its first tab, which nobody uses
	stop  func()          // nil: it was not started
	err   error
}

// browsing are the tests of this package. The browser ends with them.
type browsing struct{ *testing.M }

func (b browsing) Run() int {
	code := b.M.Run()
	if browser.stop != nil {
		browser.stop()
	}
	return code
}

// startBrowser returns the browser, started.
func startBrowser() (context.Context, error) {
	browser.start.Do(func() {
		path, err := exec.LookPath("chromium")
		if err != nil {
			browser.err = errors.New(
				"the pages are tested in chromium, which is not installed here; `make test` installs it")
			return
		}
		alloc, stop := chromedp.NewExecAllocator(context.Background(), append(
			chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.WSURLReadTimeout(2*time.Minute))...)
		ctx, cancel := chromedp.NewContext(alloc)
		browser.ctx, browser.stop = ctx, func() {
			_ = chromedp.Cancel(ctx)
			cancel()
			stop()
		}
		browser.err = chromedp.Do(ctx) // its context must have no deadline
	})
	return browser.ctx, browser.err
}

func visit(t *testing.T, base string) *visitor {
	t.Helper()
	chromium, err := startBrowser()
	if err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return newTab(t, base, chromium, chromedp.WithNewBrowserContext())
}

// tab opens another tab beside that of a visitor, with the same cookies, for a test of its own.
func (v *visitor) tab(t *testing.T, options ...chromedp.ContextOption) *visitor {
	t.Helper()
	return newTab(t, v.base, v.ctx, options...)
}

func newTab(t *testing.T, base string, parent context.Context, options ...chromedp.ContextOption) *visitor {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("close the pages: %v", err)
		}
		cancel()
	})
	v := &visitor{t: t, base: base, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1300, 900)); err != nil {
		t.Fatalf("open a window: %v", err)
	}
	// A window that others cover is as one that has the focus.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{
		TimezoneID: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	v.listen()
	t.Cleanup(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, c := range v.complaints {
			t.Error(c)
		}
	})
	return v
}

// listen records console errors and warnings, and requests to other hosts.
func (v *visitor) listen() {
	console := chromedp.Console(v.ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if text := m.String(); v.refusals.Load() &&
				(strings.Contains(text, "status of 400") || strings.Contains(text, "status of 503")) {
				continue
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" || m.Source == "security" {
				v.complain(fmt.Sprintf("the console says %s (%s)", m, m.URL))
			}
		}
	}()
	err := chromedp.Listen(v.ctx, func(ev any) {
		sent, ok := ev.(*network.EventRequestWillBeSent)
		if !ok {
			return
		}
		if u, err := url.Parse(sent.Request.URL); err == nil && u.Scheme != "data" &&
			!strings.HasPrefix(sent.Request.URL, v.base+"/") {
			v.complain("the page asks for " + sent.Request.URL)
		}
	})
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *visitor) complain(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.complaints = append(v.complaints, what)
}

// run runs one action, for at most patience.
func run[T any](v *visitor, a chromedp.Action[T]) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, apptest.Patience)
	defer cancel()
	out, err := chromedp.Run(ctx, a)
	if err != nil {
		v.t.Fatalf("in the browser: %v", err)
	}
	return out
}

func (v *visitor) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	run(v, chromedp.Steps(steps...))
}

func (v *visitor) open(path string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.base + path))
}

// click clicks an element that leads to another page, and waits for that page.
func (v *visitor) click(selector string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, apptest.Patience)
	defer cancel()
	for {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
		if err == nil {
			return
		}
		// a page that is live may put another in its place before the click: nothing was clicked
		if !strings.Contains(err.Error(), "Could not find node with given id") {
			v.t.Fatalf("click on %s: %v", selector, err)
		}
	}
}

// sees waits until the page contains all words.
func (v *visitor) sees(words ...string) {
	v.t.Helper()
	for _, word := range words {
		if err := v.waitFor(word); err != nil {
			v.t.Fatalf("the page does not say %q: %v\n%s", word, err, v.text())
		}
	}
}

// waitFor waits until the page contains a word. If another page replaces it, the poll fails and is repeated
// on that page.
func (v *visitor) waitFor(word string) error {
	ctx, cancel := context.WithTimeout(v.ctx, apptest.Patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.PollFunction[bool](`(word) => document.body?.innerText.includes(word)`,
			chromedp.WithPollingArgs(word), chromedp.WithPollingInterval(
				50*time.Millisecond), chromedp.WithPollingTimeout(apptest.Patience)))
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "context with specified id") {
			return err
		}
	}
}

func (v *visitor) seesNot(words ...string) {
	v.t.Helper()
	text := v.text()
	for _, word := range words {
		if strings.Contains(text, word) {
			v.t.Errorf("the page says %q:\n%s", word, text)
		}
	}
}

func (v *visitor) text() string {
	v.t.Helper()
	return run(v, chromedp.Evaluate[string](`document.body.innerText`))
}

// where returns the current path of the browser.
func (v *visitor) where() string {
	v.t.Helper()
	return strings.TrimPrefix(run(v, chromedp.Location()), v.base)
}
