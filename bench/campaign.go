package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// mails are the contents of campaigns: 4 KiB of text, and 2.2 KB of HTML with two values and a link.
var mails = map[string]api.CampaignContent{
	"text": {Subject: "News for {{subscriber.name}}", Text: "Hello {{subscriber.name}},\n\n" +
		strings.Repeat("some words of a newsletter that is read in a minute, with what is new\n", 56) +
		"\n{{rcpt.unsubscribeUrl}}\n"},
	"html": {Subject: "News for {{subscriber.name}}", HTML: "<h1>Hello {{subscriber.name}} in " +
		"{{subscriber.attributes.city}}</h1>\n" + strings.Repeat(
		"<p>Some words of a newsletter that is read in a minute, with what is new this week.</p>\n", 22) +
		`<p><a href="https://shop.example/sale">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">Leave</a></p>`},
}

// connections is how many connections the account of a campaign has to the relay.
const connections = 50

// campaign measures a campaign with the mail of a name, to four people for each message of other rows.
func campaign(name string) func(context.Context, *bed, int) (values, error) {
	return func(ctx context.Context, b *bed, n int) (values, error) {
		n *= 4
		if err := b.enlist(ctx, n); err != nil {
			return nil, err
		}
		_, err := api.CreateCampaign.Do(ctx, b.client, api.Campaign{Campaign: name, Name: name, Account: "news",
			Lists: []string{"weekly"}, CampaignContent: mails[name]})
		if err != nil {
			return nil, err
		}
		got, err := b.each(ctx, n, func() error {
			if _, err := api.SendCampaign.Do(ctx, b.client, api.CampaignStart{}, name); err != nil {
				return err
			}
			return b.arrived(ctx, n)
		})
		if err != nil {
			return nil, err
		}
		return got, b.ended(ctx, name, n)
	}
}

// enlist brings n people.
func (b *bed) enlist(ctx context.Context, n int) error {
	_, err := api.CreateAccount.Do(ctx, b.client, api.Account{Account: "news", Email: "shop@example.com",
		SMTP:   &api.SMTPServer{Host: b.relay.Host(), Port: b.relay.Port()},
		Limits: &api.Limits{Connections: connections}})
	if err != nil {
		return err
	}
	_, err = api.CreateList.Do(ctx, b.client, api.List{ListID: "weekly", Name: "Weekly", OptIn: "single",
		Account: "news"})
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "email,name,attributes.city\n")
		for i := range n {
			_, _ = io.WriteString(out, person(i)+",Ann Smith,Vienna\n")
		}
		_ = out.Close()
	}()
	done, err := api.ImportSubscribers.Do(ctx, b.client, in, api.SubscriberImportOptions{
		Account: "news", ListID: []string{"weekly"}, State: "subscribed", Consent: "I want news"})
	if err != nil || done.Added != n {
		return fmt.Errorf("import: %+v, %w", done, err)
	}
	return b.settled(ctx)
}

// ended waits until the campaign has ended, and compares its numbers with the relay's.
func (b *bed) ended(ctx context.Context, name string, n int) error {
	return rig.Until(ctx, time.Minute, 200*time.Millisecond, func() (bool, error) {
		st, err := api.GetCampaignStats.Do(ctx, b.client, api.CampaignStatsQuery{}, name)
		if err != nil || st.State != api.CampaignSent {
			return false, err
		}
		if got := b.relay.Count(); st.States.Sent != n || got != n {
			return false, fmt.Errorf("the numbers differ from the relay's %d: %+v", got, st.States)
		}
		return true, nil
	})
}
