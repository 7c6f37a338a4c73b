package e2e_test

import (
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// TestACampaignLearnsWhatBecomesOfItsMessages: deferred mail is a message of the outbox. The recipient has
// the state that matches its result, and no one who may have the mail counts as failed.
func TestACampaignLearnsWhatBecomesOfItsMessages(t *testing.T) {
	t.Parallel()
	relay := moodyRelay(t)
	client, _ := runCampaigns(t, relay.Server, map[string]string{"delivery.inDoubt": "hold",
		"delivery.retry.base": "1h"})
	names := []string{"doubt", "undone", "cancelled", "erased", "deleted", "moved"}
	var all []string
	for _, name := range names {
		all = append(all, name+"@example.net")
		relay.answers(name+"@example.net", "451 4.3.2 later")
	}
	apptest.People(t, client, "weekly", all...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	rows := map[string]api.CampaignRecipient{}
	for _, name := range names {
		rows[name] = becomes(t, client, 1, name+"@example.net", "deferred")
		apptest.Eventually(t, name+" has a message", func() bool {
			_, err := api.GetMessage.Do(t.Context(), client, rows[name].QueueID)
			return err == nil
		})
	}
	retry := func(name, key, reply, state string) {
		t.Helper()
		relay.answers(key, reply)
		if _, err := api.RetryMessage.Do(t.Context(), client, rows[name].QueueID); err != nil {
			t.Fatal(err)
		}
		becomes(t, client, 1, name+"@example.net", state)
	}
	replay := func(name string, c api.Corrections) error {
		_, err := api.ReplayDeadLetter.Do(t.Context(), client, c, rows[name].QueueID)
		return err
	}
	for _, name := range []string{"doubt", "undone"} {
		retry(name, "DOT "+name+"@example.net", "close", "inDoubt")
	}
	if err := replay("doubt", api.Corrections{}); err != nil {
		t.Fatal(err)
	}
	becomes(t, client, 1, "doubt@example.net", "sent")
	if _, err := api.CancelMessage.Do(t.Context(), client, rows["cancelled"].QueueID); err != nil {
		t.Fatal(err)
	}
	becomes(t, client, 1, "cancelled@example.net", "cancelled")
	retry("deleted", "deleted@example.net", "554 5.7.1 no", "failed")
	if _, err := api.DeleteDeadLetter.Do(t.Context(), client, rows["deleted"].QueueID); err != nil {
		t.Fatal(err)
	}
	retry("moved", "moved@example.net", "554 5.7.1 no", "failed")
	if err := replay("moved", api.Corrections{To: []string{"new@example.net"}}); err != nil {
		t.Fatal(err)
	}
	becomes(t, client, 1, "moved@example.net", "sent")
	if _, err := api.ErasePerson.Do(t.Context(), client, api.ErasureRequest{Email: "erased@example.net",
		Account: "default"}); err != nil {
		t.Fatal(err)
	}
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if s := st.States; s.Sent != 2 || s.Cancelled != 2 || s.Failed != 1 || s.InDoubt != 1 {
		t.Errorf("%+v", s)
	}
	got := apptest.Copies(relay.Server)
	if got["doubt@example.net"] != 1 || got["new@example.net"] != 1 || len(got) != 2 {
		t.Errorf("emails: %v", got)
	}
	run, err := api.SettleCampaign.Do(t.Context(), client, api.CampaignSettle{All: true}, "c1")
	if err != nil {
		t.Fatalf("%+v, %v", run, err)
	}
	if err := replay("undone", api.Corrections{}); apptest.Status(err) != 409 {
		t.Errorf("a recipient who has the mail gets another one: %v", err)
	}
}
