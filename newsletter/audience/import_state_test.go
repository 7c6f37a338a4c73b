package audience_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/suppression"
)

// TestAFileThatSaysWhoUnsubscribedIsHonoured: files in the export formats of newsletter programs, imported as
// subscribed. Each person's address names what they must be.
func TestAFileThatSaysWhoUnsubscribedIsHonoured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, columns string
	}{
		"plain":            {file: "email,status\nleft@a.example,unsubscribed\nsubscribed@a.example,active\npending@a.example,Unconfirmed\nbad@a.example,maybe\nbad2@a.example,\n"},
		"Ghost":            {file: "id,email,name,note,subscribed_to_emails,complimentary_plan,created_at,deleted_at,labels,tiers\n1,left@a.example,L,,false,,2024-01-01,,,\n2,subscribed@a.example,S,,true,,2024-01-01,,,\n3,left2@a.example,L,,true,,2024-01-01,2024-05-05T01:02:03Z,,\n"},
		"Mailchimp":        {file: "Email Address,First Name,OPTIN_TIME,OPTIN_IP,CONFIRM_TIME,CONFIRM_IP,UNSUB_TIME,UNSUB_CAMPAIGN_TITLE,UNSUB_CAMPAIGN_ID,UNSUB_REASON\nleft@a.example,L,,,2024-01-01 00:00:00,,2024-02-01 00:00:00,Premium,1,Other\nsubscribed@a.example,S,,,2024-01-01 00:00:00,,,,,\n"},
		"Mailchimp status": {file: "Email Address,Email Marketing\nleft@a.example,Unsubscribed\nsubscribed@a.example,Subscribed\nleft2@a.example,Cleaned\nleft3@a.example,Non-subscribed\n"},
		"Klaviyo":          {file: "Email,Email Marketing Consent,Email Marketing Consent Timestamp\nleft@a.example,UNSUBSCRIBED,2024-01-01\nleft2@a.example,NEVER_SUBSCRIBED,\nsubscribed@a.example,SUBSCRIBED,2024-01-01\n"},
		"listmonk":         {file: "uuid,email,name,attributes,status,created_at\nu,left@a.example,L,{},blocklisted,2024\nu,left2@a.example,L,{},disabled,2024\nu,subscribed@a.example,S,{},enabled,2024\n"},
		"Keila":            {file: "Email,First name,Last name,Data,Status,External ID\nleft@a.example,L,,{},unsubscribed,\nleft2@a.example,L,,{},unreachable,\nsubscribed@a.example,S,,{},active,\n"},
		"Shopify":          {file: "First Name,Email,Accepts Email Marketing\nL,left@a.example,no\nS,subscribed@a.example,yes\n"},
		"Kit":              {file: "email_address,first_name,status\nleft@a.example,L,cancelled\nleft2@a.example,L,complained\nleft3@a.example,L,bounced\nsubscribed@a.example,S,active\n"},
		"Buttondown":       {file: "email,type,subscriber_type,unsubscription_date,unsubscription_reason\nleft@a.example,,unsubscribed,2024-01-01,bye\npending@a.example,,unactivated,,\nsubscribed@a.example,,regular,,\n"},
		"phpList":          {file: "email,Is the email of this user confirmed,Is this user blacklisted\npending@a.example,0,0\nleft@a.example,1,1\nsubscribed@a.example,1,0\n"},
		"HubSpot":          {file: "Email,Unsubscribed from all email,Email hard bounce reason,Opted out of email: News\nleft@a.example,Yes,,\nleft2@a.example,,Mailbox full,\nleft3@a.example,,,true\nsubscribed@a.example,,,\n"},
		"MailerLite":       {file: "Subscriber,Subscribed,Unsubscribed\nleft@a.example,2023-01-01 10:00:00,2024-03-01 10:00:00\nsubscribed@a.example,2023-01-01 10:00:00,\n"},
		"CleverReach":      {file: "email;activated;deactivated;bounced\nleft@a.example;1700000000;1710000000;0\nleft2@a.example;1700000000;0;1710000000\nsubscribed@a.example;1700000000;0;0\n"},
		"Salesforce":       {file: "Email,HasOptedOutOfEmail\nleft@a.example,1\nleft2@a.example,TRUE\nsubscribed@a.example,0\n"},
		"German":           {file: "Email;Status\nleft@a.example;Abgemeldet\nsubscribed@a.example;Bestätigt\npending@a.example;unbestätigt\n"},
		"two columns":      {file: "email,status,unsubscribed\nleft@a.example,active,yes\nleft2@a.example,unsubscribed,no\nleft3@a.example,who knows,yes\nsubscribed@a.example,active,no\nbad@a.example,active,who knows\n"},
		"mapped, a colon":  {file: "email,Mail: News?\nleft@a.example,yes\nsubscribed@a.example,no\n", columns: "email:email,Mail: News?:unsubscribed"},
		"mapped":           {file: "email,Member?\nleft@a.example,left\nsubscribed@a.example,active\n", columns: "email:email,Member?:state"},
		"left out":         {file: "email,status\nsubscribed@a.example,unsubscribed\n", columns: "email:email"},
		"JSON lines":       {file: `{"email":"left@a.example","status":"unsubscribed"}` + "\n" + `{"email":"subscribed@a.example","state":"subscribed"}` + "\n" + `{"email":"bad@a.example","status":"?"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.list(t, "weekly", "double")
			o := subscribed("weekly")
			o.Columns, o.JSONL = c.columns, name == "JSON lines"
			o.DryRun = true
			dry := b.bring(t, c.file, o)
			o.DryRun = false
			got := b.bring(t, c.file, o)
			want := map[string]int{}
			for at, line := range strings.Split(strings.TrimSpace(c.file), "\n") {
				for _, state := range []string{"left", "pending", "subscribed", "bad"} {
					if strings.Contains(line, state+"@") || strings.Contains(line, state+"2@") || strings.Contains(line,
						state+"3@") {
						want[state]++
					} else if state == "bad" && at == 0 {
						continue
					}
				}
			}
			is := map[string]int{"bad": got.Bad}
			export := b.export(t, "", "csv")
			for _, line := range strings.Split(strings.TrimSpace(export), "\n")[1:] {
				cells := strings.Split(line, ",")
				state := strings.TrimPrefix(cells[7], "weekly:")
				is[state]++
				if !strings.HasPrefix(cells[1], state) {
					t.Errorf("%s is %s", cells[1], state)
				}
				found, err := b.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
					Bulk: true, Addresses: []string{cells[1]}})
				if err != nil || (found[0] != nil) != (state == "left") {
					t.Errorf("%s: %v, %v", cells[1], found, err)
				}
			}
			maps.DeleteFunc(is, func(_ string, n int) bool { return n == 0 })
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("(-want +got)\n%s%+v", diff, got)
			}
			if name != "left out" && (got.Unsubscribed != want["left"] || got.Pending != want["pending"]) ||
				dry.Unsubscribed != got.Unsubscribed || dry.Pending != got.Pending || dry.Bad != got.Bad {
				t.Errorf("counted: %+v, in a dry run %+v", got, dry)
			}
		})
	}
}

// TestAColumnThatMayTellWhoUnsubscribedIsAskedAbout: the answer names the column and both ways.
func TestAColumnThatMayTellWhoUnsubscribedIsAskedAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, heading := range []string{"Order Status", "Subscription", "Opt-out preferences", "Consent",
		"Abmeldewunsch", "Double Opt-In", "Bounce count", "Subscriptions", "Marketing permission"} {
		_, err := b.Imports.Run(t.Context(), "", strings.NewReader("email,"+heading+"\na@a.example,x\n"),
			api.SubscriberImportOptions{})
		if err == nil || !strings.Contains(err.Error(), `"`+heading+`"`) || !strings.Contains(err.Error(),
			`"`+heading+`:state"`) || !strings.Contains(err.Error(), "without it") {
			t.Errorf("%s: %v", heading, err)
		}
	}
	got := b.bring(t, "email,Subscribed at,optin_ip,subscription_date,Unsubscribe URL,City\na@a.example,2024-01-01,,,https://a.example,Rome\n",
		api.SubscriberImportOptions{})
	if !slices.Equal(got.Ignored, []string{"Subscribed at", "optin_ip", "subscription_date", "Unsubscribe URL",
		"City"}) {
		t.Errorf("%q", got.Ignored)
	}
}

// TestWhoUnsubscribedIsHonouredWithoutAList, and whatever the options say.
func TestWhoUnsubscribedIsHonouredWithoutAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.add(t, "was@a.example", "weekly")
	file := "email,status\nleft@a.example,unsubscribed\nann@a.example,active\nwas@a.example,unsubscribed\n"
	b.bring(t, file, api.SubscriberImportOptions{})
	o := subscribed("weekly")
	got := b.bring(t, "email\nleft@a.example\nann@a.example\n", o)
	if diff := cmp.Diff(map[string]int{"unsubscribe": 1}, got.Skipped); diff != "" {
		t.Errorf("who left is put on a list later: %s", diff)
	}
	for _, existing := range []string{"skip", "replace"} {
		o.Existing, o.Resubscribe = existing, true
		got := b.bring(t, file, o)
		found, err := b.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
			Bulk: true, Addresses: []string{"left@a.example", "was@a.example", "ann@a.example"}})
		if err != nil || found[0] == nil || found[1] == nil || found[2] != nil || got.Unsubscribed != 2 {
			t.Errorf("%s: %v, %v, %+v", existing, found, err, got)
		}
	}
	o = api.SubscriberImportOptions{ListID: []string{"weekly"}, State: "left"}
	if got := b.bring(t, "email,status\nann@a.example,who knows\nnew@a.example,active\n", o); got.Bad != 0 {
		t.Errorf("%+v", got)
	}
	for _, email := range []string{"ann@a.example", "new@a.example"} {
		if state := b.state(t, email, "weekly"); state != "left" {
			t.Errorf("%s is %s, and all lines are to leave", email, state)
		}
	}
}
