package ui

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/outbox/suppression"
)

// bar adds suppressions.
func (w *world) bar(entries ...suppression.Entry) {
	w.t.Helper()
	_, err := w.barred.Add(w.t.Context(), entries...)
	w.must(err)
}

func TestWhySomebodyIsNotMailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/suppressions").has(t, "No addresses are suppressed.")
	b.get("/suppressions?q=ann@example.com").has(t, "Postroom sends to it: neither")
	w.bar(
		suppression.Entry{Address: "ann@example.com", Reason: "hard_bounce", Source: "smtp", MessageID: "01ABC",
			Response: "550 <b>no</b> such user"},
		suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe", Account: "shop", List: "news"},
		suppression.Entry{Domain: "example.com", Reason: "manual", Account: "shop",
			Expires: time.Now().Add(time.Hour)},
		suppression.Entry{Address: "ben@example.com", Reason: "spam_report"},
	)
	p := b.get("/suppressions?q=ANN@example.com")
	p.has(t, "ann@example.com", "Every mail to it is stopped.",
		"Every mail to it is stopped, of the account shop.",
		"Mail of the list news to it is stopped, of the account shop.",
		"550 <b>no</b> such user", `href="/messages/01ABC"`, "@example.com", "no end")
	p.lacks(t, "ben@example.com")
	if strings.Contains(p.body, "<b>no</b>") {
		t.Error("the reply is not escaped")
	}
	if p := b.get("/suppressions?q=ann@"); p.status != http.StatusBadRequest {
		t.Errorf("no address: %d", p.status)
	}
	b.get("/suppressions").has(t, "4 entries", "ben@example.com", `href="/v1/suppressions/export"`)
	b.get("/suppressions?q=example.com").has(t, "ann@example.com", "ben@example.com", "@example.com",
		"/v1/suppressions/export?domain=example.com")
	p = b.get("/suppressions?reason=spam_report&scope=instance")
	p.has(t, "1 entry", "ben@example.com", "Clear")
	p.lacks(t, "ann@example.com")
	b.get("/suppressions?list=news").has(t, "1 entry", "ann@example.com")
	if p := b.get("/suppressions?reason=dislike"); p.status != http.StatusBadRequest {
		t.Errorf("a reason there isn't: %d", p.status)
	}
}

func TestAddingAndRemovingSuppressions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	form := url.Values{"whom": {"Ann@Example.com"}, "reason": {"unsubscribe"}, "account": {"shop"},
		"list": {"news"},
		"note": {"by phone"}, "expires": {"2999-12-31"}, "back": {"/suppressions?list=news"}}
	p := b.submitForm("/suppressions/add", form)
	p.has(t, "Ann@Example.com was added.", "by phone", "page", "unsubscribe")
	b.submitForm("/suppressions/add", form).has(t, "was there already.")
	b.submitForm("/suppressions/add", url.Values{"whom": {"@example.org"}, "reason": {"manual"}})
	b.get("/suppressions").has(t, "2 entries", "@example.org")
	p = b.post("/suppressions/add", url.Values{"whom": {"ann@"}, "reason": {"unsubscribe"}, "list": {"a b"},
		"expires": {"2999-12-31"}, "note": {"by letter"}, "back": {"/suppressions?q=example.org"}})
	p.has(t, `id="whom-wrong">is not a valid email address`, `id="account-wrong">is required with a list`,
		`id="list-wrong">is not the id of a list`, "Nothing was saved: 3 fields are wrong.", `value="ann@"`,
		`value="by letter"`, `value="unsubscribe" selected`, `name="back" value="/suppressions?q=example.org"`,
		"Entries for <strong>example.org</strong>")
	if p.status != http.StatusBadRequest {
		t.Errorf("wrong fields answer %d", p.status)
	}
	b.post("/suppressions/add", url.Values{"whom": {"ann@example.com"}, "reason": {"manual"},
		"expires": {"soon"}, "back": {"https://evil.example/"}}).has(t, `id="expires-wrong">must be a date`,
		"2 entries")

	gone := url.Values{"email": {"ann@example.com"}, "reason": {"unsubscribe"}, "account": {"shop"},
		"list": {"news"},
		"back": {"/suppressions"}}
	b.submitForm("/suppressions/remove", gone).has(t, "ann@example.com was removed.", "1 entry")
	b.submitForm("/suppressions/remove", gone).has(t, "was gone already.")
	b.submitForm("/suppressions/remove", url.Values{"domain": {"example.org"}, "reason": {"manual"},
		"back": {"https://evil.example/"}})
	b.get("/suppressions").has(t, "No addresses are suppressed.")
}

// upload posts a form with a file.
func (b *browser) upload(path, file string, fields ...string) page {
	b.t.Helper()
	return b.uploadAs("list.csv", path, file, fields...)
}

// uploadAs is upload with the name of the file.
func (b *browser) uploadAs(name, path, file string, fields ...string) page {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		b.must(form.WriteField(fields[i], fields[i+1]))
	}
	part, err := form.CreateFormFile("file", name)
	b.must(err)
	_, err = part.Write([]byte(file))
	b.must(err)
	b.must(form.Close())
	b.header.Set("Content-Type", form.FormDataContentType())
	defer b.header.Del("Content-Type")
	return b.do(http.MethodPost, path, &body)
}

func TestAFileIsImported(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	p := b.upload("/suppressions/import", "email\nann@example.com\nnobody\nben@example.com\n", "reason",
		"unsubscribe", "account", "shop", "list", "news")
	if p.status != http.StatusSeeOther || !strings.HasPrefix(p.to(), "/suppressions/imports/") {
		t.Fatalf("%d to %s: %s", p.status, p.to(), p.body)
	}
	told := b.get(p.to())
	told.isSafe(t, p.to())
	told.has(t, "done", "3 lines", "2 added", "1 left out", "it has no @")
	b.get("/suppressions?list=news&reason=unsubscribe").has(t, "2 entries", "ben@example.com")
	if p := b.upload("/suppressions/import", "name,phone\n"); p.status != http.StatusSeeOther {
		t.Errorf("a file of something else: %d", p.status)
	}
	b.get("/suppressions").has(t, "has no column named")
	if p := b.post("/suppressions/import", url.Values{}); p.status != http.StatusBadRequest {
		t.Errorf("no file: %d", p.status)
	}
}

func TestSuppressionsHavePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range 60 {
		w.bar(suppression.Entry{Address: fmt.Sprintf("a%d@example.com", i), Reason: "manual"})
	}
	b := w.operator()
	first := b.get("/suppressions?reason=manual")
	first.has(t, "60 entries", "Next")
	next := regexp.MustCompile(`href="(/suppressions\?[^"]*cursor[^"]*)" rel="next"`).FindStringSubmatch(
		first.text())
	if next == nil {
		t.Fatal(first.body)
	}
	second := b.get(next[1])
	second.has(t, "(continued)", "First")
	if n, m := strings.Count(first.body, "<tr>"), strings.Count(second.body, "<tr>"); n != 51 || m != 11 {
		t.Errorf("%d and %d rows", n, m)
	}
}
