package ui

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// messageView is the page of one message.
type messageView struct {
	ID      string
	Message *api.OutboxMessage // nil: it has ended
	Ended   *ending            // what became of it; nil: it is in the outbox
	Content *contentView       // nil: not read, or not kept
}

// shownRecipients is how many recipients of a message its page lists. The API tells all.
const shownRecipients = 200

// Recipients are the first of a message's recipients, those with trouble before the others.
func (v messageView) Recipients() []api.RecipientStatus {
	all := v.Message.Recipients
	if len(all) <= shownRecipients {
		return all
	}
	rank := map[string]int{"failed": 0, "suppressed": 1, "queued": 2, "cancelled": 3, "sent": 4}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b api.RecipientStatus) int { return rank[a.Status] - rank[b.Status] })
	return all[:shownRecipients]
}

// MoreRecipients says how many are not listed.
func (v messageView) MoreRecipients() int { return max(0, len(v.Message.Recipients)-shownRecipients) }

// Tally counts the recipients by what became of them.
func (v messageView) Tally() map[string]int {
	tally := map[string]int{}
	for _, r := range v.Message.Recipients {
		tally[r.Status]++
	}
	return tally
}

// ending is what is known of a message that is gone.
type ending struct {
	Result   string // sent, failed, cancelled
	At       time.Time
	Response string
}

// ids are those of messages: ULIDs.
var ids = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)

// idOf is the message that a path names. What can't be an id is not looked up, nor shown.
func idOf(r *http.Request) (string, error) {
	id := strings.ToUpper(r.PathValue("id"))
	if !ids.MatchString(id) {
		return "", unknown()
	}
	return id, nil
}

func unknown() error {
	return fault.New(fault.NotFound, "", "There is no such message. What became of a message is only known for some time")
}

// message shows one message: live, failed, or what became of it.
func (u *UI) message(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	view := messageView{ID: id}
	if err := u.find(r.Context(), &view); err != nil {
		return err
	}
	title := "Message " + id
	if view.Message != nil {
		title = view.Message.Subject
	}
	if view.Message != nil && view.Content == nil && r.URL.Query().Get("part") == "" {
		if view.Content, err = u.preview(r.Context(), id); err != nil {
			return err
		}
	}
	return u.show(w, r, http.StatusOK, "message", title, view)
}

// find looks a message up among the live ones, the failed ones, and those that ended.
func (u *UI) find(ctx context.Context, v *messageView) error {
	m, err := u.Outbox.Get(ctx, v.ID)
	if err == nil {
		v.Message = &m
		return nil
	}
	if fault.CodeOf(err) == codeFailed {
		dead, failed := u.Outbox.DeadLetter(ctx, v.ID)
		if failed == nil {
			v.Message, v.Content = &dead.OutboxMessage, readContent(dead.Content)
			return nil
		}
		if !fault.Is(failed, fault.NotFound) {
			return failed
		}
	}
	if v.Ended = endingOf(err); v.Ended == nil && fault.Is(err, fault.NotFound) {
		return unknown()
	}
	if v.Ended == nil {
		return err
	}
	return nil
}

// codeFailed is what the outbox answers about a message of which it has a dead letter, or had one.
const codeFailed = "MessageFailed"

// endingOf reads off the outbox's refusal what became of a message.
func endingOf(err error) *ending {
	f := wordsOf(err)
	result := map[string]string{"MessageSent": "sent", codeFailed: "failed", "MessageCancelled": "cancelled"}[f.Code]
	if result == "" {
		return nil
	}
	e := &ending{Result: result}
	e.At, _ = f.Details["at"].(time.Time)
	e.Response, _ = f.Details["response"].(string)
	return e
}

// path of a message's page.
func messagePath(id string) string { return "/messages/" + id }

func (u *UI) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	answer, err := u.Outbox.Cancel(r.Context(), id, reason)
	switch {
	case err != nil:
		return err
	case answer.Deleted:
		return done(w, r, "/", "Message %s was cancelled.", id)
	case answer.Code != "":
		return redirectWith(w, r, messagePath(id), flash{Text: "The message is being sent at this moment; it was not cancelled.", Bad: true})
	}
	return redirectWith(w, r, messagePath(id), flash{Text: "The message had ended already; there was nothing to cancel.", Bad: true})
}

func (u *UI) retry(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if _, err := u.Outbox.Retry(r.Context(), id); err != nil {
		return undone(w, r, messagePath(id), err)
	}
	return done(w, r, messagePath(id), "The message is due now.")
}

// reschedule changes when a message is tried next, how often at most, or both.
func (u *UI) reschedule(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	p, err := readPatch(r.PostForm.Get("at"), r.PostForm.Get("attempts"))
	if err != nil {
		return undone(w, r, messagePath(id), err)
	}
	if _, err := u.Outbox.Patch(r.Context(), id, p); err != nil {
		return undone(w, r, messagePath(id), err)
	}
	return done(w, r, messagePath(id), "The message has a new schedule.")
}

// readPatch reads the form of a new schedule. Empty fields stay as they are.
func readPatch(at, attempts string) (api.OutboxPatch, error) {
	var p api.OutboxPatch
	var wrong []fault.Field
	if t, err := readMoment(at); err != nil || t.Year() > 9999 {
		wrong = append(wrong, fault.Field{Key: "time", Message: "is not a date and time"})
	} else if !t.IsZero() {
		p.SendAt = &t
	}
	if attempts != "" {
		n, err := strconv.Atoi(attempts)
		if err != nil || n < 1 || n > 100 {
			wrong = append(wrong, fault.Field{Key: "attempts", Message: "must be a number from 1 to 100"})
		}
		p.DeliveryAttempts = &n
	}
	return p, fault.InvalidFields(wrong)
}
