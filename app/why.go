package app

import (
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/server/why"
)

// buildWhy joins the data about an address, to say why mail did not arrive.
func (a *App) buildWhy(context.Context) error {
	var err error
	a.why, err = why.New(why.Parts{
		Log: a.outbox.Reader, QueueStatus: a.outbox.Queues.QueueStatus, Account: a.accounts.Get,
		Deliveries: a.webhooks.DeliveriesAbout,
		Sources: []why.Source{
			{Name: "search index", Read: a.indexed},
			{Name: "suppressions", Read: a.suppressed},
			{Name: "subscribers", Read: a.subscribed},
			{Name: "campaigns", Read: a.campaigned},
			{Name: "digests", Read: a.notified},
		},
	}, why.Options{KeepLog: a.cfg.Messages.Retention, Logger: a.log, Registry: a.metrics})
	return err
}

// mostIndexed is how many of the newest messages to an address come from the search index.
const mostIndexed = 20

func (a *App) indexed(ctx context.Context, w outbox.Whom, into *why.Known) error {
	if strings.ContainsRune(w.Address(), '"') { // a query can't contain it
		return nil
	}
	if err := a.documents.Reachable(ctx); err != nil {
		return err
	}
	page, err := a.documents.Search(ctx, api.DocumentQuery{Q: `to:"` + w.Address() + `"`, Account: w.Account,
		PageSize: mostIndexed})
	into.Indexed = page.Documents
	return err
}

func (a *App) suppressed(ctx context.Context, w outbox.Whom, into *why.Known) error {
	found, err := a.suppressions.Lookup(ctx, w.Account, w.Address())
	into.Suppressions = found.Suppressions
	return err
}

func (a *App) subscribed(ctx context.Context, w outbox.Whom, into *why.Known) error {
	var data api.PersonalData
	err := a.exportSubscribers(ctx, w, &data)
	for _, one := range data.Subscribers {
		into.Subscribers = append(into.Subscribers, one.Subscriber)
	}
	return err
}

func (a *App) campaigned(ctx context.Context, w outbox.Whom, into *why.Known) error {
	var data api.PersonalData
	err := a.exportCampaigns(ctx, w, &data)
	into.Campaigns = data.Campaigns
	return err
}

// shownRuns is how many of a reader's runs an answer has.
const shownRuns = 5

func (a *App) notified(ctx context.Context, w outbox.Whom, into *why.Known) error {
	var data api.PersonalData
	err := a.exportDigests(ctx, w, &data)
	for _, one := range data.Digests {
		into.Digests = append(into.Digests, api.WhyReader{DigestRecipient: one.DigestRecipient,
			Runs: one.Runs[:min(len(one.Runs), shownRuns)]})
	}
	return err
}
