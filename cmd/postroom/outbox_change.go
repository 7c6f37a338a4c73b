package main

import (
	"fmt"

	"github.com/postroom/postroom/api"
)

// chosenFlags choose messages, by their ids or by what they have in common.
type chosenFlags struct {
	filter[api.OutboxQuery]
	IDs []string `arg:"" optional:"" name:"id" help:"Queue IDs of messages. Or select them by flags."`
}

func chosenOf() chosenFlags { return chosenFlags{filter: filterOf[api.OutboxQuery]()} }

// chosen returns the query of the flags. Exactly one of ids and selecting flags is required.
func (f chosenFlags) chosen() (api.OutboxQuery, error) {
	switch selected := f.selects(); {
	case selected && len(f.IDs) > 0:
		return api.OutboxQuery{}, usage("give ids or flags that select messages, not both")
	case !selected && len(f.IDs) == 0:
		return api.OutboxQuery{}, usage("which messages? give their ids, or select them: --state failed")
	}
	return f.query()
}

// outboxRetryCmd attempts delivery now.
type outboxRetryCmd struct{ chosenFlags }

func (o *outboxRetryCmd) Run(s *session) error {
	q, err := o.chosen()
	if err != nil {
		return err
	}
	ids := o.IDs
	if len(ids) == 0 {
		q.PageSize = maxPage
		list, err := all(s, api.ListOutbox, q)
		if err != nil {
			return err
		}
		for _, m := range list {
			ids = append(ids, m.QueueID)
		}
	}
	return s.retry(ids, "no queued message matches", func(id string) error {
		_, err := api.RetryMessage.Do(s, s.client, id)
		return err
	})
}

// retried is the result as JSON.
type retried struct {
	Retried int           `json:"retried"`
	Refused []retryFailed `json:"refused,omitempty"`
}

type retryFailed struct {
	QueueID string `json:"queueId"`
	Error   string `json:"error"`
}

// retry retries messages one by one and prints the results, or none without messages. A refused one does not
// stop the others.
func (s *session) retry(ids []string, none string, try func(id string) error) error {
	var out retried
	bar := s.bar(len(ids), "retrying")
	for _, id := range ids {
		err := try(id)
		switch refused := refusal(err); {
		case refused != "":
			out.Refused = append(out.Refused, retryFailed{id, refused})
		case err != nil:
			_ = bar.Clear()
			return err
		default:
			out.Retried++
		}
		_ = bar.Add(1)
	}
	_ = bar.Clear()
	return s.done(out, len(out.Refused) > 0, func() {
		if len(ids) == 0 {
			s.say("nothing to attempt: %s", none)
			return
		}
		s.say("attempting %s now", plural(out.Retried, "message"))
		for _, r := range out.Refused {
			s.note("%s: %s", r.QueueID, r.Error)
		}
	})
}

// outboxCancelCmd takes messages back.
type outboxCancelCmd struct {
	chosenFlags
	Yes bool `short:"y" help:"Don't ask before cancelling messages selected by flags."`
}

// cancelled is the result as JSON.
type cancelled struct {
	Deleted int      `json:"deleted"`
	Active  int      `json:"active,omitempty"`  // left alone, because they were being sent
	Unknown []string `json:"unknown,omitempty"` // not queued: sent, cancelled, or never there
}

func (o *outboxCancelCmd) Run(s *session) error {
	q, err := o.chosen()
	if err != nil {
		return err
	}
	out, err := o.cancel(s, q)
	if err != nil {
		return err
	}
	return s.done(out, len(o.IDs) > 0 && out.Deleted < len(o.IDs), func() {
		switch {
		case out.Deleted > 0:
			s.say("cancelled %s", plural(out.Deleted, "message"))
		case len(o.IDs) == 0 && out.Active == 0:
			s.say("nothing to cancel: no queued message matches")
		default:
			s.say("nothing was cancelled")
		}
		if out.Active > 0 {
			s.note("left alone, being sent at this moment: %s", plural(out.Active, "message"))
		}
		for _, id := range out.Unknown {
			s.note("%s is not queued; postroom log show %[1]s says what became of it", clean(id))
		}
	})
}

func (o *outboxCancelCmd) cancel(s *session, q api.OutboxQuery) (out cancelled, err error) {
	if len(o.IDs) == 0 {
		if !o.Yes {
			q.PageSize = 1
			page, err := api.ListOutbox.Do(s, s.client, q)
			if err != nil {
				return out, err
			}
			if page.Total == 0 {
				return out, nil
			}
			if !s.confirm("Cancel %s?", plural(page.Total, "message")) {
				return out, fmt.Errorf("nothing was cancelled: the flags select %s. Add --yes to cancel",
					plural(page.Total, "message"))
			}
		}
		answer, err := api.CancelMessages.Do(s, s.client, q)
		return cancelled{Deleted: answer.Deleted, Active: answer.Active}, err
	}
	for _, id := range o.IDs {
		answer, err := api.CancelMessage.Do(s, s.client, id)
		switch {
		case err != nil:
			return out, err
		case answer.Deleted:
			out.Deleted++
		case answer.Code == "MessageActive":
			out.Active++
		default:
			out.Unknown = append(out.Unknown, id)
		}
	}
	return out, nil
}
