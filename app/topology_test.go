package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestAPIAndWorkersApart runs two APIs and three workers on one Redis, and kills a worker under load.
func TestAPIAndWorkersApart(t *testing.T) {
	t.Parallel()
	const messages = 600
	relay := apptest.SlowRelay(t, 10*time.Millisecond)
	redis := testredis.Server(t)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["workers.submit"] = "10"
	apis := []*apptest.Process{apptest.SpawnAs(t, set, "api"), apptest.SpawnAs(t, set, "api")}
	workers := []*apptest.Process{apptest.SpawnAs(t, set, "worker"), apptest.SpawnAs(t, set, "worker"),
		apptest.SpawnAs(t, set, "worker")}

	if _, err := api.PutQueue.Do(t.Context(), apis[0].Client, api.QueuePatch{Paused: new(true)},
		"submit"); err != nil {
		t.Fatal(err)
	}
	attempts := 7
	if _, err := api.UpdateSettings.Do(t.Context(), apis[0].Client,
		api.Settings{DeliveryAttempts: &attempts}); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the other API sees the pause and the settings", func() bool {
		q, errQueue := api.GetQueue.Do(t.Context(), apis[1].Client, "submit")
		s, errSettings := api.GetSettings.Do(t.Context(), apis[1].Client)
		return errQueue == nil && errSettings == nil && q.Paused && *s.DeliveryAttempts == attempts
	})
	accepted := submitInTurn(t, apis, messages)
	if n := relay.Count(); n != 0 {
		t.Errorf("%d messages were sent while the queue was paused", n)
	}
	for i, p := range apis {
		page, err := api.ListOutbox.Do(t.Context(), p.Client, api.OutboxQuery{State: api.Paused})
		if err != nil || page.Total != messages {
			t.Errorf("API %d lists %d paused messages, %v, want %d", i, page.Total, err, messages)
		} else if page.Messages[0].Attempts != attempts {
			t.Errorf("API %d: %d attempts, want the %d of the settings", i, page.Messages[0].Attempts, attempts)
		}
	}

	if _, err := api.PutQueue.Do(t.Context(), apis[1].Client, api.QueuePatch{Paused: new(false)},
		"submit"); err != nil {
		t.Fatal(err)
	}
	relay.Wait(messages / 6)
	workers[0].Kill()
	apptest.Empty(t, apis[1].Client)
	take(t, relay, apptest.Connect(t, redis.URL())).check(t, accepted)
	for i, w := range workers[1:] {
		if n := sentBy(t, w); n < messages/20 {
			t.Errorf("worker %d sent %d of %d messages", i+1, n, messages)
		}
	}
}

// submitInTurn submits messages to several APIs in turn and returns the recipients.
func submitInTurn(t *testing.T, apis []*apptest.Process, n int) []string {
	t.Helper()
	accepted := make([]string, n)
	var wg sync.WaitGroup
	for part := range 10 {
		wg.Go(func() {
			for i := part; i < n; i += 10 {
				accepted[i] = fmt.Sprintf("ann%d@example.net", i)
				if err := insist(t, apis[i/10%len(apis)].Client, accepted[i]); err != nil {
					t.Errorf("submit %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return accepted
}

// TestPartitionsOnACluster runs everything on three masters, each with a replica, and six partitions.
func TestPartitionsOnACluster(t *testing.T) {
	t.Parallel()
	const partitions = 6
	g := testredis.Cluster(t, testredis.Topology{Replicas: 1})
	everything(t, map[string]string{"redis.url": g.URL(), "redis.partitions": fmt.Sprint(partitions),
		"redis.waitReplicas": "1", "redis.waitTimeout": "5s"})
	for i, p := range g.Masters {
		c := p.Client(t)
		streams, err := c.Keys(t.Context(), "postroom:*:events").Result()
		if err != nil || len(streams) == 0 || len(streams) == partitions {
			t.Errorf("node %d has the events of %d of %d partitions, %v", i, len(streams), partitions, err)
		}
	}
}

// everything does once what people and programs do with Postroom, with two processes on the given Redis.
func everything(t *testing.T, settings map[string]string) {
	t.Helper()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	set := apptest.SettingsFor(t, settings["redis.url"], relay)
	maps.Copy(set, settings)
	set["webhooks.allowPrivate"] = "true"
	day := &everyday{relay: relay, hooks: hooks, one: apptest.SpawnAs(t, set, "api"), other: apptest.SpawnAs(t,
		set, "all")}
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"subscribe", day.subscribe}, {"send", day.send}, {"pause", day.pause}, {"reschedule", day.reschedule},
		{"replay", day.replay}, {"operate", day.operate},
	} {
		t.Run(part.name, part.do)
	}
	day.one.Stop(t)
	day.other.Stop(t)
}

// everyday is a Postroom of two processes with the servers around it.
type everyday struct {
	relay      *testsmtp.Server
	hooks      *apptest.Receiver
	one, other *apptest.Process
}

func (d *everyday) subscribe(t *testing.T) {
	t.Helper()
	if _, err := api.CreateEndpoint.Do(t.Context(), d.one.Client, api.EndpointRequest{
		URL: d.hooks.URL}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CreateToken.Do(t.Context(), d.other.Client, api.TokenRequest{Description: "app",
		Scopes: []api.Scope{api.ScopeSend}})
	if err != nil {
		t.Fatal(err)
	}
	account := api.Account{Account: "shop", Name: "Shop", Email: "shop@example.com", SMTP: &api.SMTPServer{
		Host: d.relay.Host(), Port: d.relay.Port()}}
	if _, err := api.CreateAccount.Do(t.Context(), d.one.Client, account); err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(d.one.URL, token.Token, nil)
	if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Account: "shop", To: api.Addresses{
		{Address: "first@example.net"}}, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	d.relay.Wait(1)
}

// submit submits a message to one process or the other.
func (d *everyday) submit(t *testing.T, n int, req api.SubmitRequest) api.SubmitAnswer {
	t.Helper()
	answer, err := api.Submit.Do(t.Context(), []*apptest.Process{d.one, d.other}[n%2].Client, req)
	if err != nil {
		t.Fatalf("submit %d: %v", n, err)
	}
	return answer
}

// send checks that messages are delivered, that each has a webhook, and that an idempotency key is respected.
func (d *everyday) send(t *testing.T) {
	t.Helper()
	const n = 60
	d.relay.Forget()
	ids := map[string]bool{}
	for i := range n {
		lane := api.Transactional
		if i%5 == 0 {
			lane = api.Bulk
		}
		ids[d.submit(t, i, api.SubmitRequest{To: toOne("ann%d@example.net", i), Text: "x",
			Lane: lane}).QueueID] = true
	}
	d.relay.Wait(n)
	apptest.Eventually(t, "a webhook about each message sent",
		func() bool { return d.hooks.About(event.MessageSent, ids) == n })
	keyed := api.SubmitRequest{To: toOne("key%d@example.net", 0), Text: "x", IdempotencyKey: "order-1"}
	if first, again := d.submit(t, 0, keyed), d.submit(t, 1, keyed); first.QueueID != again.QueueID {
		t.Errorf("one key, two messages: %s, %s", first.QueueID, again.QueueID)
	}
	d.relay.Wait(n + 1)
}

// pause holds messages, lists them page by page, and cancels some of them.
func (d *everyday) pause(t *testing.T) {
	t.Helper()
	const n = 13
	apptest.Empty(t, d.one.Client)
	d.relay.Forget()
	if _, err := api.PutQueue.Do(t.Context(), d.one.Client, api.QueuePatch{Paused: new(true)},
		"submit"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the pause is seen everywhere", func() bool {
		q, err := api.GetQueue.Do(t.Context(), d.other.Client, "submit")
		return err == nil && q.Paused
	})
	for i := range n {
		d.submit(t, i, api.SubmitRequest{To: toOne("held%d@example.net", i), Text: "x"})
	}
	var listed []string
	for m, err := range api.All(t.Context(), d.other.Client, api.ListOutbox,
		api.OutboxQuery{PageSize: 4, State: api.Paused}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, m.QueueID)
	}
	if len(listed) != n {
		t.Fatalf("%d paused messages are listed, want %d", len(listed), n)
	}
	if answer, err := api.CancelMessage.Do(t.Context(), d.other.Client, listed[0]); err != nil ||
		!answer.Deleted {
		t.Errorf("cancel: %+v, %v", answer, err)
	}
	if answer, err := api.CancelMessages.Do(t.Context(), d.one.Client,
		api.OutboxQuery{Search: "held1@"}); err != nil || answer.Deleted > 1 {
		t.Errorf("cancel by search: %+v, %v", answer, err)
	}
	page, err := api.ListOutbox.Do(t.Context(), d.one.Client, api.OutboxQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.PutQueue.Do(t.Context(), d.other.Client, api.QueuePatch{Paused: new(false)},
		"submit"); err != nil {
		t.Fatal(err)
	}
	d.relay.Wait(page.Total)
	apptest.Empty(t, d.one.Client)
	if got := len(d.relay.Messages()); got != page.Total {
		t.Errorf("%d were sent of the %d left", got, page.Total)
	}
}

// reschedule sends at once a message that was scheduled for tomorrow.
func (d *everyday) reschedule(t *testing.T) {
	t.Helper()
	const n = 6
	d.relay.Forget()
	tomorrow := time.Now().Add(24 * time.Hour)
	for i := range n {
		later := d.submit(t, i, api.SubmitRequest{To: toOne("later%d@example.net", i), Text: "x",
			SendAt: &tomorrow})
		if _, err := api.RetryMessage.Do(t.Context(), d.other.Client, later.QueueID); err != nil {
			t.Errorf("retry now: %v", err)
		}
	}
	d.relay.Wait(n)
}

// replay sends again, one by one and together, messages that were refused the first time.
func (d *everyday) replay(t *testing.T) {
	t.Helper()
	const n = 8
	d.relay.Forget()
	for i := range n {
		d.submit(t, i, api.SubmitRequest{To: toOne("rcpt-554-1+%d@example.net", i), Text: "x"})
	}
	var page api.DeadLetterPage
	apptest.Eventually(t, "all dead letters are listed", func() bool {
		var err error
		page, err = api.ListDeadLetters.Do(t.Context(), d.one.Client, api.DeadLetterQuery{})
		return err == nil && page.Total == n
	})
	one := page.DeadLetters[0].QueueID
	letter, err := api.GetDeadLetter.Do(t.Context(), d.other.Client, one)
	if err != nil || len(letter.Content) == 0 {
		t.Errorf("dead letter %s: %d bytes, %v", one, len(letter.Content), err)
	}
	if status := post(t, d.one.URL+"/v1/dead-letters/"+one+"/replay"); status != http.StatusOK {
		t.Errorf("replay of %s: %d", one, status)
	}
	if answer, err := api.ReplayDeadLetters.Do(t.Context(), d.other.Client, api.ReplayRequest{
		Code: "EENVELOPE"}); err != nil || answer.Replayed != n-1 {
		t.Errorf("replay of the others: %+v, %v", answer, err)
	}
	d.relay.Wait(n)
	apptest.Empty(t, d.one.Client)
	d.hooks.Wait(t, event.MessageFailed)
}

// operate checks what an operator sees.
func (d *everyday) operate(t *testing.T) {
	t.Helper()
	for path, says := range map[string]string{
		"/outbox": "Outbox", "/admin/queues": "<html", "/admin/queues/api/queues": `"queue":"submit"`,
		"/metrics": "postroom_redis_up 1", "/v1/stats": "queues",
		"/ready": `"ready":true`,
	} {
		if status, body := apptest.Look(t, d.other.URL+path, apptest.TestToken); status != http.StatusOK ||
			!strings.Contains(body, says) {
			t.Errorf("%s: %d, without %q: %.500s", path, status, says, body)
		}
	}
}

func toOne(format string, n int) api.Addresses {
	return api.Addresses{{Address: fmt.Sprintf(format, n)}}
}

func post(t *testing.T, url string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apptest.TestToken)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close() // only the status counts
	return answer.StatusCode
}

// sentBy returns how many attempts of a process delivered, by its own metrics.
func sentBy(t *testing.T, p *apptest.Process) int {
	t.Helper()
	_, body := apptest.Look(t, p.Monitor+"/metrics", apptest.TestToken)
	found := regexp.MustCompile(`postroom_outbox_attempts_total\{outcome="sent"\} (\d+)`).
		FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no count of attempts in:\n%s", body)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
