package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// reason is the reason in the events of messages cancelled from the pages.
const reason = "operator"

// confirmView is the data of the page that confirms cancelling many messages.
type confirmView struct {
	Filter filter // with Before set, so that new messages do not count
	Words  []string
	Total  int
	Failed int // dead letters among them, which are deleted
	Grown  int // the confirmed number, if it has grown since; otherwise 0
}

func (u *UI) confirmCancel(w http.ResponseWriter, r *http.Request) error {
	f, err := ownFilter(r, r.URL.Query())
	if err != nil {
		return err
	}
	return u.confirm(w, r, f, 0)
}

// confirm shows the current number of messages of a filter.
func (u *UI) confirm(w http.ResponseWriter, r *http.Request, f filter, grown int) error {
	words := f.words()
	f = f.until(u.Outbox.Queues.Now())
	view := confirmView{Filter: f, Words: words, Grown: grown}
	var err error
	if view.Total, err = u.total(r.Context(), f); err != nil {
		return err
	}
	if f.State == "" || f.State == api.Failed {
		if view.Failed, err = u.total(r.Context(), f.With(api.Failed)); err != nil {
			return err
		}
	}
	return u.show(w, r, http.StatusOK, "cancel", "Cancel messages", view)
}

// cancelAll cancels the confirmed messages. Messages accepted since are not cancelled. If the number grew
// because messages entered a state of the filter, it asks again.
func (u *UI) cancelAll(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f, err := ownFilter(r, r.PostForm)
	if err != nil {
		return err
	}
	confirmed, err := strconv.Atoi(r.PostForm.Get("total"))
	if err != nil || f.Before.IsZero() {
		return fault.New(fault.Invalid, "", "The number of messages to cancel is missing")
	}
	now, err := u.total(r.Context(), f)
	if err != nil {
		return err
	}
	if now > confirmed {
		return u.confirm(w, r, f, confirmed)
	}
	answer, err := u.Outbox.Operations.CancelAll(r.Context(), f.query(), reason)
	if err != nil {
		return err
	}
	u.log.InfoContext(r.Context(), "messages cancelled from the pages", "deleted", answer.Deleted, "active",
		answer.Active)
	text := plural(answer.Deleted, "message was", "messages were") + " cancelled."
	if answer.Active > 0 {
		text += " " + plural(answer.Active, "message was", "messages were") +
			" already being sent and not cancelled."
	}
	return done(w, r, local(r.PostForm.Get("back")), "%s", text)
}

// total returns the number of messages of a filter.
func (u *UI) total(ctx context.Context, f filter) (int, error) {
	q := f.query()
	q.PageSize = 1
	page, err := u.Outbox.Reader.List(ctx, q)
	return page.Total, err
}

// until excludes messages accepted after now. Times of messages are in milliseconds, and Before is exclusive.
func (f filter) until(now time.Time) filter {
	if f.Before.IsZero() || f.Before.After(now) {
		f.Before = now.Truncate(time.Millisecond).Add(time.Millisecond)
	}
	return f
}

// words describe the messages of a filter.
func (f filter) words() []string {
	var words []string
	say := func(format, value string) {
		if value != "" {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	say("in state %s", string(f.State))
	say("of account %s", f.Account)
	say("in the %s stream", string(f.Lane))
	say("tagged “%s”", f.Tag)
	say("with “%s” in an address or the subject", f.Search)
	say("accepted from %s UTC on", formMoment(f.After))
	say("accepted before %s UTC", formMoment(f.Before))
	return words
}

// BackURL returns the URL of the list that the confirmation came from.
func (v confirmView) BackURL() string {
	f := v.Filter
	values := f.values()
	if f.Before.Nanosecond() != 0 || f.Before.Second() != 0 { // set by until
		values.Del("before")
	}
	return address("/outbox", url.Values(values))
}
