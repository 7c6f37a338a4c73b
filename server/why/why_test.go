package why

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
)

// mailLog is an email log that has some messages, or fails.
type mailLog struct {
	messages []api.LoggedMessage
	events   map[string][]api.MessageEvent
	told     []api.Delivery // about every event
	err      error
}

func (d mailLog) To(context.Context, outbox.Whom, int) ([]api.LoggedMessage, bool, error) {
	return d.messages, false, d.err
}

func (d mailLog) Message(_ context.Context, id string) (api.LoggedMessage, error) {
	for _, m := range d.messages {
		if m.QueueID == id {
			return m, d.err
		}
	}
	return api.LoggedMessage{}, errors.Join(d.err, fault.New(fault.NotFound, "", "There is no such message"))
}

func (d mailLog) MessageEvents(_ context.Context, id string) (api.MessageEvents, error) {
	return api.MessageEvents{Events: d.events[id]}, d.err
}

func (d mailLog) Get(context.Context, string) (api.OutboxMessage, error) {
	return api.OutboxMessage{}, d.err
}

func (d mailLog) queueStatus(context.Context, string) (api.QueueStatus, error) {
	return api.QueueStatus{}, d.err
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// to asks about ann@example.com.
func to(t *testing.T, log mailLog, known Known, broken error, in api.WhyQuery) api.Why {
	t.Helper()
	y, err := New(Parts{Log: log, QueueStatus: log.queueStatus,
		Deliveries: func(context.Context, string, bool, []string) (api.MessageDeliveries, error) {
			return api.MessageDeliveries{Deliveries: log.told}, nil
		},
		Account: func(context.Context, string) (api.AccountInfo, error) { return api.AccountInfo{}, nil },
		Sources: []Source{{Name: "suppressions",
			Read: func(_ context.Context, _ outbox.Whom, into *Known) error { *into = known; return broken }}},
	}, Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	found, err := y.To(t.Context(), "", "Ann@Example.com", in)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sent is a message that a relay took, to several people.
func sent(id string, to ...string) api.LoggedMessage {
	m := api.LoggedMessage{QueueID: id, Account: "shop", Subject: "Receipt", Status: api.StatusSent,
		Created: noon, Envelope: api.Envelope{To: to}}
	for _, one := range to {
		m.Recipients = append(m.Recipients, api.RecipientStatus{Address: one, Status: "sent"})
	}
	return m
}

// A source that fails is named, and the others are still asked.
func TestASourceFails(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "", "Redis is unreachable")
	log := mailLog{messages: []api.LoggedMessage{sent("A", "ann@example.com")}}
	found := to(t, log, Known{}, away, api.WhyQuery{})
	if found.Findings[0].Kind != "sent" || len(found.Unasked) != 1 || found.Unasked[0] != (api.WhyUnasked{
		Source: "suppressions", Error: "Redis is unreachable"}) {
		t.Errorf("%+v", found)
	}
	broken := mailLog{err: fault.New(fault.Internal, "", "ann@example.com: broken")}
	found = to(t, broken, Known{}, nil, api.WhyQuery{})
	if found.Findings[0].Kind != "unasked" || found.Arrived != api.ArrivedUnknown || len(found.Unasked) != 2 {
		t.Errorf("without the email log: %+v", found)
	}
	for _, u := range found.Unasked {
		if strings.Contains(u.Error, "ann@") {
			t.Errorf("an error that was not made for callers is told: %s", u.Error)
		}
	}
}

// An open by a bot, or by one of several recipients, proves nothing, and other recipients are not named.
func TestWhatIsNoProof(t *testing.T) {
	t.Parallel()
	open := func(bot bool, to ...string) api.MessageEvent {
		return api.MessageEvent{Event: "trackOpen", Date: noon, Recipients: to,
			Details: &api.EventDetails{Bot: bot}}
	}
	both := []string{"ann@example.com", "bob@example.com"}
	for name, c := range map[string]struct {
		event api.MessageEvent
		want  string
	}{
		"a person":       {open(false, "ann@example.com"), "opened"},
		"a bot":          {open(true, "ann@example.com"), "sent"},
		"one of several": {open(false, both...), "sent"},
		"somebody else":  {open(false, "bob@example.com"), "sent"},
	} {
		found := to(t, mailLog{messages: []api.LoggedMessage{sent("A", both...)},
			events: map[string][]api.MessageEvent{"A": {c.event}}}, Known{}, nil, api.WhyQuery{})
		if found.Findings[0].Kind != c.want {
			t.Errorf("%s: %+v", name, found.Findings[0])
		}
		for _, m := range found.Messages {
			for _, e := range m.Events {
				if len(e.Recipients) != 1 || e.Recipients[0] != "ann@example.com" {
					t.Errorf("%s: %+v", name, e)
				}
			}
		}
	}
}

// A refusal is explained next to its text, and so is a failed webhook.
func TestReasonsAreExplained(t *testing.T) {
	t.Parallel()
	failed := sent("A", "ann@example.com")
	failed.Status, failed.Recipients[0].Status = api.StatusDead, "failed"
	failed.Log = []api.Attempt{{Number: 1, Start: noon, Host: "relay", Code: 552, Enhanced: "5.2.2",
		Line: "552 5.2.2 zzz", Error: "EENVELOPE"}}
	bounced := mailLog{messages: []api.LoggedMessage{sent("A", "ann@example.com")},
		events: map[string][]api.MessageEvent{"A": {{Event: "messageBounce", Date: noon,
			Recipients: []string{"ann@example.com"}, Details: &api.EventDetails{Diagnostic: "550 User unknown"}}}}}
	untold := mailLog{messages: []api.LoggedMessage{sent("A", "ann@example.com")},
		told: []api.Delivery{{Endpoint: "e", QueueID: "A", Event: "messageSent", Status: "failed",
			StatusCode: 404, Attempts: 3}}}
	for want, found := range map[string]api.Why{
		"mailboxFull":     to(t, mailLog{messages: []api.LoggedMessage{failed}}, Known{}, nil, api.WhyQuery{}),
		"webhookNotFound": to(t, untold, Known{}, nil, api.WhyQuery{}),
		"noSuchMailbox":   to(t, bounced, Known{}, nil, api.WhyQuery{}),
	} {
		if e := found.Findings[0].Explanation; e == nil || e.Reason != want {
			t.Errorf("want %s: %+v, %+v", want, found.Findings[0], e)
		}
	}
	arrived := to(t, mailLog{messages: []api.LoggedMessage{sent("A", "ann@example.com")}}, Known{}, nil,
		api.WhyQuery{})
	if e := arrived.Findings[0].Explanation; e != nil {
		t.Errorf("what did not fail is explained: %+v", e)
	}
}

// A question about one message is answered about it, whatever else there is.
func TestOneMessage(t *testing.T) {
	t.Parallel()
	log := mailLog{messages: []api.LoggedMessage{sent("B", "bob@example.com"), sent("A", "ann@example.com")}}
	barred := Known{Suppressions: []api.Suppression{{Reason: "manual", Created: noon.Add(time.Hour)}}}
	for named, want := range map[string]string{"A": "sent", "a": "sent", "B": "notTo", "C": "neverSubmitted",
		"": "suppressed"} {
		if found := to(t, log, barred, nil, api.WhyQuery{Message: named}); found.Findings[0].Kind != want {
			t.Errorf("%q: %+v", named, found.Findings)
		}
	}
}

// The answer has a campaign's result if the email log does not have its mail.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"inDoubt": "inDoubt", "suppressed": "suppressed",
		"unsubscribed": "unsubscribed", "failed": "refused", "deferred": "delayed", "sending": "sending",
		"cancelled": "cancelled", "sent": "sent", "bounced": "bounced"} {
		found := to(t, mailLog{}, Known{Campaigns: []api.PersonalCampaign{{Campaign: "news", Name: "News",
			CampaignRecipient: api.CampaignRecipient{State: state, QueueID: "A"}}}}, nil, api.WhyQuery{})
		if f := found.Findings[0]; f.Kind != want || len(f.Do) == 0 || strings.Contains(f.Text, "%!") {
			t.Errorf("%s: %+v", state, f)
		}
	}
}

// An argument of a command is one word for a shell.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	q := &question{}
	for arg, want := range map[string]string{"ann@example.com": "ann@example.com",
		"o'neil@example.com": `'o'\''neil@example.com'`, "a$b@example.com": `'a$b@example.com'`,
		"-x@example.com": "'-x@example.com'"} {
		if got := q.step("", "", "why", arg).Command; got != "postroom why "+want {
			t.Errorf("%s: %s", arg, got)
		}
	}
}

func TestNoAddress(t *testing.T) {
	t.Parallel()
	account := func(context.Context, string) (api.AccountInfo, error) { return api.AccountInfo{}, nil }
	y, err := New(Parts{Log: mailLog{}, QueueStatus: mailLog{}.queueStatus, Account: account}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := y.To(t.Context(), "", "nobody", api.WhyQuery{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
	if _, err := y.To(t.Context(), "shop", "a@b.test", api.WhyQuery{Account: "other"}); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("%v", err)
	}
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("parts are missing")
	}
}
