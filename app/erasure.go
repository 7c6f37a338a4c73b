package app

import (
	"context"
	"errors"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/server/erasure"
)

// buildErasures joins the stores with data of a person. Mail stops first. Then the send log is asked for
// the person while the record of the subscriber is there, and events go before the deliveries that are made
// of them.
func (a *App) buildErasures(context.Context) error {
	var err error
	a.erasures, err = erasure.New(erasure.Parts{
		DB: a.db, Ring: a.ring, Digest: a.suppressions.Digest, Remaining: a.remaining,
		Account: func(ctx context.Context, account string) error {
			_, err := a.accounts.Get(ctx, account)
			return err
		},
		Stores: []erasure.Store{
			{Name: "suppressions", Erase: a.eraseSuppressions, Export: a.exportSuppressions},
			{Name: "campaigns", Erase: a.eraseCampaigns, Export: a.exportCampaigns},
			{Name: "subscribers", Erase: a.eraseSubscribers, Export: a.exportSubscribers},
			{Name: "digests", Erase: a.eraseDigests, Export: a.exportDigests},
			{Name: "messages", Erase: a.outbox.Operations.Erase, Export: a.exportMessages},
			{Name: "events", Erase: a.outbox.Operations.EraseEvents},
			{Name: "deliveries", Erase: a.eraseDeliveries, Export: a.exportDeliveries},
			{Name: "documents", Here: a.documents.Reachable, Erase: a.eraseDocuments, Export: a.exportDocuments},
		},
	}, erasure.Options{Logger: a.log, Registry: a.metrics})
	if err != nil {
		return err
	}
	a.life.onRun("erasures", a.erasures.Run)
	return nil
}

// remaining describes what an erasure does not reach.
func (a *App) remaining(account string) []string {
	left := []string{
		"Relays, receivers, providers and programs that got mail or events about the person.",
		"Backups and replicas of Redis, and its append-only file until Redis rewrites it.",
		"Logs of processes that are set to debug. Others have masked addresses.",
		"The header and body of messages with several recipients: until others got them, or their dead letter goes.",
		"Mentions of the person in messages to other people, and in their names, tags and attributes.",
		"The audit log. Its entries can't be changed, and entries about messages and suppressions may contain addresses.",
		"Deleted events: nobody can read them, but Redis keeps their bytes until the stream is trimmed beyond them.",
		"A keyed hash of the address. It stops mail to it.",
		"User names for the dashboard, and addresses that accounts send as.",
	}
	if a.cfg.Archive.Dir != "" || a.cfg.Archive.URL != "" {
		left = append(left, "The archive of events. Nothing in it is ever deleted.")
	}
	if a.cfg.Documents.Store == "opensearch" {
		left = append(left, "Files of the search cluster, until it merges its segments.")
	}
	if account != "" {
		left = append(left, "Data of other accounts and of the instance about the person.",
			"Reports about messages that aren't in the email log, for three days.")
	}
	return left
}

func (a *App) eraseSuppressions(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return a.suppressions.Erase(ctx, w.Account, w.Address(),
		func(n int) error { return tally("suppressions", n) })
}

func (a *App) exportSuppressions(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	found, err := a.suppressions.Lookup(ctx, w.Account, w.Address())
	for _, one := range found.Suppressions {
		if one.Domain == "" {
			into.Suppressions = append(into.Suppressions, one)
		}
	}
	return err
}

// eachAudience calls do with the person in each account that has a subscriber with the address.
func (a *App) eachAudience(ctx context.Context, w outbox.Whom, do func(outbox.Whom) error) error {
	return eachAccount(ctx, w, func(ctx context.Context) ([]string, error) {
		return a.audience.AccountsOf(ctx, w.Address())
	}, do)
}

// eachAccount calls do with the person in its account, or in all that there are.
func eachAccount(ctx context.Context, w outbox.Whom, all func(context.Context) ([]string, error),
	do func(outbox.Whom) error) (err error) {
	accounts := []string{w.Account}
	if w.Account == "" {
		accounts, err = all(ctx)
	}
	for _, account := range accounts {
		if w.Account = account; err == nil {
			err = do(w)
		}
	}
	return err
}

func (a *App) eraseCampaigns(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return eachAccount(ctx, w, a.audience.Accounts, func(w outbox.Whom) error {
		n, err := a.campaigns.Erase(ctx, w) // their states stay, so what a crash left uncounted is counted then
		if err != nil {
			return err
		}
		return tally("campaigns", n)
	})
}

func (a *App) exportCampaigns(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	return a.eachAudience(ctx, w, func(w outbox.Whom) error {
		return a.campaigns.Personal(ctx, w, func(one api.PersonalCampaign) error {
			into.Campaigns = append(into.Campaigns, one)
			return nil
		})
	})
}

// eachReader calls do with the person in each account that has, or had, a reader of digests with the address.
func (a *App) eachReader(ctx context.Context, w outbox.Whom, do func(outbox.Whom) error) error {
	return eachAccount(ctx, w, func(ctx context.Context) (all []string, _ error) {
		if _, err := a.accounts.Named(ctx, func(account string) bool {
			all = append(all, account)
			return false
		}); err != nil {
			return nil, err
		}
		return a.digests.AccountsOf(ctx, w.Address(), all)
	}, do)
}

func (a *App) eraseDigests(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return a.eachReader(ctx, w, func(w outbox.Whom) error {
		n, err := a.digests.Erase(ctx, w)
		if err != nil {
			return err
		}
		return tally("digests", n)
	})
}

func (a *App) exportDigests(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	return a.eachReader(ctx, w, func(w outbox.Whom) error {
		return a.digests.Personal(ctx, w, func(one api.PersonalDigest) error {
			into.Digests = append(into.Digests, one)
			return nil
		})
	})
}

func (a *App) eraseSubscribers(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return eachAccount(ctx, w, a.audience.Accounts, func(w outbox.Whom) error {
		return a.audience.Erase(ctx, w.Account, w.Address(),
			func(subscribers, lists int) error {
				return errors.Join(tally("subscribers", subscribers), tally("lists", lists))
			})
	})
}

func (a *App) exportSubscribers(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	return a.eachAudience(ctx, w, func(w outbox.Whom) error {
		one, err := a.audience.Personal(ctx, w.Account, w.Address())
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		into.Subscribers = append(into.Subscribers, one)
		return err
	})
}

func (a *App) exportMessages(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	return a.outbox.Operations.Personal(ctx, w, func(m api.LoggedMessage) error {
		into.Messages = append(into.Messages, m)
		return nil
	})
}

func (a *App) eraseDeliveries(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return a.webhooks.Erase(ctx, w.Account, w.Traces,
		func(n int) error { return tally("deliveries", n) })
}

func (a *App) exportDeliveries(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	return a.webhooks.Personal(ctx, w.Account, w.Traces, func(d api.Delivery) error {
		into.Deliveries = append(into.Deliveries, api.PersonalDelivery{Endpoint: d.Endpoint, ID: d.ID,
			Created: d.Created, Event: d.Body})
		return nil
	})
}

func (a *App) eraseDocuments(ctx context.Context, w outbox.Whom, tally outbox.Tally) error {
	return a.documents.Erase(ctx, w.Account, w.Traces, func(n int) error { return tally("documents", n) })
}

// exportDocuments adds what the email log does not have any more.
func (a *App) exportDocuments(ctx context.Context, w outbox.Whom, into *api.PersonalData) error {
	logged := make(map[string]bool, len(into.Messages))
	for _, m := range into.Messages {
		logged[m.QueueID] = true
	}
	return a.documents.Personal(ctx, w.Account, w.Traces, func(d search.Document) error {
		if !logged[d.QueueID] {
			into.Documents = append(into.Documents, api.PersonalDocument{QueueID: d.QueueID, Account: d.Account,
				Subject: d.Subject, From: d.From, Status: string(d.Status), Created: d.Created, Text: d.Text})
		}
		return nil
	})
}
