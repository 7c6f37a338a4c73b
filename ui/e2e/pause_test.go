package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// pauser pauses and resumes mail, and looks at the pauses, in every way there is.
type pauser struct {
	t          *testing.T
	url, token string
	client     *api.Client
	inspector  *asynq.Inspector
	partitions int
	log        *apptest.Log
}

// TestPauseIsTheSameEverywhere pauses and resumes in the dashboard, over the API and on the page. After each
// step all of them say the same, of both lanes and all partitions.
func TestPauseIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			p := newPauser(t, partitions)
			part := "" // the end of the name of some queue of a lane
			if partitions > 1 {
				part = "-1"
			}
			both, transactional, bulk, none := pauses{true, true}, pauses{true, false}, pauses{false, true}, pauses{}
			for i, step := range []struct {
				do          func(queue string, paused bool)
				name, queue string
				paused      bool
				want        pauses
			}{
				{p.board, "dashboard", "submit", true, both},
				{p.board, "dashboard", "submit", false, none},
				{p.put, "API", "submit", true, both},
				{p.board, "dashboard", "bulk" + part, false, transactional},
				{p.board, "dashboard", "submit" + part, false, none},
				{p.board, "dashboard", "bulk" + part, true, bulk},
				{p.put, "API", "bulk", false, none},
				{p.press, "page", "bulk", true, bulk},
				{p.board, "dashboard", "bulk", false, none},
				{p.board, "dashboard", "submit" + part, true, both},
				{p.press, "page", "submit", false, none},
			} {
				step.do(step.queue, step.paused)
				what := fmt.Sprintf("%s sets %s paused=%t", step.name, step.queue, step.paused)
				p.sees(what, step.want)
				if n := strings.Count(p.log.String(), `msg="queue switched"`); n != i+1 {
					t.Errorf("%s: %d log lines, want %d", what, n, i+1)
				}
			}
		})
	}
}

// TestPauseByAsynqsTools leaves one of three queues paused behind our back. The lane reads paused, only
// the messages of that queue wait for the end of the pause, and anybody can end it.
func TestPauseByAsynqsTools(t *testing.T) {
	t.Parallel()
	p := newPauser(t, 3)
	p.put("submit", true)
	held := 0
	for held == 0 {
		p.submit(api.Transactional)
		info, err := p.inspector.GetQueueInfo("submit-2")
		p.must(err)
		held = info.Pending
	}
	for _, name := range []string{"submit", "submit-1", "bulk", "bulk-1", "bulk-2"} {
		p.must(p.inspector.UnpauseQueue(name))
	}
	apptest.Eventually(t, "the other queues are empty", func() bool {
		q, err := api.GetQueue.Do(t.Context(), p.client, "submit")
		return err == nil && q.Paused && q.Jobs.Paused == held && q.Jobs.Waiting+q.Jobs.Active == 0
	})
	page, err := api.ListOutbox.Do(t.Context(), p.client, api.OutboxQuery{State: api.Paused})
	if err != nil || page.Total != held {
		t.Errorf("%d messages are listed as paused, %v; want %d", page.Total, err, held)
	}
	p.press("submit", false)
	p.sees("page resumes", pauses{})
}

// TestWaitInAPausedQueueIsInTheTimeline pauses in the dashboard and resumes on the page. The message shows
// its wait while it lasts, and when it was sent; a message that came in afterwards has none.
func TestWaitInAPausedQueueIsInTheTimeline(t *testing.T) {
	t.Parallel()
	p := newPauser(t, 3)
	p.board("submit", true)
	id := p.submit(api.Transactional)
	waits := func(id string) (all []api.MessageEvent) {
		story, err := api.ListMessageEvents.Do(t.Context(), p.client, id)
		p.must(err)
		for _, e := range story.Events {
			if e.Event == "messageWaited" {
				all = append(all, e)
			}
		}
		return all
	}
	const reason = "the queue is paused"
	if got := waits(id); len(got) != 1 || got[0].Until != nil || got[0].Reason != reason {
		t.Errorf("while it waits: %+v", got)
	}
	if page := p.ask(http.MethodGet, "/messages/"+id); !strings.Contains(page, reason) {
		t.Error("the page of the message does not say that the queue is paused")
	}
	began := waits(id)[0].Date
	apptest.Eventually(t, "more than a second has passed",
		func() bool { return time.Since(began) > 1500*time.Millisecond })
	p.press("submit", false)
	later := p.submit(api.Transactional)
	for _, one := range []string{id, later} {
		apptest.Eventually(t, "it was sent", func() bool {
			m, err := api.GetLoggedMessage.Do(t.Context(), p.client, one)
			return err == nil && m.Status == api.StatusSent
		})
	}
	got := waits(id)
	if len(got) != 1 || !got[0].Date.Equal(began) || got[0].Until == nil ||
		got[0].Until.Sub(began) < time.Second || got[0].Reason != reason {
		t.Errorf("after it was sent: %+v, want one from %s", got, began)
	}
	if got := waits(later); len(got) > 0 {
		t.Errorf("after the pause: %+v", got)
	}
}

// pauses are the lanes that are paused.
type pauses struct{ Transactional, Bulk bool }

func newPauser(t *testing.T, partitions int) *pauser {
	relay := testsmtp.Start(t, testsmtp.Options{})
	log, redisURL := &apptest.Log{}, testredis.URL(t)
	a := apptest.RunLogging(t, map[string]string{"redis.url": redisURL,
		"redis.partitions": fmt.Sprint(partitions),
		"smtp":             relay.URL(), "from": "Shop <shop@example.com>"}, slog.New(slog.NewTextHandler(log,
		nil)))
	db := testredis.Connect(t, redisdb.Options{URL: redisURL, Partitions: partitions})
	return &pauser{t: t, url: a.URL(), token: a.Token(), client: api.NewClient(a.URL(), a.Token(), nil),
		inspector: asynq.NewInspectorFromRedisClient(db.Client()), partitions: partitions, log: log}
}

func (p *pauser) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pauser) submit(lane api.Lane) string {
	p.t.Helper()
	answer, err := api.Submit.Do(p.t.Context(), p.client, api.SubmitRequest{Lane: lane, Subject: "x",
		To: api.Addresses{{Address: "ada@example.net"}}})
	p.must(err)
	return answer.QueueID
}

// put pauses or resumes over the API.
func (p *pauser) put(queue string, paused bool) {
	p.t.Helper()
	_, err := api.PutQueue.Do(p.t.Context(), p.client, api.QueuePatch{Paused: &paused}, queue)
	p.must(err)
}

var pauseVerbs = map[bool]string{true: "pause", false: "resume"}

// board does so in the dashboard.
func (p *pauser) board(queue string, paused bool) {
	p.t.Helper()
	p.ask(http.MethodPost, "/admin/queues/api/queues/"+queue+":"+pauseVerbs[paused])
}

// press does so on the page.
func (p *pauser) press(queue string, paused bool) {
	p.t.Helper()
	p.ask(http.MethodPost, "/queues/"+queue+"/"+pauseVerbs[paused])
}

func (p *pauser) ask(method, path string) string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, nil)
	p.must(err)
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	p.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	p.must(err)
	if res.StatusCode >= 300 {
		p.t.Fatalf("%s %s answered %d: %s", method, path, res.StatusCode, body)
	}
	return string(body)
}

// sees compares what the API, the stats, the page, the dashboard and new messages say with want.
func (p *pauser) sees(what string, want pauses) {
	p.t.Helper()
	all := map[string]pauses{}
	submit, err := api.GetQueue.Do(p.t.Context(), p.client, "submit")
	p.must(err)
	bulk, err := api.GetQueue.Do(p.t.Context(), p.client, "bulk")
	p.must(err)
	all["API"] = pauses{submit.Paused, bulk.Paused}
	stats, err := api.GetStats.Do(p.t.Context(), p.client, api.CounterQuery{})
	p.must(err)
	all["stats"] = pauses{stats.Queues["submit"].IsPaused, want.Bulk} // which have no row of bulk
	page := p.ask(http.MethodGet, "/outbox")
	sending := strings.Contains(page, "Sending is paused")
	all["page"] = pauses{sending || strings.Contains(page, "Transactional sending is paused"),
		sending || strings.Contains(page, "Bulk sending is paused")}
	paused := p.onBoard()
	all["dashboard"] = pauses{slices.Contains(paused, "submit"), slices.Contains(paused, "bulk")}
	if n := len(paused) % p.partitions; n != 0 {
		p.t.Errorf("%s: the dashboard shows only %v as paused", what, paused)
	}
	state := func(lane api.Lane, held bool) bool {
		if !held {
			return false
		}
		m, err := api.GetMessage.Do(p.t.Context(), p.client, p.submit(lane))
		p.must(err)
		return m.State == api.Paused
	}
	all["messages"] = pauses{state(api.Transactional, want.Transactional), state(api.Bulk, want.Bulk)}
	for who, got := range all {
		if d := cmp.Diff(want, got); d != "" {
			p.t.Errorf("%s: of %s: %s", what, who, d)
		}
	}
}

// onBoard returns the queues that the dashboard shows as paused.
func (p *pauser) onBoard() (paused []string) {
	p.t.Helper()
	var list struct {
		Queues []struct {
			Queue  string `json:"queue"`
			Paused bool   `json:"paused"`
		} `json:"queues"`
	}
	p.must(json.Unmarshal([]byte(p.ask(http.MethodGet, "/admin/queues/api/queues")), &list))
	for _, q := range list.Queues {
		if q.Paused {
			paused = append(paused, q.Queue)
		}
	}
	return paused
}

// TestDeletedWebhookTask deletes the task of a delivery in the dashboard: the delivery ends and says why, and
// the sweeper makes no other task.
func TestDeletedWebhookTask(t *testing.T) {
	t.Parallel()
	p := newPauser(t, 1)
	p.board("notify", true)
	hook := api.EndpointRequest{URL: "https://hooks.example.net/"}
	e, err := api.CreateEndpoint.Do(t.Context(), p.client, hook)
	p.must(err)
	p.submit(api.Transactional)
	var tasks []*asynq.TaskInfo
	apptest.Eventually(t, "the deliveries of a message wait", func() bool {
		tasks, err = p.inspector.ListPendingTasks("notify")
		return err == nil && len(tasks) == 2
	})
	p.ask(http.MethodDelete, "/admin/queues/api/queues/notify/pending_tasks/"+tasks[0].ID)
	gone, _, _ := strings.Cut(tasks[0].ID, ".")
	d, err := api.GetDelivery.Do(t.Context(), p.client, e.ID, gone)
	p.must(err)
	if d.Status != "skipped" || d.Error != "its task was taken out of the queue" {
		t.Errorf("%+v", d)
	}
	page, err := api.ListDeliveries.Do(t.Context(), p.client, api.DeliveryQuery{}, e.ID)
	p.must(err)
	if len(page.Deliveries) != 2 || page.Deliveries[0].Status == page.Deliveries[1].Status {
		t.Errorf("deliveries %+v: one waits", page.Deliveries)
	}
}
