package ui

import (
	"context"
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// tickedAction is what a user can do with ticked messages of the outbox.
type tickedAction struct {
	do        func(ctx context.Context, id string) error
	one, many string // the result
}

// tickedActions are the actions by their name in the form.
func (u *UI) tickedActions() map[string]tickedAction {
	of := u.Outbox.Operations
	return map[string]tickedAction{
		"now": {func(ctx context.Context, id string) error {
			_, err := of.Retry(ctx, id)
			return err
		}, "message is due now.", "messages are due now."},
		"replay": {func(ctx context.Context, id string) error {
			_, err := of.Replay(ctx, id, api.Corrections{})
			return err
		}, "message was queued again.", "messages were queued again."},
		"cancel": {func(ctx context.Context, id string) error {
			answer, err := of.Cancel(ctx, id, reason)
			if err == nil && !answer.Deleted {
				err = fault.New(fault.Conflict, "", "The message %s wasn't cancelled", id)
			}
			return err
		}, "message was cancelled.", "messages were cancelled."},
	}
}

// changeTicked sends, replays or cancels the ticked messages. Messages that changed in the meantime are
// skipped.
func (u *UI) changeTicked(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	back, ticked := local(r.PostForm.Get("back")), r.PostForm["id"]
	action, known := u.tickedActions()[r.PostForm.Get("do")]
	switch {
	case !known:
		return fault.New(fault.Invalid, "", "Choose what to do with the ticked messages")
	case len(ticked) == 0:
		return redirectWith(w, r, back, flash{Text: "Tick the messages first.", Bad: true})
	}
	changed, skipped := 0, 0
	for _, id := range ticked[:min(len(ticked), rowsPerPage)] {
		err := u.ownMessage(r, strings.ToUpper(id))
		if err == nil {
			err = action.do(r.Context(), strings.ToUpper(id))
		}
		switch {
		case err == nil:
			changed++
		case api.StatusOf(wordsOf(err).Kind) >= http.StatusInternalServerError:
			return err
		default:
			skipped++
		}
	}
	text := plural(changed, action.one, action.many)
	if skipped > 0 {
		text += " " + plural(skipped, "message was", "messages were") +
			" skipped because of a change in the meantime."
	}
	return redirectWith(w, r, back, flash{Text: text, Bad: changed == 0})
}
