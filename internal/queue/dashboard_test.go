package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// witness notes the actions it is asked about and objects to tasks named so.
type witness struct {
	mu    sync.Mutex
	heard []string
	takes func(ids []string) // what it does to the tasks itself
}

func (w *witness) before(_ context.Context, a Action, queue string, from State, ids []string) []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.takes != nil {
		w.takes(ids)
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		w.heard = append(w.heard, fmt.Sprintf("%s %s %s %s", a, queue, from, id))
		if strings.HasPrefix(id, "keep") {
			errs[i] = errors.New("this one stays")
		}
	}
	return errs
}

// hears gives what was heard since the last call.
func (w *witness) hears() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.heard
	w.heard = nil
	slices.Sort(heard)
	return heard
}

// site is a dashboard mounted under a path of a real HTTP server.
type site struct {
	bench
	url     string
	witness *witness
}

func mount(t *testing.T, o DashboardOptions) site {
	t.Helper()
	s := site{bench: setup(t), witness: &witness{}}
	o.Path = "/admin/queues"
	if o.Before == nil {
		o.Before = s.witness.before
	}
	d, err := NewDashboard(s.redis, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.control.Register(t.Context(), Names()...); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/queues", d)
	mux.Handle("/admin/queues/", d)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/admin/queues"
	return s
}

// ask sends a request and gives status and body.
func (s site) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	res := s.response(t, method, path, body)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func (s site) response(t *testing.T, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// later gives a task that waits for its time.
func later(id string) Task {
	k := task(id)
	k.At = time.Now().Add(time.Hour)
	return k
}

func TestDashboardPagesNeedNoOtherHost(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{})
	for _, path := range []string{"", "/", "/queues/submit", "/queues/submit/tasks/m1.1", "/no.such.file"} {
		t.Run("page "+path, func(t *testing.T) {
			res := s.response(t, "GET", path, "")
			b, _ := io.ReadAll(res.Body)
			html := string(b)
			if res.StatusCode != 200 || !strings.Contains(html, `<div id="root">`) {
				t.Fatalf("%d %.200s", res.StatusCode, html)
			}
			if strings.Contains(html, "http://") || strings.Contains(html, "https://") {
				t.Error("the page points elsewhere")
			}
			policy := res.Header.Get("Content-Security-Policy")
			nonce := regexp.MustCompile(`'nonce-([^']+)'`).FindStringSubmatch(policy)
			if nonce == nil {
				t.Fatalf("no nonce in %q", policy)
			}
			if scripts, marked := strings.Count(html, "<script"), strings.Count(html, `<script nonce="`+nonce[1]+
				`"`); scripts != marked || scripts < 3 {
				t.Errorf("%d of %d scripts have the nonce", marked, scripts)
			}
			if strings.Contains(html, "\x00") || strings.Contains(html, "[[") {
				t.Error("the page is not filled in")
			}
		})
	}
	files := regexp.MustCompile(`src="/admin/queues(/[^"]+)"`).FindAllStringSubmatch(func() string {
		_, b := s.ask(t, "GET", "/", "")
		return b
	}(), -1)
	if len(files) < 2 {
		t.Fatalf("scripts: %v", files)
	}
	for _, f := range files {
		res := s.response(t, "GET", f[1], "")
		if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/javascript") {
			t.Errorf("%s: %d %s", f[1], res.StatusCode, res.Header.Get("Content-Type"))
		}
	}
}

func TestDashboardReads(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{Payload: func(taskType string, payload []byte) string {
		return taskType + "=" + strings.ToUpper(string(payload))
	}})
	s.enqueue(t, later("m1.1"), task("m2.1"))
	for _, path := range []string{
		"/api/queues", "/api/queues/submit", "/api/queues/bulk", "/api/queue_stats", "/api/servers",
		"/api/scheduler_entries", "/api/redis_info",
		"/api/queues/submit/active_tasks", "/api/queues/submit/pending_tasks", "/api/queues/submit/scheduled_tasks",
		"/api/queues/submit/retry_tasks",
		"/api/queues/submit/archived_tasks", "/api/queues/submit/completed_tasks", "/api/queues/submit/tasks/m1.1",
		"/api/queues/submit/groups",
	} {
		res := s.response(t, "GET", path, "")
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != 200 || !json.Valid(b) ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s %.200s", path, res.StatusCode, res.Header.Get("Content-Type"), b)
		}
	}
	if _, body := s.ask(t, "GET", "/api/queues/submit/tasks/m1.1", ""); !strings.Contains(body, `"send=M1.1"`) {
		t.Errorf("the payload is not formatted: %s", body)
	}
	if code, _ := s.ask(t, "GET", "/api/no_such", ""); code != 404 {
		t.Errorf("an unknown API path answers %d", code)
	}
	if _, body := s.ask(t, "GET", "/api/queues", ""); !strings.Contains(body, "documents") {
		t.Errorf("a queue that never had a task is not listed: %s", body)
	}
}

func TestDashboardListsAreBounded(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{})
	s.enqueue(t, many(250)...)
	for _, tt := range []struct {
		query string
		want  int
	}{{"", 20}, {"?size=50", 50}, {"?size=100000", 100}, {"?size=-1", 1}, {"?size=0", 1}, {"?size=x", 20}, {
		"?size=100&page=3", 50}, {"?page=-4", 20}} {
		code, body := s.ask(t, "GET", "/api/queues/submit/pending_tasks"+tt.query, "")
		var got struct{ Tasks []struct{ Payload string } }
		if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil {
			t.Fatalf("%s: %d %v", tt.query, code, err)
		}
		if len(got.Tasks) != tt.want {
			t.Errorf("%s: %d tasks, want %d", tt.query, len(got.Tasks), tt.want)
		}
		if got.Tasks[0].Payload != "8 bytes" {
			t.Errorf("%s: payload %q, want its size only", tt.query, got.Tasks[0].Payload)
		}
	}
}

func TestDashboardActions(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{})
	const base = "/api/queues/submit"
	tests := []struct {
		name               string
		tasks              []Task
		method, path, body string
		code               int
		answer             string
		heard              []string
		states             map[string]State
	}{
		{name: "pause", method: "POST", path: ":pause", code: 204},
		{name: "pause again", method: "POST", path: ":pause", code: 204},
		{name: "resume", method: "POST", path: ":resume", code: 204},
		{name: "resume again", method: "POST", path: ":resume", code: 204},
		{
			name: "delete one", tasks: []Task{later("a:1.1")}, method: "DELETE", path: "/scheduled_tasks/a:1.1",
			code:  204,
			heard: []string{"delete submit scheduled a:1.1"}, states: map[string]State{"a:1.1": ""},
		},
		{
			name: "delete one whose id ends like a verb", tasks: []Task{task("a:run")}, method: "DELETE",
			path: "/pending_tasks/a:run", code: 204,
			heard: []string{"delete submit pending a:run"}, states: map[string]State{"a:run": ""},
		},
		{
			name: "objection", tasks: []Task{task("keep.1")}, method: "DELETE", path: "/pending_tasks/keep.1",
			code: 500, answer: "this one stays\n",
			heard: []string{"delete submit pending keep.1"}, states: map[string]State{"keep.1": Waiting},
		},
		{
			name: "run one", tasks: []Task{later("b.1")}, method: "POST", path: "/scheduled_tasks/b.1:run", code: 204,
			heard: []string{"run submit scheduled b.1"}, states: map[string]State{"b.1": Waiting},
		},
		{
			name: "run one that runs", tasks: []Task{task("b.2")}, method: "POST", path: "/retry_tasks/b.2:run",
			code:  409,
			heard: []string{"run submit retry b.2"}, states: map[string]State{"b.2": Waiting},
		},
		{
			name: "archive one", tasks: []Task{task("c.1")}, method: "POST", path: "/pending_tasks/c.1:archive",
			code:  204,
			heard: []string{"archive submit pending c.1"}, states: map[string]State{"c.1": Archived},
		},
		{
			name: "cancel one", method: "POST", path: "/active_tasks/d.1:cancel", code: 204,
			heard: []string{"cancel submit active d.1"},
		},
		{
			name: "batch delete", tasks: []Task{task("e.1"), later("e.2"), task("keep.2")}, method: "POST",
			path: "/pending_tasks:batch_delete",
			body: `{"task_ids":["e.1","e.2","keep.2"]}`, code: 200,
			answer: `{"deleted_ids":["e.1","e.2"],"failed_ids":["keep.2"]}` + "\n",
			heard:  []string{"delete submit pending e.1", "delete submit pending e.2", "delete submit pending keep.2"},
			states: map[string]State{"e.1": "", "e.2": "", "keep.2": Waiting},
		},
		{
			name: "batch run", tasks: []Task{later("f.1"), later("keep.3")}, method: "POST",
			path: "/scheduled_tasks:batch_run",
			body: `{"task_ids":["f.1","keep.3"]}`, code: 200,
			answer: `{"error_ids":["keep.3"],"pending_ids":["f.1"]}` + "\n",
			heard:  []string{"run submit scheduled f.1", "run submit scheduled keep.3"},
			states: map[string]State{"f.1": Waiting, "keep.3": Scheduled},
		},
		{
			name: "batch archive", tasks: []Task{later("g.1")}, method: "POST", path: "/scheduled_tasks:batch_archive",
			body: `{"task_ids":["g.1"]}`, code: 200, answer: `{"archived_ids":["g.1"],"error_ids":[]}` + "\n",
			heard: []string{"archive submit scheduled g.1"}, states: map[string]State{"g.1": Archived},
		},
		{
			name: "batch cancel", method: "POST", path: "/active_tasks:batch_cancel", body: `{"task_ids":["h.1"]}`,
			code:   200,
			answer: `{"canceled_ids":["h.1"],"error_ids":[]}` + "\n", heard: []string{"cancel submit active h.1"},
		},
		{name: "batch without a body", method: "POST", path: "/active_tasks:batch_cancel", code: 400},
		{name: "batch with an unknown field", method: "POST", path: "/active_tasks:batch_cancel",
			body: `{"ids":[]}`, code: 400},
		{
			name: "run all", tasks: []Task{later("i.1"), later("i.2")}, method: "POST",
			path: "/scheduled_tasks:run_all", code: 200,
			answer: `{"scheduled":2}` + "\n", heard: []string{"run submit scheduled i.1", "run submit scheduled i.2"},
			states: map[string]State{"i.1": Waiting, "i.2": Waiting},
		},
		{
			name: "archive all", tasks: []Task{task("j.1"), later("j.2"), task("keep.4")}, method: "POST",
			path: "/pending_tasks:archive_all", code: 200,
			answer: `{"archived":1}` + "\n", heard: []string{"archive submit pending j.1",
				"archive submit pending keep.4"},
			states: map[string]State{"j.1": Archived, "j.2": Scheduled, "keep.4": Waiting},
		},
		{
			name: "delete all", tasks: []Task{later("k.1"), later("keep.5"), later("k.2")}, method: "DELETE",
			path: "/scheduled_tasks:delete_all", code: 200,
			answer: `{"deleted":2}` + "\n", heard: []string{"delete submit scheduled k.1",
				"delete submit scheduled k.2", "delete submit scheduled keep.5"},
			states: map[string]State{"k.1": "", "k.2": "", "keep.5": Scheduled},
		},
		{name: "cancel all", method: "POST", path: "/active_tasks:cancel_all", code: 204},
		{name: "delete all by POST", method: "POST", path: "/scheduled_tasks:delete_all", code: 404},
		{name: "delete the queue", method: "DELETE", path: "", code: 403,
			answer: "Queues cannot be deleted: Postroom's workers depend on them. Delete their tasks instead.\n"},
		{name: "no such list", method: "DELETE", path: "/lost_tasks/x", code: 404},
		{name: "no such verb", method: "POST", path: "/pending_tasks/x:eat", code: 404},
		{name: "no such queue", method: "POST", path: "-7:pause", code: 404, answer: "There is no such queue.\n"},
		{name: "no such task", method: "POST", path: "/pending_tasks/none.1:run", code: 204,
			heard: []string{"run submit pending none.1"}},
		{name: "groups are not used", method: "DELETE", path: "/groups/g/aggregating_tasks:delete_all", code: 404},
		{name: "no such method", method: "PUT", path: ":pause", code: 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { // one after the other, on one Redis
			s.redis.FlushDB(t.Context())
			s.enqueue(t, tt.tasks...)
			code, body := s.ask(t, tt.method, base+tt.path, tt.body)
			if code != tt.code {
				t.Errorf("answered %d %s, want %d", code, body, tt.code)
			}
			if tt.answer != "" && body != tt.answer {
				t.Errorf("answered %q, want %q", body, tt.answer)
			}
			if d := cmp.Diff(tt.heard, s.witness.hears()); d != "" {
				t.Errorf("heard: %s", d)
			}
			for id, want := range tt.states {
				if got := s.state(t, id); got != want {
					t.Errorf("%s is %q, want %q", id, got, want)
				}
			}
		})
	}
}

// The operator's part may have deleted the task already, as when a message is cancelled.
func TestDashboardActionDoneByTheOperator(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{})
	s.witness.takes = func(ids []string) { s.control.Delete(t.Context(), Submit, ids...) }
	s.enqueue(t, later("m.1"), later("m.2"))
	if code, body := s.ask(t, "DELETE", "/api/queues/submit/scheduled_tasks/m.1", ""); code != 204 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := s.ask(t, "DELETE", "/api/queues/submit/scheduled_tasks:delete_all", ""); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if n := s.hashes(t); n != 0 {
		t.Errorf("%d tasks left", n)
	}
}

func TestDashboardReadOnly(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{ReadOnly: true})
	s.enqueue(t, later("m.1"))
	for _, a := range [][2]string{
		{"DELETE", "/api/queues/submit/scheduled_tasks/m.1"}, {"POST", "/api/queues/submit:pause"},
		{"DELETE", "/api/queues/submit/scheduled_tasks:delete_all"}, {"DELETE", "/api/queues/submit"},
	} {
		if code, _ := s.ask(t, a[0], a[1], ""); code != 405 {
			t.Errorf("%v: %d, want 405", a, code)
		}
	}
	if s.state(t, "m.1") != Scheduled || len(s.witness.hears()) != 0 {
		t.Error("something was done")
	}
	if _, body := s.ask(t, "GET", "/", ""); !strings.Contains(body, `FLAG_READ_ONLY="true"`) {
		t.Error("the page shows its buttons")
	}
}

// One task without a hash made asynqmon answer 500 for all queues.
func TestMissingHashDoesNotBreakThePages(t *testing.T) {
	t.Parallel()
	s := mount(t, DashboardOptions{})
	s.enqueue(t, later("m.1"), later("m.2"), task("m.3"), task("m.4"))
	s.redis.Del(t.Context(), taskKey(Submit, "m.1"), taskKey(Submit, "m.3"))
	for _, path := range []string{"/api/queues", "/api/queues/submit", "/api/queues/submit/pending_tasks",
		"/api/queues/submit/scheduled_tasks"} {
		if code, body := s.ask(t, "GET", path, ""); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestDashboardPathMustBegin(t *testing.T) {
	t.Parallel()
	if _, err := NewDashboard(setup(t).redis, DashboardOptions{Path: "admin"}); err == nil {
		t.Error("no error")
	}
}
