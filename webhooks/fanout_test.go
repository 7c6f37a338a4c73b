package webhooks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/testredis"
)

func TestRelayMatchesEventsAndAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := b.endpoint("http://all.example/")
	star := b.endpoint("http://star.example/", func(r *api.EndpointRequest) {
		r.Events = []string{"*", "messageSent"}
	})
	sent := b.endpoint("http://sent.example/", func(r *api.EndpointRequest) {
		r.Events = []string{"messageSent"}
	})
	own := b.endpoint("http://own.example/", func(r *api.EndpointRequest) { r.Accounts = []string{"a", "b"} })
	alerts := b.endpoint("http://alerts.example/", func(r *api.EndpointRequest) {
		r.Events = []string{"alertRaised", "alertResolved"}
	})
	off := false
	b.endpoint("http://off.example/", func(r *api.EndpointRequest) { r.Enabled = &off })
	b.emit("E1", event.MessageSent, "a")
	b.emit("E2", event.MessageFailed, "a")
	b.emit("E3", event.MessageSent, "c")
	b.emit("E4", event.WebhookDisabled, "")
	b.emit("E5", event.AlertRaised, "")
	b.fanOutAll()
	want := []string{
		"E1." + all.ID, "E1." + star.ID, "E1." + sent.ID, "E1." + own.ID,
		"E2." + all.ID, "E2." + star.ID, "E2." + own.ID,
		"E3." + all.ID, "E3." + star.ID, "E3." + sent.ID,
		"E4." + all.ID, "E4." + star.ID,
		"E5." + all.ID, "E5." + star.ID, "E5." + alerts.ID,
	}
	sameIDs(t, b.spool.ids(), want)
}

func sameIDs(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("tasks\n%v, want\n%v", got, want)
	}
}

// The stream is read a moment after its events were added. An endpoint doesn't get events that were added
// before it was made, and gets all events added afterwards, whichever clock its process has.
func TestNewEndpointGetsTheEventsSinceThen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit("E1", event.MessageSent, "a")
	if before := b.entries()[0].Added(); time.Since(before).Abs() > time.Hour {
		t.Fatalf("added at %s", before)
	}
	time.Sleep(2 * time.Millisecond) // the stream counts in milliseconds
	b.advance(time.Hour)
	ep := b.endpoint("http://new.example/")
	b.emit("E2", event.MessageSent, "a")
	b.fanOutAll()
	sameIDs(t, b.spool.ids(), []string{"E2." + ep.ID})
}

// A batch whose acknowledgement was lost is handled again: same tasks, and nothing is sent twice.
func TestRelayAgainMakesNoDuplicates(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	for i := range 3 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	b.fanOutAll()
	b.run(ep.ID, "E0")
	b.fanOutAll()
	sameIDs(t, b.spool.ids(), []string{"E0." + ep.ID, "E1." + ep.ID, "E2." + ep.ID})
	for i := range 3 {
		b.run(ep.ID, "E"+strconv.Itoa(i))
	}
	if n := len(rc.got()); n != 3 {
		t.Errorf("%d requests for 3 events", n)
	}
	if page, err := b.Deliveries(t.Context(), ep.ID, 0, 10); err != nil || page.Total != 3 {
		t.Errorf("log %+v, %v", page, err)
	}
}

// The process dies between record and task: the fan-out of the same event finishes what it began.
func TestRelayGoesOnAfterDyingBetweenRecordAndTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("http://example.com/")
	b.emit("E1", event.MessageSent, "snd")
	b.spool.fail = errors.New("the queue is away")
	if err := b.fanOut(t.Context(), b.entries()); err == nil {
		t.Fatal("the failure is swallowed, the event would be acknowledged")
	}
	b.spool.fail = nil
	b.fanOutAll()
	sameIDs(t, b.spool.ids(), []string{"E1." + ep.ID})
}

func TestRelayPassesOverWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("http://example.com/")
	for _, line := range []string{"", "{", `{"v":99,"eventId":"E9"}`, `{"v":1}`, "null"} {
		b.append(line)
	}
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	sameIDs(t, b.spool.ids(), []string{"E1." + ep.ID})
	if n := strings.Count(b.log.String(), "can't deliver an event"); n != 5 {
		t.Errorf("%d of 5 unreadable events logged", n)
	}
}

func TestPendingDeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t, func(o *Options) { o.MaxPending = 2 })
	ep, other := b.endpoint(rc.URL), b.endpoint(rc.URL)
	for i := range 4 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	b.fanOutAll()
	sameIDs(t, b.spool.ids(), []string{"E0." + ep.ID, "E1." + ep.ID, "E0." + other.ID, "E1." + other.ID})
	b.run(ep.ID, "E0")
	b.fanOutAll() // room for one more
	if ids := b.spool.ids(); !slices.Contains(ids, "E2."+ep.ID) || slices.Contains(ids, "E3."+ep.ID) {
		t.Errorf("tasks %v", ids)
	}
	if !strings.Contains(b.log.String(), "too many deliveries waiting") {
		t.Error("the operator is not told")
	}
}

// Two processes: what one changes, the other knows within about a second.
func TestChangesReachOtherProcesses(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	here := build(t, testredis.Connect(t, dbOptions(url)), nil)
	there := build(t, testredis.Connect(t, dbOptions(url)), nil)
	wants := func(b *bundle) bool {
		s, err := b.dir.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(s.list) == 1
	}
	if wants(there) {
		t.Fatal("an endpoint from nowhere")
	}
	ep := here.endpoint("http://example.com/")
	if !wants(here) {
		t.Error("the process itself does not know at once")
	}
	eventually(t, "the other process learns of a new endpoint", func() bool { return wants(there) })
	target, err := here.dir.find(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.disable(t.Context(), target, "it answered 410 Gone", time.Time{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other process learns that it was switched off", func() bool { return !wants(there) })
	on := true
	if _, err := here.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "http://example.com/",
		Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other process learns that it is on again", func() bool { return wants(there) })
	if _, err := here.Delete(t.Context(), ep.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other process learns that it is gone", func() bool { return !wants(there) })
}

// An endpoint made a moment ago in one process gets the events that a worker of another process, which has
// not heard of it, delivers.
func TestNewEndpointIsNotTakenForADeletedOne(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	url := testredis.URL(t)
	here := build(t, testredis.Connect(t, dbOptions(url)), nil)
	there := build(t, testredis.Connect(t, dbOptions(url)), nil)
	if _, err := there.dir.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	ep := here.endpoint(rc.URL)
	here.emit("E1", event.MessageSent, "snd")
	here.fanOutAll()
	there.dir.now.Load().checked.Store(time.Now().UnixNano()) // as fresh as it gets
	if v := there.run(ep.ID, "E1"); v != "done" {
		t.Errorf("verdict %s", v)
	}
}

// sources are the endpoints of settings and accounts in a test.
type sources struct {
	targets map[string][]Target // by account; "*" for every account
	service string
	calls   int
	err     error
}

func (s *sources) Implicit(_ context.Context, account string) ([]Target, error) {
	s.calls++
	return append(slices.Clone(s.targets["*"]), s.targets[account]...), s.err
}

func (s *sources) ServiceURL() string { return s.service }

func TestEndpointsOfSettingsAndAccounts(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	src := &sources{service: "https://mail.example.com", targets: map[string][]Target{
		"*": {{ID: SettingsID, URL: rc.URL + "/settings", Events: []string{"messageSent"},
			Headers: map[string]string{"X-My": "v1", "Webhook-Id": "forged", "Transfer-Encoding": "gzip",
				"Bad Name": "x", "X-Bad": "a\nb"}}},
		"a/b c{0}": {{ID: AccountID("a/b c{0}"), URL: rc.URL + "/account"}},
	}}
	b := setupWith(t, src)
	b.emit("E1", event.MessageSent, "a/b c{0}")
	b.emit("E2", event.MessageFailed, "a/b c{0}")
	b.emit("E3", event.MessageSent, "other")
	b.fanOutAll()
	account := AccountID("a/b c{0}")
	sameIDs(t, b.spool.ids(), []string{"E1." + slug(account), "E2." + slug(account), "E1.settings",
		"E3.settings"})
	if src.calls > 2 {
		t.Errorf("asked %d times about two accounts in one batch", src.calls)
	}
	for _, r := range []ref{{account, "E1"}, {account, "E2"}, {SettingsID, "E1"}, {SettingsID, "E3"}} {
		if v := b.run(r.Endpoint, r.Delivery); v != "done" {
			t.Errorf("%v: %s", r, v)
		}
	}
	h := rc.got()[2].header
	if h.Get("X-My") != "v1" || h.Get("Webhook-Id") != "E1_settings" ||
		h.Get("User-Agent") != "postroom/1.2.3 (+https://mail.example.com)" {
		t.Errorf("headers %v", h)
	}
	body := string(rc.got()[2].body)
	if want := standardSignature("E1_settings", stamp(t, h.Get("Webhook-Timestamp")), []byte(body),
		[][]byte{[]byte(serviceSecret)}); h.Get("Webhook-Signature") != want {
		t.Error("not signed with the service secret")
	}
	if !strings.HasPrefix(body, `{"serviceUrl":"https://mail.example.com","account":"a/b c{0}",`) {
		t.Errorf("body %s", body)
	}
	if page, err := b.Deliveries(t.Context(), account, 0, 10); err != nil || page.Total != 2 {
		t.Errorf("log %+v, %v", page, err)
	}
}

func stamp(t *testing.T, seconds string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0)
}

// An endpoint of the settings that is gone is switched off, until somebody saves the settings, or moves it.
func TestSettingsEndpointIsSwitchedOffAndOn(t *testing.T) {
	t.Parallel()
	rc := answering(t, 410)
	src := &sources{targets: map[string][]Target{"*": {{ID: SettingsID, URL: rc.URL + "/1"}}}}
	b := setupWith(t, src)
	hears := func(id string) bool {
		t.Helper()
		b.emit(id, event.MessageSent, "snd")
		b.fanOutAll()
		return slices.Contains(b.spool.ids(), id+".settings")
	}
	if !hears("E1") {
		t.Fatal("it hears nothing to begin with")
	}
	if v := b.run(SettingsID, "E1"); v != "bury" {
		t.Fatal(v)
	}
	disabledEvents(t, b, SettingsID, 1)
	if hears("E2") {
		t.Error("it still hears")
	}
	src.targets["*"][0].URL = rc.URL + "/2"
	if !hears("E3") {
		t.Error("it moved, and does not hear")
	}
	src.targets["*"][0].URL = rc.URL + "/1"
	if err := b.Enable(t.Context(), SettingsID); err != nil {
		t.Fatal(err)
	}
	if !hears("E4") {
		t.Error("it was switched on, and does not hear")
	}
}

func TestRelayWaitsForItsSources(t *testing.T) {
	t.Parallel()
	src := &sources{err: errors.New("settings can't be read")}
	b := setupWith(t, src)
	b.emit("E1", event.MessageSent, "snd")
	if err := b.fanOut(t.Context(), b.entries()); err == nil {
		t.Error("the event would be acknowledged, and lost")
	}
}

func TestSlugKeepsWhatIsSafe(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"an id", "01J8ZK0", "01J8ZK0"},
		{"an account", "account:snd", "account:snd"},
		{"a dot, which signatures need", "a.b", ""},
		{"a slash, which asynqmon can't show", "a/b", ""},
		{"a line break", "a\nb", ""},
		{"empty", "", ""},
		{"too long", strings.Repeat("a", 65), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := slug(row.in)
			if row.want != "" && got != row.want || row.want == "" && (!strings.HasPrefix(got, "h-") ||
				strings.Trim(got, plain) != "") {
				t.Errorf("slug(%q) = %q", row.in, got)
			}
		})
	}
	if slug("a.b") == slug("a/b") {
		t.Error("two names, one slug")
	}
}

// TestAnEventGoesToTheEndpointMadeBefore: another process made the endpoint a moment ago. While Redis can't
// be asked for it, the event is not done with.
func TestAnEventGoesToTheEndpointMadeBefore(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	here, there := build(t, db, nil), build(t, db, nil)
	here.emit("E1", event.MessageSent, "snd")
	here.fanOutAll() // it knows now that there is no endpoint
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if err := here.fanOut(away, here.entries()); err == nil {
		t.Error("events are done with though the endpoints are not known")
	}
	ep := there.endpoint("http://example.com/")
	here.emit("E2", event.MessageSent, "snd")
	here.fanOutAll()
	if ids, _ := logIDs(t, here, ep.ID, 0, 10); !slices.Contains(ids, "E2") {
		t.Errorf("deliveries %v", ids)
	}
}
