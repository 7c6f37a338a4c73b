package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

func deadVerbs() []verb {
	return []verb{
		{name: "list", help: "List dead letters, oldest first (the default).", run: &deadListCmd{}},
		{name: "reasons", help: "Count dead letters by reason.", run: &deadReasonsCmd{}},
		{name: "show", help: "Show one dead letter and its attempts.", run: &deadShowCmd{}},
		{name: "replay", help: "Replay dead letters to their failed recipients.", run: &deadReplayCmd{}},
		{name: "delete", help: "Delete dead letters and their content.", run: &deadDeleteCmd{}},
	}
}

type deadFlags struct {
	Account        string `placeholder:"ID" help:"Only messages of this account."`
	AccountTrouble bool   `help:"Only messages that failed because the relay refused the account: its login, token, certificate or sender."`
	Code           string `placeholder:"CODE" help:"Only messages with this error: EAUTH, EENVELOPE, ECONNECTION…"`
	Tag            string `placeholder:"TAG" help:"Only messages with this tag."`
	Reason         string `placeholder:"REASON" help:"Only messages with this reason: mailboxFull, badCredentials… (see dead-letter reasons)."`
}

// selects reports whether the flags select a dead letter, as far as the server does not compare it.
func (f deadFlags) selects(m api.OutboxMessage) bool {
	e := m.Progress.Error
	return (f.Code == "" || e != nil && e.Code == f.Code) && (!f.AccountTrouble || e != nil && e.AccountTrouble)
}

// query returns the query of what the server compares.
func (f deadFlags) query(pageSize int) api.DeadLetterQuery {
	return api.DeadLetterQuery{DeadLetterFilter: api.DeadLetterFilter{Account: f.Account, Tag: f.Tag},
		Reason: f.Reason, PageQuery: api.PageQuery{PageSize: pageSize}}
}

type deadListCmd struct {
	deadFlags
	limitFlag
}

func (d *deadListCmd) Run(s *session) error {
	q := d.query(maxPage)
	letters, more, _, err := fetch(s, api.ListDeadLetters, q, d.limitFlag, d.selects)
	g, now := newGrid("id", "account", "to", "subject", "queued", "code", "why"), time.Now()
	for _, m := range letters {
		code := cmp.Or(m.Progress.Error, &api.DeliveryFault{}).Code
		g.add(m.QueueID, m.Account, someOf(m.Envelope.To), clip(m.Subject, 40), moment(m.Created, now),
			orDash(code), why(m))
	}
	return s.some("deadLetters", letters, more, err, "no dead letters", g)
}

type deadReasonsCmd struct {
	Account string `placeholder:"ID" help:"Only messages of this account."`
	Tag     string `placeholder:"TAG" help:"Only messages with this tag."`
}

func (d *deadReasonsCmd) patience() time.Duration { return replayTimeout }

// Run counts dead letters by reason, the most frequent first.
func (d *deadReasonsCmd) Run(s *session) error {
	found, err := api.ListDeadLetterReasons.Do(s, s.client, api.DeadLetterFilter{Account: d.Account, Tag: d.Tag})
	g := newGrid("reason", "letters", "means", "to do", "example")
	for _, r := range found.Reasons {
		g.add(r.Reason, r.Count, r.Title, r.Remedy, clip(clean(r.Example), 60))
	}
	return s.table(found, err, "no dead letters", g, noteIf(len(found.Reasons) > 0,
		"to replay all with one reason: postroom dead-letter replay --reason REASON"))
}

type deadShowCmd struct {
	ID      string `arg:"" help:"Queue ID of the message."`
	Content bool   `help:"Print the message as the relay receives it."`
	dialogueFlag
}

func (d *deadShowCmd) Run(s *session) error {
	letter, err := api.GetDeadLetter.Do(s, s.client, d.ID)
	if err == nil && d.Content {
		_, err := s.out.Write(letter.Content)
		return err
	}
	m := letter.OutboxMessage
	return s.answer(m, err, func() { s.message(m, d.dialogueFlag, time.Now()) })
}

type deadDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"Queue IDs of dead letters."`
	Yes bool     `short:"y" help:"Don't ask for confirmation."`
}

// Run deletes dead letters. It fails if one does not exist.
func (d *deadDeleteCmd) Run(s *session) error {
	if !d.Yes && !s.confirm("Delete %s? You can't replay them afterwards.",
		plural(len(d.IDs), "dead letter")) {
		return fmt.Errorf("nothing was deleted. Add --yes to delete %s, which can't be sent again then",
			plural(len(d.IDs), "dead letter"))
	}
	var out cancelled
	for _, id := range d.IDs {
		answer, err := api.DeleteDeadLetter.Do(s, s.client, id)
		switch {
		case refusal(err) != "" || err == nil && !answer.Deleted:
			out.Unknown = append(out.Unknown, id)
		case err != nil:
			return err
		default:
			out.Deleted++
		}
	}
	return s.done(out, len(out.Unknown) > 0, func() {
		s.say("deleted %s", plural(out.Deleted, "dead letter"))
		for _, id := range out.Unknown {
			s.note("%s isn't a dead letter", clean(id))
		}
	})
}

// replayTimeout is the limit of a replay of many: a hundred thousand dead letters take minutes.
const replayTimeout = time.Hour

// deadReplayCmd sends dead letters again. Unlike outbox retry it skips messages that have not failed, or that
// somebody else has replayed.
type deadReplayCmd struct {
	deadFlags
	IDs     []string `arg:"" optional:"" name:"id" help:"Queue IDs of dead letters. Or select them by flags."`
	To      []string `group:"corrections" placeholder:"ADDRESS" help:"Send to this address instead of the failed recipients. Repeat the flag for several. Needs IDs."`
	Gateway *string  `group:"corrections" placeholder:"ID" help:"Gateway to send through. An empty value means the account's relays."`
	As      string   `group:"corrections" placeholder:"ACCOUNT" help:"Send as this account."`
}

func (d *deadReplayCmd) patience() time.Duration { return replayTimeout }

// Run queues the chosen dead letters again.
func (d *deadReplayCmd) Run(s *session) error {
	switch selected := d.deadFlags != (deadFlags{}); {
	case selected && len(d.IDs) > 0:
		return usage("give ids or flags that select dead letters, not both; --account selects, and to send as another account there is --as")
	case selected && len(d.To) > 0:
		return usage("--to needs the IDs of dead letters, because a filter can match messages to different recipients")
	case !selected && len(d.IDs) == 0:
		return usage("name dead letters by their IDs, or by flags like --account shop --reason mailboxFull")
	}
	corrections := api.Corrections{To: d.To, Gateway: d.Gateway, Account: d.As}
	if len(d.IDs) > 0 {
		return s.retry(d.IDs, "no dead letter matches", func(id string) error {
			_, err := api.ReplayDeadLetter.Do(s, s.client, corrections, id)
			return err
		})
	}
	req := api.ReplayRequest{Account: d.Account, AccountTrouble: d.AccountTrouble, Code: d.Code, Tag: d.Tag,
		Reason: d.Reason}
	if d.Gateway != nil || d.As != "" {
		req.Corrections = &corrections
	}
	ended := s.watchReplay(d.deadFlags)
	answer, err := api.ReplayDeadLetters.Do(s, s.client, req)
	ended()
	return s.answer(answer, err, func() {
		if answer.Replayed+answer.Skipped == 0 {
			s.say("nothing to attempt: no dead letter matches")
			return
		}
		s.say("attempting %s now", plural(answer.Replayed, "message"))
		if answer.Skipped > 0 {
			s.note("skipped, because they were no longer dead or their content is no longer kept: %d", answer.Skipped)
		}
	})
}

// watchReplay shows how many dead letters are left, as far as the server can select them. The returned
// function ends that. Without a response nothing is shown.
func (s *session) watchReplay(f deadFlags) func() {
	ctx, cancel := context.WithCancel(s)
	left := func() (int, bool) {
		page, err := api.ListDeadLetters.Do(ctx, s.client, f.query(1))
		return page.Total, err == nil
	}
	total, ok := 0, false
	if s.errTTY {
		total, ok = left()
	}
	if !ok {
		return cancel
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		bar := s.bar(total, "replaying")
		for sleep(ctx, time.Second) == nil {
			if now, ok := left(); ok {
				_ = bar.Set(total - now)
			}
		}
		_ = bar.Clear()
	}()
	return func() {
		cancel()
		<-ended
	}
}
