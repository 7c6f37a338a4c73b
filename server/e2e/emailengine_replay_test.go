package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// fields is a JSON object.
type fields = map[string]any

// replay repeats recorded traffic of EmailEngine and compares each field of its answers, webhooks and mail.
type replay struct {
	t         *testing.T
	process   *apptest.Process
	sink      *testsmtp.Server // the relay
	hooks     *hookLog
	addresses *strings.Replacer // recorded ports to this test's
	ours      map[string]string // recorded ids to this test's
	asked     string            // body of the last request
	token     string            // other than the admin's
	expected  []*difference
	files     map[string]bool // those that were replayed
}

// difference is a row of the table in testdata/emailengine/README.md.
type difference struct {
	file, field, here string // file and field may have a *
	seen              bool
}

const differencesPage = "testdata/emailengine/README.md"

// readDifferences reads the table of differences.
func readDifferences(t *testing.T) (rows []*difference) {
	t.Helper()
	page, err := os.ReadFile(differencesPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "| `") {
			continue
		}
		cell := func(i int) string { return strings.Trim(strings.TrimPrefix(cells[i], "| "), "`") }
		rows = append(rows, &difference{file: cell(0), field: cell(1), here: cell(2)})
	}
	return rows
}

// differ notes a difference. It fails the test if the table does not list it.
func (r *replay) differ(file, field, here string, about ...any) {
	r.t.Helper()
	for _, d := range r.expected {
		inFile, _ := path.Match(d.file, file)
		inField, _ := path.Match(d.field, field)
		if inFile && inField && d.here == here {
			d.seen = true
			return
		}
	}
	r.t.Errorf("| `%s` | `%s` | %s | is not in the table of %s: %v", file, field, here, differencesPage, about)
}

// finish fails the test if a row of the table does not happen, or a recording was not replayed.
func (r *replay) finish() {
	r.t.Helper()
	for _, d := range r.expected {
		if !d.seen {
			r.t.Errorf("%s lists %s %s %q, which does not differ", differencesPage, d.file, d.field, d.here)
		}
	}
	all, err := filepath.Glob("testdata/emailengine/*.json")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range all {
		if !r.files[strings.TrimSuffix(filepath.Base(file), ".json")] {
			r.t.Errorf("%s was not replayed", file)
		}
	}
}

// load reads a recording. Its ports become this test's, and its future dates stay in the future.
func (r *replay) load(file string, into any) {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "emailengine", file+".json"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.files[file] = true
	text := r.addresses.Replace(strings.ReplaceAll(string(raw), "2027-", "2099-"))
	if err := json.Unmarshal([]byte(text), into); err != nil {
		r.t.Fatal(err)
	}
}

// translate replaces the recorded ids in a text by this test's.
func (r *replay) translate(text string) string {
	for theirs, ours := range r.ours {
		text = strings.ReplaceAll(text, theirs, ours)
	}
	return text
}

// exchange repeats a request and compares the answer.
func (r *replay) exchange(file string) {
	r.t.Helper()
	var x struct {
		Request struct {
			Method, Path string
			Headers      map[string]string
			Body         any
		}
		Response struct {
			Status  int
			Headers map[string]string
			Body    any
		}
	}
	r.load(file, &x)
	body, isText := x.Request.Body.(string)
	if !isText && x.Request.Body != nil {
		body = r.translate(mustJSON(r.t, x.Request.Body))
	}
	r.asked = body
	status, header, answer := r.request(x.Request.Method, r.translate(x.Request.Path), body, x.Request.Headers)
	if status != x.Response.Status {
		problem, _ := answer.(fields)
		here := strconv.Itoa(status)
		if code, ok := problem["code"].(string); ok {
			here += " " + code
		}
		r.differ(file, "status", here, answer)
		return
	}
	for _, name := range []string{"www-authenticate", "x-ratelimit-limit", "content-type"} {
		if want, got := x.Response.Headers[name], header.Get(name); !strings.EqualFold(want, got) {
			r.differ(file, "header."+name, "other value", want, got)
		}
	}
	r.compare(file, "", x.Response.Body, answer)
}

// request asks Postroom. The answer is JSON.
func (r *replay) request(method, path, body string, headers map[string]string) (int, http.Header, any) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.process.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	if r.token != "none" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var answer any
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(raw, &answer); err != nil {
			r.t.Fatalf("%s %s: %v: %s", method, path, err, raw)
		}
	}
	return res.StatusCode, res.Header, answer
}

// call makes a request that was not recorded.
func (r *replay) call(method, path string, body any) any {
	r.t.Helper()
	status, _, answer := r.request(method, path, mustJSON(r.t, body), map[string]string{
		"Content-Type": "application/json"})
	if status != http.StatusOK {
		r.t.Fatalf("%s %s answered %d: %v", method, path, status, answer)
	}
	return answer
}

var (
	// fields with ids, which differ by nature; the same id is the same one everywhere
	ids = []string{"queueId", "messageId", "id", "token"}
	// fields with numbers that depend on the moment
	moments   = []string{"active", "scheduled", "delayed", "paused", "waiting", "total", "pages", "ttl"}
	sinkOrder = regexp.MustCompile(`SINK[0-9]+`)
)

// compare compares a recorded value with ours. Ours may have further fields.
func (r *replay) compare(file, at string, theirs, ours any) {
	r.t.Helper()
	switch theirs := theirs.(type) {
	case map[string]any:
		mine, ok := ours.(map[string]any)
		if !ok {
			r.differ(file, at, "other type", theirs, ours)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(theirs)) {
			field, value := strings.TrimPrefix(at+"."+key, "."), theirs[key]
			switch got, ok := mine[key]; {
			case !ok:
				r.differ(file, field, "absent", value)
			case key == "messages":
				r.compareRows(file, field, rowName, value, got)
			case key == "fields":
				r.compareRows(file, field, fieldName, value, got)
			default:
				r.compare(file, field, value, got)
			}
		}
	case []any:
		mine, ok := ours.([]any)
		if !ok || len(mine) != len(theirs) {
			r.differ(file, at, "other length", theirs, ours)
		}
		for i := range min(len(mine), len(theirs)) {
			r.compare(file, at, theirs[i], mine[i])
		}
	case string:
		r.compareText(file, at, theirs, ours)
	default:
		if a, b := fmt.Sprintf("%T", theirs), fmt.Sprintf("%T", ours); a != b {
			r.differ(file, at, "other type", theirs, ours)
		} else if theirs != ours && !slices.Contains(moments, path.Ext("." + at)[1:]) {
			r.differ(file, at, "other value", theirs, ours)
		}
	}
}

// compareText compares a text. An id that is met for the first time is learned.
func (r *replay) compareText(file, at, theirs string, ours any) {
	r.t.Helper()
	mine, ok := ours.(string)
	if !ok {
		r.differ(file, at, "other type", theirs, ours)
		return
	}
	key := path.Ext("." + at)[1:]
	if slices.Contains(ids, key) && r.ours[theirs] == "" && !strings.Contains(r.asked, theirs) && mine != "" {
		r.ours[theirs] = mine
	}
	if key == "preview" {
		r.compareMail(file, at, theirs, mine)
		return
	}
	a, errA := time.Parse(time.RFC3339, theirs)
	b, errB := time.Parse(time.RFC3339, mine)
	if errA == nil && errB == nil && (a.Truncate(time.Second).Equal(b) || a.Year() < 2099 && b.Year() < 2099) {
		return
	}
	want := sinkOrder.ReplaceAllString(r.translate(theirs), "SINK")
	if sinkOrder.ReplaceAllString(mine, "SINK") != want {
		r.differ(file, at, "other value", want, mine)
	}
}

// compareRows compares the rows of a list with rows of the same name, whatever their order.
func (r *replay) compareRows(file, at string, name func(any) string, theirs, ours any) {
	r.t.Helper()
	byName := map[string]any{}
	for _, row := range ours.([]any) {
		byName[name(row)] = row
	}
	for _, row := range theirs.([]any) {
		if mine, ok := byName[name(row)]; ok {
			r.compare(file, at, row, mine)
		} else {
			r.differ(file, at+" "+name(row), "absent", byName)
		}
	}
}

// fieldName is the name of a wrong field without its path.
func fieldName(row any) string { return path.Ext("." + row.(fields)["key"].(string)) }

// rowName is what a message of a list is known by: its subject and first recipient.
func rowName(row any) string {
	m := row.(fields)
	name := strings.TrimSpace(fmt.Sprint(m["subject"]))
	if to, _ := m["envelope"].(fields)["to"].([]any); len(to) > 0 {
		name += " " + to[0].(string)
	}
	return name
}

// hooked is a webhook as it arrived, or as it was recorded.
type hooked struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    fields            `json:"body"`
}

func (h hooked) data() fields { d, _ := h.Body["data"].(fields); return d }

// hookLog receives webhooks. It answers /status/404 with 404.
type hookLog struct {
	*httptest.Server
	mu   sync.Mutex
	got  []hooked
	more chan struct{}
}

func logHooks(t *testing.T) *hookLog {
	l := &hookLog{more: make(chan struct{}, 1000)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := hooked{URL: req.URL.Path, Headers: map[string]string{}}
		for name := range req.Header {
			h.Headers[strings.ToLower(name)] = req.Header.Get(name)
		}
		if err := json.NewDecoder(req.Body).Decode(&h.Body); err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		l.got = append(l.got, h)
		l.mu.Unlock()
		if code, ok := strings.CutPrefix(h.URL, "/status/"); ok {
			status, _ := strconv.Atoi(code)
			w.WriteHeader(status)
		}
		l.more <- struct{}{}
	}))
	t.Cleanup(l.Close)
	return l
}

// find returns the webhooks that match.
func (l *hookLog) find(matches func(hooked) bool) (found []hooked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.got {
		if matches(h) {
			found = append(found, h)
		}
	}
	return found
}

// wait waits for the nth webhook that matches.
func (r *replay) wait(what string, nth int, matches func(hooked) bool) hooked {
	r.t.Helper()
	late := time.After(apptest.Patience)
	for {
		if found := r.hooks.find(matches); len(found) >= nth {
			return found[nth-1]
		}
		select {
		case <-r.hooks.more:
		case <-late:
			r.t.Fatalf("no webhook %s within %s", what, apptest.Patience)
		}
	}
}

// about returns whether a webhook is of the event, URL and message of a recorded one.
func (r *replay) about(theirs hooked) func(hooked) bool {
	return func(h hooked) bool {
		if h.Body["event"] != theirs.Body["event"] || theirs.URL != "" && h.URL != theirs.URL {
			return false
		}
		for _, key := range []string{"queueId", "messageId", "account"} {
			if want, ok := theirs.data()[key].(string); ok && h.data()[key] != r.translate(want) {
				return false
			}
		}
		job, _ := theirs.data()["job"].(fields)
		mine, _ := h.data()["job"].(fields)
		return job == nil || mine["attemptsMade"] == job["attemptsMade"].(float64)+1 // ours counts this attempt
	}
}

// webhook waits for a recorded webhook and compares it.
func (r *replay) webhook(file string) {
	r.t.Helper()
	var theirs hooked
	r.load(file, &theirs)
	r.compareHook(file, theirs, r.wait(file, 1, r.about(theirs)))
}

func (r *replay) compareHook(file string, theirs, ours hooked) {
	r.t.Helper()
	for name, want := range theirs.Headers {
		own := strings.HasPrefix(name, "x-") || name == "content-type"
		if got, ok := ours.Headers[name]; own && !ok || name == "content-type" && got != want {
			r.differ(file, "header."+name, "absent", ours.Headers)
		}
	}
	r.compare(file, "", theirs.Body, ours.Body)
}

// unsent is a recorded webhook that Postroom has not sent by now.
func (r *replay) unsent(file string) {
	r.t.Helper()
	var theirs hooked
	r.load(file, &theirs)
	if sent := r.hooks.find(r.about(theirs)); len(sent) > 0 {
		r.t.Errorf("%s was sent: %v", file, sent)
	}
	r.differ(file, "event", "not sent")
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// compareMail compares two emails in base64.
func (r *replay) compareMail(file, at, theirs, ours string) {
	r.t.Helper()
	var text [2][]byte
	for i, encoded := range []string{theirs, ours} {
		var err error
		if text[i], err = base64.StdEncoding.DecodeString(encoded); err != nil {
			r.t.Fatal(err)
		}
	}
	r.compareMailText(file, at, string(text[0]), string(text[1]))
}

// compareMailText compares the headers of two emails.
func (r *replay) compareMailText(file, at, theirs, ours string) {
	r.t.Helper()
	var headers [2]mail.Header
	for i, text := range []string{theirs, ours} {
		m, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			r.t.Fatal(err)
		}
		headers[i] = m.Header
	}
	for name := range headers[0] {
		want, got := headers[0].Get(name), headers[1].Get(name)
		_, errA := mail.ParseDate(want)
		_, errB := mail.ParseDate(got)
		wantBase, _, _ := strings.Cut(want, "boundary=")
		gotBase, _, _ := strings.Cut(got, "boundary=")
		switch {
		case got == "":
			r.differ(file, at+"."+name, "absent", want)
		case errA == nil && errB == nil:
		case strings.TrimSpace(wantBase) != strings.TrimSpace(gotBase) && r.translate(want) != got:
			r.differ(file, at+"."+name, "other value", want, got)
		}
	}
}
