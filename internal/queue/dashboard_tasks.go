package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxBatchBody is the longest body of a batch action, asynqmon's own limit.
const maxBatchBody = 1_000_000

// listed returns the state of a path segment such as "retry_tasks".
func listed(segment string) (State, error) {
	name, ok := strings.CutSuffix(segment, "_tasks")
	switch s := State(name); s {
	case Waiting, Active, Scheduled, Retrying, Archived, Completed:
		if ok {
			return s, nil
		}
	}
	return "", &refusal{http.StatusNotFound, "There is no such list of tasks."}
}

// deleteOne handles DELETE {state}_tasks/{id}.
func (d *Dashboard) deleteOne(w http.ResponseWriter, r *http.Request, queue string) error {
	return d.one(w, r, queue, ActionDelete)
}

// actOnOne handles POST {state}_tasks/{id}:run, :archive or :cancel.
func (d *Dashboard) actOnOne(w http.ResponseWriter, r *http.Request, queue string) error {
	a, err := actionOf(r.PathValue("verb"), "")
	if err != nil {
		return err
	}
	return d.one(w, r, queue, a)
}

func (d *Dashboard) one(w http.ResponseWriter, r *http.Request, queue string, a Action) error {
	from, err := listed(r.PathValue("tasks"))
	if err != nil {
		return err
	}
	if err := d.do(r.Context(), queue, a, from, []string{r.PathValue("id")})[0]; err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// actOnMany handles POST {state}_tasks:batch_{action} and :{action}_all.
func (d *Dashboard) actOnMany(w http.ResponseWriter, r *http.Request, queue string) error {
	if !strings.HasPrefix(r.PathValue("verb"), "batch_") {
		return d.actOnAll(w, r, queue)
	}
	a, err := actionOf(r.PathValue("verb"), "batch_")
	if err != nil {
		return err
	}
	from, err := listed(r.PathValue("tasks"))
	if err != nil {
		return err
	}
	var body struct {
		IDs []string `json:"task_ids"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBatchBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return &refusal{http.StatusBadRequest, "The body must be an object with task_ids: " + err.Error()}
	}
	ok, failed := []string{}, []string{} // never null in JSON
	for ids := range slices.Chunk(body.IDs, chunk) {
		for i, err := range d.do(r.Context(), queue, a, from, ids) {
			if err == nil {
				ok = append(ok, ids[i])
			} else {
				failed = append(failed, ids[i])
			}
		}
	}
	names := batchNames[a]
	return answer(w, map[string][]string{names[0]: ok, names[1]: failed})
}

// batchNames are the fields of asynqmon's responses to batch actions: done and not done.
var batchNames = map[Action][2]string{
	ActionDelete:  {"deleted_ids", "failed_ids"},
	ActionRun:     {"pending_ids", "error_ids"},
	ActionArchive: {"archived_ids", "error_ids"},
	ActionCancel:  {"canceled_ids", "error_ids"},
}

// actOnAll handles POST {state}_tasks:run_all, :archive_all, :cancel_all and DELETE
// {state}_tasks:delete_all.
func (d *Dashboard) actOnAll(w http.ResponseWriter, r *http.Request, queue string) error {
	verb := r.PathValue("verb")
	if r.Method == http.MethodDelete {
		verb = "delete_all"
	}
	a, err := actionOf(strings.TrimSuffix(verb, "_all"), "")
	if err != nil || !strings.HasSuffix(verb, "_all") {
		return &refusal{http.StatusNotFound, "There is no such action."}
	}
	from, err := listed(r.PathValue("tasks"))
	if err != nil {
		return err
	}
	if a == ActionCancel {
		return d.cancelAll(w, r, queue, from)
	}
	n, err := d.all(r.Context(), queue, a, from)
	d.log.Info("tasks changed in the dashboard", "queue", queue, "action", string(a), "state", string(from),
		"count", n)
	if err != nil {
		return fmt.Errorf("after %d tasks: %w", n, err)
	}
	field := map[Action]string{ActionDelete: "deleted", ActionRun: "scheduled", ActionArchive: "archived"}[a]
	return answer(w, map[string]int{field: n})
}

// all runs an action on all tasks in a state.
func (d *Dashboard) all(ctx context.Context, queue string, a Action, from State) (int, error) {
	before := func(ctx context.Context, ids []string) []error { return d.ask(ctx, a, queue, from, ids) }
	switch a {
	case ActionDelete:
		return d.control.DeleteAll(ctx, queue, from, before)
	case ActionRun:
		return d.control.RunAll(ctx, queue, from, before)
	}
	return d.control.ArchiveAll(ctx, queue, from, before)
}

// cancelAll cancels every active task.
func (d *Dashboard) cancelAll(w http.ResponseWriter, r *http.Request, queue string, from State) error {
	if from != Active {
		return ErrWrongState
	}
	n, err := d.control.size(r.Context(), queue, Active)
	if err != nil {
		return err
	}
	for skip := 0; skip < n; skip += chunk {
		ids, err := d.control.oldest(r.Context(), queue, Active, skip, min(chunk, n-skip))
		if err != nil {
			return err
		}
		if err := errors.Join(d.do(r.Context(), queue, ActionCancel, Active, ids)...); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// do calls Before and runs the action on at most a hundred tasks. It returns one error for each id.
func (d *Dashboard) do(ctx context.Context, queue string, a Action, from State, ids []string) []error {
	errs := make([]error, len(ids))
	copy(errs, d.ask(ctx, a, queue, from, ids))
	agreed := agreed(ids, errs)
	if len(agreed) == 0 {
		return errs
	}
	done := d.perform(ctx, queue, a, agreed)
	for i := range errs {
		if errs[i] != nil {
			continue
		}
		errs[i], done = done[0], done[1:]
		if d.before != nil && errors.Is(errs[i], ErrNoTask) {
			errs[i] = nil // Before has taken care of the task
		}
	}
	d.log.Info("tasks changed in the dashboard", "queue", queue, "action", string(a), "count", len(agreed),
		"task_id", agreed[0])
	return errs
}

// perform runs the action on the tasks that Before permitted.
func (d *Dashboard) perform(ctx context.Context, queue string, a Action, ids []string) []error {
	switch a {
	case ActionDelete:
		return d.control.Delete(ctx, queue, ids...)
	case ActionRun:
		return d.control.RunNow(ctx, queue, ids...)
	case ActionArchive:
		return d.control.Archive(ctx, queue, ids...)
	}
	return all(len(ids), d.control.Cancel(ctx, ids...))
}

func (d *Dashboard) ask(ctx context.Context, a Action, queue string, from State, ids []string) []error {
	if d.before == nil {
		return nil
	}
	return d.before(ctx, a, queue, from, ids)
}

// actionOf parses the verb of a path.
func actionOf(verb, prefix string) (Action, error) {
	switch a := Action(strings.TrimPrefix(verb, prefix)); a {
	case ActionDelete, ActionRun, ActionArchive, ActionCancel:
		return a, nil
	}
	return "", &refusal{http.StatusNotFound, "There is no such action."}
}
