package e2e_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// limit sets how many messages account a may have accepted in a day; 0 means any number.
func (r *rivals) limit(t *testing.T, perDay int) {
	t.Helper()
	_, err := api.UpdateAccount.Do(t.Context(), r.admin,
		api.AccountPatch{Quota: new(&api.Quota{PerDay: new(perDay)})}, "a")
	if err != nil {
		t.Fatal(err)
	}
}

// accepted returns how many messages of account a were accepted today.
func (r *rivals) accepted(t *testing.T) int {
	t.Helper()
	usage, err := api.GetUsage.Do(t.Context(), r.a, "a")
	if err != nil {
		t.Fatal(err)
	}
	return usage.PerDay.Used
}

// lacksRoom waits until a campaign that is being sent says that a quota has no room.
func lacksRoom(t *testing.T, client *api.Client, id, words string) {
	t.Helper()
	apptest.Eventually(t, id+" waits for "+words, func() bool {
		c, err := api.GetCampaign.Do(t.Context(), client, id)
		return err == nil && c.State == api.CampaignSending && c.Reason == "quota" &&
			strings.Contains(c.Detail, words)
	})
}

// TestCampaignsWaitForTheQuotaOfTheirAccount: two together send no more than a day allows, and continue
// automatically when there is room.
func TestCampaignsWaitForTheQuotaOfTheirAccount(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	apptest.People(t, r.a, "lista", apptest.Many(11)...)
	r.limit(t, 5)
	for _, id := range []string{"one", "two"} {
		apptest.Draft(t, r.a, id, "lista", nil)
		apptest.SendNow(t, r.a, id)
	}
	const words = `The quota of account "a" is 5 messages accepted today (perDay), and 5 are used`
	lacksRoom(t, r.a, "one", words)
	lacksRoom(t, r.a, "two", words)
	if n := r.relays["a"].Count(); n != 5 || r.accepted(t) != 5 {
		t.Errorf("%d mails went out, %d were counted", n, r.accepted(t))
	}
	r.limit(t, 0)
	for _, id := range []string{"one", "two"} {
		apptest.Reaches(t, r.a, id, api.CampaignSent)
		if c, err := api.GetCampaign.Do(t.Context(), r.a, id); err != nil || c.Reason != "" || c.Detail != "" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if n := r.relays["a"].Count(); n != 24 || r.accepted(t) != 24 {
		t.Errorf("%d mails went out, %d were counted", n, r.accepted(t))
	}
}

// TestACampaignCountsEachEmailOnce: also one that a relay defers, and none to a person who isn't mailed.
func TestACampaignCountsEachEmailOnce(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{"delivery.retry.base": "1s"})
	apptest.People(t, r.a, "lista", "rcpt-451-1@a.test", "rcpt-550@a.test", "barred@a.test")
	_, err := api.AddSuppressions.Do(t.Context(), r.a, api.SuppressionRequest{
		NewSuppression: api.NewSuppression{Email: "barred@a.test"}})
	if err != nil {
		t.Fatal(err)
	}
	apptest.Draft(t, r.a, "c", "lista", nil)
	apptest.SendNow(t, r.a, "c")
	st := apptest.Reaches(t, r.a, "c", api.CampaignSent)
	want := api.CampaignStates{Sent: 2, Bounced: 1, Suppressed: 1}
	if st.States != want || r.accepted(t) != 3 {
		t.Errorf("%+v, %d were counted", st.States, r.accepted(t))
	}
	apptest.People(t, r.a, "lista", "new@a.test")
	if _, err := api.ResendCampaign.Do(t.Context(), r.a, api.CampaignResend{To: "newcomers"}, "c"); err != nil {
		t.Fatal(err)
	}
	apptest.Reaches(t, r.a, "c", api.CampaignSent)
	if r.accepted(t) != 4 {
		t.Errorf("%d were counted", r.accepted(t))
	}
	usage, err := api.GetUsage.Do(t.Context(), r.a, "a")
	if err != nil || usage.Messages.Used != 0 || usage.Bytes.Used != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestACampaignWaitsForTheQuotaOfItsToken: the token that started it. Its test emails count, too.
func TestACampaignWaitsForTheQuotaOfItsToken(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	ctx := t.Context()
	apptest.People(t, r.a, "lista", apptest.Many(11)...)
	made, err := api.CreateToken.Do(ctx, r.admin, api.TokenRequest{Account: "a", Description: "small",
		Restrictions: &api.Restrictions{Quota: &api.TokenQuota{PerDay: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	small := api.NewClient(r.URL(), made.Token, nil)
	apptest.Draft(t, r.a, "c", "lista", nil)
	test := api.CampaignTest{To: []string{"eve@a.test"}}
	if _, err := api.TestCampaign.Do(ctx, small, test, "c"); err != nil {
		t.Fatal(err)
	}
	apptest.SendNow(t, small, "c")
	lacksRoom(t, small, "c", "The quota of this token is 3 messages accepted today (perDay), and 3 are used")
	r.relays["a"].Wait(3)
	if n := r.relays["a"].Count(); n != 3 {
		t.Errorf("%d mails went out", n)
	}
	usage, err := api.GetTokenUsage.Do(ctx, r.admin, made.ID)
	if err != nil || usage.PerDay.Used != 3 || usage.Messages.Used != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	if _, err := api.TestCampaign.Do(ctx, small, test, "c"); err == nil {
		t.Error("a test email passes the quota")
	}
	if _, err := api.CancelCampaign.Do(ctx, r.a, "c"); err != nil {
		t.Error(err)
	}
	apptest.Draft(t, r.a, "other", "lista", nil)
	apptest.SendNow(t, r.a, "other")
	apptest.Reaches(t, r.a, "other", api.CampaignSent)
}
