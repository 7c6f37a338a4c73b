package alerts

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
)

// noon is when the tests look.
var noon = time.Date(2030, 3, 2, 12, 30, 0, 0, time.UTC)

// wholeInstance is what an overview is gathered from.
type wholeInstance struct {
	rates  []api.Rate
	asked  api.RatesQuery
	logged map[api.MessageStatus][]api.LoggedMessage
	listed map[api.State][]api.OutboxMessage
	paused map[string]bool
	alerts []api.Alert
	counts int // how often alerts were read
	err    error

	accounts  map[string]api.AccountInfo
	troubled  []string
	gateways  []api.GatewayInfo
	endpoints []api.Endpoint
	stats     api.EndpointStats
}

func (i *wholeInstance) overview(t *testing.T, now func() time.Time) *Overview {
	t.Helper()
	o, err := NewOverview(OverviewParts{
		Rates: func(_ context.Context, q api.RatesQuery) (api.Rates, error) {
			i.asked = q
			return api.Rates{Rates: i.rates}, i.err
		},
		Messages: func(_ context.Context, q api.LogQuery) (api.LogPage, error) {
			all := i.logged[q.Status]
			return api.LogPage{Total: len(all), Messages: all[:min(len(all), q.PageSize)]}, nil
		},
		List: func(_ context.Context, q api.OutboxQuery) (api.OutboxPage, error) {
			all := i.listed[q.State]
			return api.OutboxPage{PageNumbers: api.PageNumbers{Total: len(all)},
				Messages: all[:min(len(all), q.PageSize)]}, nil
		},
		QueueStatus: func(_ context.Context, name string) (api.QueueStatus, error) {
			return api.QueueStatus{Queue: name, Paused: i.paused[name]}, nil
		},
		Account: func(_ context.Context, id string) (api.AccountInfo, error) {
			if a, ok := i.accounts[id]; ok {
				return a, nil
			}
			return api.AccountInfo{}, fault.New(fault.NotFound, "", "No account %s", id)
		},
		Troubled: func(context.Context) ([]string, error) { return i.troubled, nil },
		Gateways: func(context.Context, int, int) (api.GatewayPage, error) {
			return api.GatewayPage{Gateways: i.gateways}, nil
		},
		Endpoints: func(context.Context, int, int) (api.EndpointPage, error) {
			return api.EndpointPage{Endpoints: i.endpoints}, nil
		},
		Endpoint: func(_ context.Context, id string) (api.Endpoint, error) {
			for _, e := range i.endpoints {
				if e.ID == id {
					return e, nil
				}
			}
			return api.Endpoint{}, fault.New(fault.NotFound, "", "No endpoint %s", id)
		},
		EndpointStats: func(context.Context, string, int) (api.EndpointStats, error) { return i.stats, nil },
		Alerts: func(context.Context) ([]api.Alert, error) {
			i.counts++
			return i.alerts, i.err
		},
	}, OverviewOptions{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (i *wholeInstance) of(t *testing.T, account string, days int) api.Overview {
	t.Helper()
	got, err := i.overview(t, func() time.Time { return noon }).Of(t.Context(), account, days)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	if _, err := NewOverview(OverviewParts{}, OverviewOptions{}); err == nil ||
		!strings.Contains(err.Error(), "Parts.Rates") {
		t.Error(err)
	}
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		days, bars, at int
		from, step     string
	}{
		{0, 24, 23, "2030-03-01T13:00:00Z", "hour"}, {7, 28, 27, "2030-02-23T18:00:00Z", "hour"},
		{30, 30, 29, "2030-02-01T00:00:00Z", "day"},
	} {
		at := noon.Add(-20 * time.Minute).Truncate(time.Hour)
		if row.days == 30 {
			at = noon.Truncate(day)
		}
		i := &wholeInstance{rates: []api.Rate{{Time: &at, Accepted: 9, Sent: 4, Failed: 3, Hard: 1, Soft: 1}}}
		got := i.of(t, "mine", row.days)
		if from := got.From.Format(time.RFC3339); from != row.from || i.asked.Step != row.step ||
			!i.asked.From.Equal(got.From) || i.asked.Account != "mine" {
			t.Errorf("%d days: from %s, asked %+v", row.days, from, i.asked)
		}
		want := api.OverviewBar{Time: got.Bars[row.at].Time, Accepted: 9, Sent: 4, Failed: 3, Bounced: 2}
		if len(got.Bars) != row.bars || got.Bars[row.at] != want || got.Total.Sent != 4 {
			t.Errorf("%d days: %d bars, %+v, %+v", row.days, len(got.Bars), got.Bars[row.at], got.Total)
		}
	}
	if _, err := (&wholeInstance{}).overview(t, nil).Of(t.Context(), "", 2); !fault.Is(err, fault.Invalid) {
		t.Errorf("two days: %v", err)
	}
	broken := &wholeInstance{err: errors.New("redis is away")}
	if _, err := broken.overview(t, nil).Of(t.Context(), "", 1); err == nil {
		t.Error("no error")
	}
}

func TestFlow(t *testing.T) {
	t.Parallel()
	due := func(state api.State, ago time.Duration) map[api.State][]api.OutboxMessage {
		return map[api.State][]api.OutboxMessage{state: {{QueueID: "q", Created: noon.Add(-ago),
			Scheduled: noon.Add(-ago)}}}
	}
	sent := func(ago time.Duration) []api.LoggedMessage {
		ended := noon.Add(-ago)
		return []api.LoggedMessage{{Created: ended.Add(-2 * time.Second), Ended: &ended}}
	}
	retried := due(api.Waiting, time.Hour) // and it is due only now
	retried[api.Waiting][0].NextAttempt.Time = &noon
	for name, row := range map[string]struct {
		listed map[api.State][]api.OutboxMessage
		sent   []api.LoggedMessage
		paused map[string]bool
		state  string
	}{
		"nothing":         {state: api.FlowIdle},
		"sent long ago":   {sent: sent(recent), state: api.FlowIdle},
		"sent":            {sent: sent(time.Minute), state: api.FlowSending},
		"due for long":    {sent: sent(time.Minute), listed: due(api.Waiting, late), state: api.FlowLate},
		"due for a while": {sent: sent(time.Minute), listed: due(api.Waiting, late-1), state: api.FlowSending},
		"tried again":     {sent: sent(time.Minute), listed: retried, state: api.FlowSending},
		"paused":          {sent: sent(time.Minute), paused: map[string]bool{"bulk": true}, state: api.FlowPaused},
		"paused mail":     {listed: due(api.Paused, time.Hour), state: api.FlowPaused},
	} {
		i := &wholeInstance{listed: row.listed, paused: row.paused,
			logged: map[api.MessageStatus][]api.LoggedMessage{api.StatusSent: row.sent}}
		if got := i.of(t, "", 1).Flow; got.State != row.state || got.Sentence == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestMailIsStuckWhileNoRelayOfAnAccountTakesIt: mail that was sent a minute ago, or by other accounts, hides
// none of it.
func TestMailIsStuckWhileNoRelayOfAnAccountTakesIt(t *testing.T) {
	t.Parallel()
	account := func(state string, own bool, gateways ...api.Route) api.AccountInfo {
		a := api.AccountInfo{State: state, Account: api.Account{Gateways: gateways}}
		if own {
			a.SMTP = &api.SMTPServer{}
		}
		return a
	}
	shop, news := api.Route{Gateway: "shop"}, api.Route{Gateway: "news", Lane: api.Bulk}
	dead, well := "shop", "spare"
	for name, row := range map[string]struct {
		account api.AccountInfo
		message api.OutboxMessage
		stuck   bool
	}{
		"its gateway rests": {account: account("unset", false, shop), stuck: true},
		"another takes it":  {account: account("connected", false, shop, api.Route{Gateway: well})},
		"both are away": {account: account("unset", false, shop, api.Route{Gateway: "news"}),
			stuck: true},
		"its own relay is away":     {account: account("error", true), stuck: true},
		"its own relay takes it":    {account: account("connected", true, shop)},
		"the relay of the settings": {account: account("error", false), stuck: true},
		"it is held":                {account: account("held", true), stuck: true},
		"a gateway of the message": {account: account("connected", true),
			message: api.OutboxMessage{Gateway: &dead}, stuck: true},
		"a good one of the message": {account: account("error", true), message: api.OutboxMessage{Gateway: &well}},
		"the gateway for bulk": {account: account("connected", true, news),
			message: api.OutboxMessage{Lane: api.Bulk}, stuck: true},
		"not that for the mail": {account: account("connected", true, news),
			message: api.OutboxMessage{Lane: api.Transactional}},
		"the account was deleted":    {account: account("", false)},
		"a limit, and all are there": {account: account("connected", false, api.Route{Gateway: well})},
	} {
		row.message.Account, row.message.Created = "a", noon
		ended := noon.Add(-time.Second)
		i := &wholeInstance{accounts: map[string]api.AccountInfo{"a": row.account},
			logged: map[api.MessageStatus][]api.LoggedMessage{api.StatusSent: {{Ended: &ended}}},
			listed: map[api.State][]api.OutboxMessage{outbox.OnlyDelayed: {row.message, row.message}},
			gateways: []api.GatewayInfo{{Gateway: api.Gateway{Gateway: "shop"}, State: "open"},
				{Gateway: api.Gateway{Gateway: "news"}, State: "error"}, {Gateway: api.Gateway{Gateway: well}}}}
		want := api.FlowSending + " Messages were sent in the last 10 minutes, and no due message is waiting. " +
			"2 messages are delayed."
		if row.stuck {
			want = "stuck Messages of account a are stuck: no relay accepts them, and 2 messages wait."
		}
		for _, of := range []string{"", "a"} {
			if f := i.of(t, of, 1).Flow; f.State+" "+f.Sentence != want {
				t.Errorf("%s: got  %s %s\nwant %s", name, f.State, f.Sentence, want)
			}
		}
	}
}

func TestTimeToTheRelay(t *testing.T) {
	t.Parallel()
	var sent []api.LoggedMessage
	for n := 1; n <= 100; n++ {
		ended := noon
		sent = append(sent, api.LoggedMessage{Created: noon.Add(-time.Hour), Ended: &ended,
			Scheduled: noon.Add(-time.Duration(n) * time.Second)})
	}
	i := &wholeInstance{logged: map[api.MessageStatus][]api.LoggedMessage{api.StatusSent: sent}}
	want := &api.OverviewRelayTimes{Messages: 100, P50: 50, P95: 95}
	if diff := cmp.Diff(want, i.of(t, "", 1).Flow.Relay); diff != "" {
		t.Error(diff)
	}
}

func TestRatesAreJudged(t *testing.T) {
	t.Parallel()
	at := noon.Truncate(time.Hour)
	for name, row := range map[string]struct {
		rate api.Rate
		want string
	}{
		"nothing": {api.Rate{}, "good good"},
		"good":    {api.Rate{Sent: 10_000, Hard: 199, Complained: 9}, "good good"},
		"high":    {api.Rate{Sent: 10_000, Hard: 200, Complained: 10}, "high high"},
		"over":    {api.Rate{Sent: 10_000, Hard: 500, Complained: 30}, "over over"},
		"few":     {api.Rate{Sent: 10, Hard: 9, Complained: 2}, "few few"},
	} {
		row.rate.Time = &at
		r := (&wholeInstance{rates: []api.Rate{row.rate}}).of(t, "", 1).Rates
		if got := r[0].State + " " + r[1].State; got != row.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	code := 550
	failed := func(id string, ago time.Duration, code *int, text string) api.LoggedMessage {
		return api.LoggedMessage{QueueID: id, Created: noon.Add(-ago),
			Error: &api.DeliveryFault{Message: text, StatusCode: code}}
	}
	i := &wholeInstance{logged: map[api.MessageStatus][]api.LoggedMessage{
		api.StatusDead: {{}, {}, {}},
		api.StatusFailed: {failed("4", 1, nil, "dial 10.0.0.27: refused"),
			failed("2", 2, &code, "550 5.1.1 no bob@y.test here"),
			failed("1", 3, &code, "550 5.1.1 <ann@x.test> is nobody"), failed("3", 5, nil, "dial 10.0.0.1: refused"),
			failed("5", 9, nil, "dial 10.0.0.3: refused"), {QueueID: "6", Reason: "deleted by hand"}},
	}}
	want := api.OverviewFailures{Total: 6, Counted: 6, Reasons: []api.OverviewReason{
		{Text: "dial 10.0.0.27: refused", Messages: 3, QueueID: "4"},
		{Text: "550 5.1.1 no <…> here", Messages: 2, QueueID: "2"},
		{Text: "deleted by hand", Messages: 1, QueueID: "6"},
	}}
	got := i.of(t, "", 1)
	if diff := cmp.Diff(want, got.Failures); diff != "" || got.Flow.Dead != 3 {
		t.Errorf("%d dead, %s", got.Flow.Dead, diff)
	}
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	account := func(id, state string) api.AccountInfo {
		return api.AccountInfo{Account: api.Account{Account: id}, State: state, LastError: "wrong password"}
	}
	i := &wholeInstance{
		accounts: map[string]api.AccountInfo{"a": account("a", "held"), "b": account("b", "connected"),
			"c": {Account: api.Account{Gateways: []api.Route{{Gateway: "well"}, {Gateway: "ses"}}}}},
		troubled: []string{"a", "gone"}, gateways: []api.GatewayInfo{{Gateway: api.Gateway{Gateway: "ses"},
			State: "open", LastError: &api.GatewayError{Response: "421 later"}}, {State: "connected"}},
		endpoints: []api.Endpoint{{ID: "e1", FailingSince: &noon, Enabled: true}, {ID: "e2", Enabled: false},
			{ID: "account:a", DisabledReason: "It answered 410."}},
		alerts: []api.Alert{{Alert: "queueAge", Queue: "notify"}}}
	names := func(o api.Overview) (all []string) {
		for _, one := range o.Troubles {
			all = append(all, one.Kind+" "+one.ID+" "+one.State+": "+one.Text)
		}
		return all
	}
	own := []string{"account a held: wrong password", "endpoint account:a disabled: It answered 410."}
	want := []string{own[0], "gateway ses open: 421 later", "endpoint e1 failing: No attempt has succeeded since 2 Mar 12:30:00 UTC.", own[1]}
	got := i.of(t, "", 1)
	if diff := cmp.Diff(want, names(got)); diff != "" || len(got.Alerts) != 1 ||
		got.Alerts[0].Do[0].Page != "/webhooks" {
		t.Errorf("%s%+v", diff, got.Alerts)
	}
	if got := i.of(t, "a", 1); !cmp.Equal(own, names(got)) || len(got.Alerts) != 0 {
		t.Errorf("of an account: %v, %v", names(got), got.Alerts)
	}
	if got := i.of(t, "b", 1); len(got.Troubles) != 0 {
		t.Errorf("of another: %v", got.Troubles)
	}
	if got := i.of(t, "c", 1); !cmp.Equal(want[1:2], names(got)) {
		t.Errorf("of an account with a gateway: %v", names(got))
	}
	i.troubled = nil
	for range 13 {
		i.troubled = append(i.troubled, "a")
	}
	if got := i.of(t, "", 1); got.More != 3 || len(got.Troubles) != 13 {
		t.Errorf("%d more than %d", got.More, len(got.Troubles))
	}
}

// TestPausedQueuesAreListed, for the whole instance only, with how to resume them.
func TestPausedQueuesAreListed(t *testing.T) {
	t.Parallel()
	i := &wholeInstance{paused: map[string]bool{"notify": true}}
	want := []api.OverviewTrouble{{Kind: "queue", ID: "notify", State: "paused", Text: "It holds 0 jobs.",
		Do: []api.WhyStep{{Text: "Resume the queue", Command: "postroom queue resume notify", Page: "/webhooks"}}}}
	if got := i.of(t, "", 1); !cmp.Equal(want, got.Troubles) || got.Flow.State != api.FlowIdle {
		t.Errorf("%+v, %+v", got.Troubles, got.Flow)
	}
	if got := i.of(t, "a", 1).Troubles; len(got) > 0 {
		t.Errorf("of an account: %+v", got)
	}
}

// TestAnEndpointThatTakesMostIsNotSaidToTakeNothing: five failures in a row pause it.
func TestAnEndpointThatTakesMostIsNotSaidToTakeNothing(t *testing.T) {
	t.Parallel()
	until := noon.Add(25 * time.Second)
	for name, row := range map[string]struct {
		resting *api.EndpointRest
		stats   api.EndpointCounts
		want    string
	}{
		"it rests": {&api.EndpointRest{Until: until, Failures: 5, Error: "answered 500 Internal Server Error"},
			api.EndpointCounts{Requests: 6342, Delivered: 3793, SuccessRate: 3793. / 6342},
			"5 attempts in a row failed, the last: answered 500 Internal Server Error. 3793 of 6342 requests (60 %) " +
				"succeeded since 2 Mar 11:00:00 UTC. It is tried again at 2 Mar 12:30:25 UTC."},
		"it is asked now": {&api.EndpointRest{Until: noon, Failures: 1, Error: "connection refused"},
			api.EndpointCounts{}, "The last attempt failed: connection refused. It is tried again now."},
		"it does not rest": {nil, api.EndpointCounts{Requests: 2}, "No attempt has succeeded since 2 Mar 12:30:00 UTC. " +
			"0 of 2 requests (0 %) succeeded since 2 Mar 11:00:00 UTC."},
	} {
		i := &wholeInstance{endpoints: []api.Endpoint{{ID: "crm", Enabled: true, FailingSince: &noon,
			Resting: row.resting}}, stats: api.EndpointStats{From: noon.Add(-90 * time.Minute),
			EndpointCounts: row.stats}}
		if got := i.of(t, "", 1).Troubles; len(got) != 1 || got[0].Text != row.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	asked := &wholeInstance{endpoints: []api.Endpoint{{ID: "crm", Enabled: true,
		Resting: &api.EndpointRest{Until: until}}, {ID: "off", FailingSince: &noon}}}
	if got := asked.of(t, "", 1).Troubles; len(got) > 0 {
		t.Errorf("one asked to wait, somebody switched the other off: %+v", got)
	}
}

// TestAlertingIsAskedOnceASecond: every page asks for it.
func TestAlertingIsAskedOnceASecond(t *testing.T) {
	t.Parallel()
	i, now := &wholeInstance{alerts: []api.Alert{{Alert: "redisAway"}}, err: errors.New("away")}, noon
	o := i.overview(t, func() time.Time { return now })
	for range 3 {
		if n := o.Alerting(t.Context()); n != 1 {
			t.Errorf("%d alerts", n)
		}
	}
	now = now.Add(time.Second)
	o.Alerting(t.Context())
	if i.counts != 2 {
		t.Errorf("asked %d times", i.counts)
	}
}

// TestEachAlertHasItsPlaybook holds the remedies to the table of docs/monitoring.md and the headings of the
// playbooks.
func TestEachAlertHasItsPlaybook(t *testing.T) {
	t.Parallel()
	metrics, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` .*\\(playbooks\\.md#(.+)\\) \\|$")
	rows := row.FindAllStringSubmatch(string(metrics), -1)
	for _, row := range rows {
		r := remedies[row[1]]
		if r.section != row[2] || r.step.Text == "" || r.step.Page == "" || r.step.Command == "" {
			t.Errorf("the alert %s leads to %+v, and docs/monitoring.md to %s", row[1], r, row[2])
		}
	}
	if len(rows) != len(remedies) {
		t.Errorf("%d alerts in docs/monitoring.md, %d remedies", len(rows), len(remedies))
	}
}
