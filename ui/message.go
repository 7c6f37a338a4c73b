package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// messageView is the page of one message: live, failed or ended.
type messageView struct {
	ID         string
	Message    api.LoggedMessage
	State      api.State             // in the outbox; empty: it has ended, or is a dead letter
	Steps      []step                // its timeline
	events     []string              // the ids of its events
	Readers    string                // opens and clicks; empty: none
	Content    *contentView          // nil: not read, or not stored
	NotStored  string                // why Content is not stored
	Hooks      api.MessageDeliveries // of its events
	Correction *correction           // the form to replay it; nil: it is no dead letter
}

// section returns the entry of the navigation that the page belongs to.
func (v messageView) section() string {
	if v.Ended() {
		return "log"
	}
	return "outbox"
}

// Ended reports whether the message is no longer in the outbox.
func (v messageView) Ended() bool { return !v.Live() && !v.Dead() }

// Live reports whether the message will be tried again, or is being tried.
func (v messageView) Live() bool {
	return v.Message.Status == api.StatusQueued || v.Message.Status == api.StatusSending
}

// Dead reports whether the message failed and can be sent again.
func (v messageView) Dead() bool { return v.Message.Status == api.StatusDead }

// Stands returns the message's state in the outbox, or else its outcome or its status in the log.
func (v messageView) Stands() string {
	if v.State != "" {
		return string(v.State)
	}
	return string(v.Message.Stands())
}

// Size returns the size of the message as the page shows it. A mail merge's message has none until it is
// filled in to be sent; until then it is that of the preview. 0: unknown.
func (v messageView) Size() int {
	if v.Message.Size == 0 && v.Content != nil {
		return v.Content.Size
	}
	return v.Message.Size
}

// CameBack is what was reported of a message that somebody did not get, or did not want; nil: nothing.
func (v messageView) CameBack() *api.Outcome {
	if o := v.Message.Outcome; o != nil && o.Status.IsBad() {
		return o
	}
	return nil
}

// shownRecipients is how many recipients of a message its page lists. The API lists all.
const shownRecipients = 200

// Recipients returns the first recipients of a message, failed ones first.
func (v messageView) Recipients() []api.RecipientStatus {
	all := v.Message.Recipients
	if len(all) <= shownRecipients {
		return all
	}
	rank := map[string]int{"suppressed": 1, "queued": 2, "replaced": 3, "cancelled": 4, "sent": 5,
		"delivered": 5,
		"opened":    5, "clicked": 5, "unsubscribed": 5}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b api.RecipientStatus) int { return rank[a.Stands()] - rank[b.Stands()] })
	return all[:shownRecipients]
}

// MoreRecipients returns the number of recipients that are not listed.
func (v messageView) MoreRecipients() int { return max(0, len(v.Message.Recipients)-shownRecipients) }

// Tally counts the recipients by their outcome or state.
func (v messageView) Tally() map[string]int {
	tally := map[string]int{}
	for _, r := range v.Message.Recipients {
		tally[r.Stands()]++
	}
	return tally
}

// digestRuns matches ids of runs of digests.
var digestRuns = regexp.MustCompile(`^[a-z2-7]{24}[0-9]{2}$`)

// DigestRun returns the id of the run of digests that the message is the mail of; empty: of none.
func (v messageView) DigestRun() string {
	var of struct {
		Run string `json:"digestRun"`
	}
	if json.Unmarshal(v.Message.Metadata, &of) != nil || !digestRuns.MatchString(of.Run) {
		return ""
	}
	return of.Run
}

// ids matches ids of messages, which are ULIDs.
var ids = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)

// onMessage calls h with the message id in the path. Anything else is neither looked up nor shown, and
// messages of other accounts do not exist for who is bound to one.
func onMessage(u *UI, h func(w http.ResponseWriter, r *http.Request, id string) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id := strings.ToUpper(r.PathValue("id"))
		if err := u.ownMessage(r, id); err != nil {
			return err
		}
		return h(w, r, id)
	}
}

// ownMessage returns NotFound for a message of an account that the caller may not see.
func (u *UI) ownMessage(r *http.Request, id string) error {
	bound := boundTo(r)
	if !ids.MatchString(id) {
		return unknown()
	}
	if bound == "" {
		return nil
	}
	account, err := u.Outbox.Reader.AccountOf(r.Context(), id)
	if fault.Is(err, fault.NotFound) || err == nil && account != bound {
		return unknown()
	}
	return err
}

func unknown() error {
	return fault.New(fault.NotFound, "",
		"There is no such message. Messages are kept for a limited time")
}

// message shows one message: live, failed or ended.
func (u *UI) message(w http.ResponseWriter, r *http.Request, id string) error {
	view := messageView{ID: id}
	if err := u.find(r.Context(), &view); err != nil {
		return err
	}
	if r.URL.Query().Get("part") == "" {
		if err := u.complete(r, &view); err != nil {
			return err
		}
	}
	if view.Content != nil {
		w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the html
	}
	title := view.Message.Subject
	title = cmp.Or(title, "Message "+id)
	return u.show(w, r, http.StatusOK, "message", title, view)
}

// find reads a message, its state and its events. If it ends between these reads it has no state; if it is
// dropped it has no events.
func (u *UI) find(ctx context.Context, v *messageView) error {
	var err error
	if v.Message, err = u.Outbox.Reader.Message(ctx, v.ID); fault.Is(err, fault.NotFound) {
		return unknown()
	} else if err != nil {
		return err
	}
	if v.Live() {
		m, err := u.Outbox.Reader.Get(ctx, v.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		v.State = m.State
	}
	story, err := u.Outbox.Reader.MessageEvents(ctx, v.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	v.Steps, v.Readers = steps(v.Message, story.Events), readers(story.Events)
	v.events = story.IDs()
	return nil
}

// complete adds the constant parts of the page: the content, and the form of a dead letter.
func (u *UI) complete(r *http.Request, v *messageView) error {
	var err error
	v.Hooks, err = u.Webhooks.DeliveriesAbout(r.Context(), v.Message.Account, boundTo(r) != "", v.events)
	if err != nil {
		return err
	}
	v.Content, err = u.previewContent(r, v.ID)
	if fault.Is(err, fault.NotFound) {
		v.NotStored, err = err.Error(), nil
	}
	if err != nil || !v.Dead() {
		return err
	}
	v.Correction, err = u.corrections(r)
	return err
}

func messagePath(id string) string { return "/messages/" + id }

func (u *UI) cancel(w http.ResponseWriter, r *http.Request, id string) error {
	answer, err := u.Outbox.Operations.Cancel(r.Context(), id, reason)
	switch {
	case err != nil:
		return err
	case answer.Deleted:
		return done(w, r, "/outbox", "Message %s was cancelled.", id)
	case answer.Code != "":
		return redirectWith(w, r, messagePath(id),
			flash{Text: "Postroom is sending the message now, so it wasn't cancelled.", Bad: true})
	}
	return redirectWith(w, r, messagePath(id),
		flash{Text: "The message was already finished, so there was nothing to cancel.", Bad: true})
}

func (u *UI) retry(w http.ResponseWriter, r *http.Request, id string) error {
	_, err := u.Outbox.Operations.Retry(r.Context(), id)
	return told(w, r, messagePath(id), messagePath(id), err, "The message is due now.")
}

// reschedule changes the next attempt of a message, its maximum number of attempts, or both.
func (u *UI) reschedule(w http.ResponseWriter, r *http.Request, id string) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	p, err := readPatch(r.PostForm.Get("at"), r.PostForm.Get("attempts"))
	if err != nil {
		return undone(w, r, messagePath(id), err)
	}
	p.Bound = boundTo(r) != ""
	_, err = u.Outbox.Operations.Patch(r.Context(), id, p)
	return told(w, r, messagePath(id), messagePath(id), err, "The message has a new schedule.")
}

// readPatch reads the form of a new schedule. Empty fields change nothing.
func readPatch(at, attempts string) (api.OutboxPatch, error) {
	var p api.OutboxPatch
	var wrong fault.Fields
	if t, err := readMoment(at); err != nil || t.Year() > 9999 {
		wrong.Add("time", "is not a date and time")
	} else if !t.IsZero() {
		p.SendAt = &t
	}
	if attempts != "" {
		n, err := strconv.Atoi(attempts)
		if err != nil || n < 1 || n > 100 {
			wrong.Add("attempts", "must be a number from 1 to 100")
		}
		p.DeliveryAttempts = &n
	}
	return p, fault.InvalidFields(wrong)
}
