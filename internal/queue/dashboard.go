package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/hibiken/asynqmon"
	"github.com/redis/go-redis/v9"
)

// Action is an operator's action in the dashboard.
type Action string

// The actions on tasks.
const (
	ActionDelete  Action = "delete"  // remove tasks
	ActionRun     Action = "run"     // have tasks run now
	ActionArchive Action = "archive" // put tasks aside
	ActionCancel  Action = "cancel"  // end the handlers of active tasks
)

// DashboardOptions are the settings of a Dashboard.
type DashboardOptions struct {
	// Path is where the dashboard is mounted, as the browser sees it, such as "/admin/queues"; empty: "/".
	// Requests have their whole path, without prefix stripping.
	Path string
	// Queues that actions may change; defaults to Names().
	Queues []string
	// Payload formats a task's payload for display, and omits or masks what an operator must not see. If nil,
	// only its size is shown.
	Payload func(taskType string, payload []byte) string
	// ReadOnly refuses every action and hides the buttons.
	ReadOnly bool
	// Before is called before each action, so that the records of the tasks stay consistent. Optional. It gets
	// at most a hundred ids of tasks that the operator saw in the state from. It returns one error for each, or
	// nil for none. A task with an error is not changed, and the operator sees the error. Before may delete or
	// move the tasks itself: a missing one counts as done.
	Before func(ctx context.Context, a Action, queue string, from State, ids []string) []error
	// SetPaused pauses or resumes a queue, which may be a part of a larger one; nil does it for that queue
	// alone. The operator sees its error.
	SetPaused func(ctx context.Context, queue string, paused bool) error
	Logger    *slog.Logger // nil to discard
}

// Dashboard serves asynqmon's pages and its API. It replaces asynqmon's actions on tasks and queues. Those on
// tasks run in small steps, through Control, after a call of Before. Only reads reach asynqmon.
// It has no users. The caller must authenticate requests and refuse those from other sites
// (http.CrossOriginProtection).
type Dashboard struct {
	path      string
	queues    []string
	readOnly  bool
	control   *Control
	before    func(ctx context.Context, a Action, queue string, from State, ids []string) []error
	setPaused func(ctx context.Context, queue string, paused bool) error
	log       *slog.Logger
	mon       http.Handler
	index     *indexPage
	actions   *http.ServeMux
}

// NewDashboard returns a Dashboard. The connection is the plain one: asynqmon shows facts about Redis only
// for a *redis.Client or a *redis.ClusterClient.
func NewDashboard(c redis.UniversalClient, o DashboardOptions) (*Dashboard, error) {
	path := strings.TrimSuffix(o.Path, "/")
	if path != "" && !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("dashboard path %q does not begin with a slash", o.Path)
	}
	d := &Dashboard{path: path, queues: o.Queues, readOnly: o.ReadOnly, control: NewControl(c), before: o.Before,
		setPaused: o.SetPaused, log: o.Logger}
	if len(d.queues) == 0 {
		d.queues = Names()
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.setPaused == nil {
		d.setPaused = d.control.setPaused
	}
	payload := o.Payload
	if payload == nil {
		payload = func(_ string, payload []byte) string { return fmt.Sprintf("%d bytes", len(payload)) }
	}
	d.mon = asynqmon.New(asynqmon.Options{
		RootPath:         path,
		RedisConnOpt:     &monConnections{client: c},
		PayloadFormatter: asynqmon.PayloadFormatterFunc(payload),
		ResultFormatter:  asynqmon.ResultFormatterFunc(payload),
		ReadOnly:         o.ReadOnly,
	})
	var err error
	if d.index, err = newIndexPage(d.mon, path); err != nil {
		return nil, err
	}
	d.actions = d.routes()
	return d, nil
}

// ServeHTTP serves pages, the read requests of asynqmon's API, and actions.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inside, ok := strings.CutPrefix(r.URL.Path, d.path)
	if !ok || (inside != "" && inside[0] != '/') {
		http.NotFound(w, r)
		return
	}
	api := inside == "/api" || strings.HasPrefix(inside, "/api/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		d.serveAction(w, r, inside)
	case api:
		d.serveReading(w, r)
	default:
		d.index.serve(w, r, d.mon)
	}
}

// serveReading passes a read request to asynqmon, with a limit on the page size.
func (d *Dashboard) serveReading(w http.ResponseWriter, r *http.Request) {
	r = r.Clone(r.Context())
	r.Method = http.MethodGet // asynqmon knows no HEAD; net/http leaves out the body
	boundPage(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8") // asynqmon sets none
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	d.mon.ServeHTTP(&apiAnswer{ResponseWriter: w}, r)
}

// serveAction refuses forbidden actions and runs the others.
func (d *Dashboard) serveAction(w http.ResponseWriter, r *http.Request, inside string) {
	if d.readOnly {
		http.Error(w, "The dashboard is read-only.", http.StatusMethodNotAllowed)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = actionPath(r.Method, inside), ""
	d.actions.ServeHTTP(w, inner)
}

// actionPath puts the verb of asynqmon's paths into a separate segment, for the router: "/x/t.1:run" becomes
// "/x/t.1/do/run". The verb follows the last colon. Task ids may contain colons too, and the path that
// deletes one task has no verb.
func actionPath(method, inside string) string {
	i := strings.LastIndexByte(inside, ':')
	if i < 0 {
		return inside
	}
	verb := inside[i+1:]
	if (method == http.MethodDelete) == (verb == "delete_all") && slices.Contains(verbs, verb) {
		return inside[:i] + "/do/" + inside[i+1:]
	}
	return inside
}

var verbs = []string{
	"pause", "resume", "run", "archive", "cancel", "delete_all", "run_all", "archive_all", "cancel_all",
	"batch_delete", "batch_run", "batch_archive", "batch_cancel",
}

// routes is the table of all actions.
func (d *Dashboard) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(w http.ResponseWriter, r *http.Request, queue string) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /api/queues/{queue}"+path, func(w http.ResponseWriter, r *http.Request) {
			d.act(w, r, h)
		})
	}
	handle("DELETE ", refuseQueueDeletion)
	handle("POST /do/pause", d.pausing(true))
	handle("POST /do/resume", d.pausing(false))
	handle("DELETE /{tasks}/{id}", d.deleteOne)
	handle("POST /{tasks}/{id}/do/{verb}", d.actOnOne)
	handle("DELETE /{tasks}/do/delete_all", d.actOnAll)
	handle("POST /{tasks}/do/{verb}", d.actOnMany)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "There is no such action.", http.StatusNotFound)
	})
	return mux
}

// act runs one action for a known queue, and logs and reports its failure.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request,
	string) error) {
	q := r.PathValue("queue")
	if !slices.Contains(d.queues, q) {
		http.Error(w, "There is no such queue.", http.StatusNotFound)
		return
	}
	err := h(w, r, q)
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		status = refused.status
	case errors.Is(err, ErrNoTask):
		status = http.StatusNotFound
	case errors.Is(err, ErrActive), errors.Is(err, ErrWrongState):
		status = http.StatusConflict
	}
	d.log.Warn("dashboard action failed", "queue", q, "method", r.Method, "path", r.URL.Path, "error", err)
	http.Error(w, err.Error(), status)
}

// refusal is an error with an HTTP status and a sentence for the operator.
type refusal struct {
	status   int
	sentence string
}

func (e *refusal) Error() string { return e.sentence }

// refuseQueueDeletion refuses DELETE of a queue. asynq would leave its completed tasks, pause and counters
// behind. Workers would continue to use it unseen, and every message waiting in it would be stranded.
func refuseQueueDeletion(http.ResponseWriter, *http.Request, string) error {
	return &refusal{http.StatusForbidden,
		"Queues cannot be deleted: Postroom's workers depend on them. Delete their tasks instead."}
}

// pausing handles POST {queue}:pause and :resume.
func (d *Dashboard) pausing(paused bool) func(http.ResponseWriter, *http.Request, string) error {
	return func(w http.ResponseWriter, r *http.Request, queue string) error {
		if err := d.setPaused(r.Context(), queue, paused); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// answer writes a JSON response.
func answer(w http.ResponseWriter, body any) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return json.NewEncoder(w).Encode(body)
}
