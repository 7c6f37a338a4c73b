package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/smtpsend/replies"
)

// fate is the result of a message, for the address.
type fate struct {
	api.WhyFinding
	arrived string
}

// fateOf returns a message's fate. It reads nothing: it decides from the message.
func (q *question) fateOf(m api.WhyMessage) fate {
	f := q.decided(m)
	f.QueueID, f.Account = m.QueueID, m.Account
	show := q.step("Show the message", messagePage(m), "log show", m.QueueID)
	if m.Indexed {
		show = q.step("Find the message", "/search?q=id:"+m.QueueID, "search", "id:"+m.QueueID)
	}
	f.Do = append(f.Do, show)
	return f
}

func (q *question) decided(m api.WhyMessage) fate {
	switch m.Recipient.Status {
	case "sent":
		return q.sent(m)
	case "failed":
		return q.failed(m)
	case "suppressed":
		return fate{finding("suppressed", m.Ended, "%s was not sent to %s: the address is suppressed%s.", about(m),
			q.Address(), because(m.Reason)), api.ArrivedNo}
	case "cancelled", "replaced":
		f := fate{finding("cancelled", m.Ended, "%s was cancelled before it was sent%s.", about(m),
			because(m.Reason)), api.ArrivedNo}
		if m.Recipient.Status == "replaced" {
			f.Text = about(m) + " failed, and was then sent to another address instead of " + q.Address() + "."
		}
		return f
	}
	return q.live(m)
}

// sent is the fate of a message that a relay took. A proof that the person has it comes first: a server that
// returns an email may be wrong, somebody who opens it is not.
func (q *question) sent(m api.WhyMessage) fate {
	last := func(types ...event.Type) *api.MessageEvent {
		for _, e := range slices.Backward(m.Events) {
			if slices.Contains(types, event.Type(e.Event)) && (e.Details == nil || !e.Details.Bot) {
				return &e
			}
		}
		return nil
	}
	if e := last(event.MessageComplaint); e != nil {
		return fate{finding("complained", &e.Date, "%s arrived, and %s reported it as spam on %s.", about(m),
			q.Address(), on(e.Date)), api.ArrivedYes}
	}
	if e := last(event.TrackClick, event.TrackOpen, event.ListUnsubscribe); e != nil {
		verb := map[event.Type]string{event.TrackClick: "followed a link in it", event.TrackOpen: "opened it",
			event.ListUnsubscribe: "unsubscribed by it"}[event.Type(e.Event)]
		return fate{finding("opened", &e.Date, "%s arrived: %s %s on %s.", about(m), q.Address(), verb,
			on(e.Date)), api.ArrivedYes}
	}
	if e := last(event.MessageBounce); e != nil {
		f := fate{finding("bounced", &e.Date,
			"%s was accepted by the relay and bounced on %s: the server of %s refused "+
				"it%s.", about(m), on(e.Date),
			q.Address(), quoted(bounceWords(e))), api.ArrivedNo}
		f.Explanation = meaningOf(e)
		return f
	}
	if e := last(event.MessageDelivered); e != nil {
		return fate{finding("delivered", &e.Date,
			"%s was delivered on %s: the server of %s accepted it. Look in the spam folder there.", about(m),
			on(e.Date), q.Address()), api.ArrivedYes}
	}
	if e := last(event.MessageDeferred); e != nil {
		f := fate{finding("deferred", &e.Date,
			"%s was accepted by the relay, which reported on %s that it is still trying to deliver "+
				"it%s.", about(m),
			on(e.Date), quoted(bounceWords(e))), api.ArrivedNotYet}
		f.Explanation = meaningOf(e)
		return f
	}
	at, reply := m.Ended, m.Recipient.Response
	if e := last(event.MessageSent); e != nil {
		at, reply = &e.Date, cmp.Or(reply, e.Response)
	}
	return fate{finding("sent", at, "%s was accepted by the relay%s%s. Nothing has been reported "+
		"since.", about(m),
		onSome(at), quoted(reply)), api.ArrivedUnknown}
}

func bounceWords(e *api.MessageEvent) string {
	if e.Details == nil {
		return ""
	}
	return cmp.Or(e.Details.Diagnostic, e.Details.Status)
}

// meaningOf says what the reply means that a report quotes.
func meaningOf(e *api.MessageEvent) *api.Explanation {
	if e.Details == nil {
		return nil
	}
	return meaning(replies.Reply{Code: e.Details.Code, Enhanced: e.Details.Status, Text: e.Details.Diagnostic})
}

// failed is the fate of a message that is given up.
func (q *question) failed(m api.WhyMessage) fate {
	var f fate
	attempt := lastAttempt(m)
	if m.InDoubt > 0 && (attempt == nil || attempt.InDoubt) {
		f = q.doubtful(m, "Postroom doesn't send it again automatically")
	} else {
		who, said, at := "it could not be sent", cmp.Or(m.Recipient.Response, m.Reason), m.Ended
		if attempt != nil && attempt.Code != 0 {
			who = "the relay " + attempt.Host + " refused it"
		}
		if attempt != nil && attempt.Line != "" {
			said, at = cmp.Or(m.Recipient.Response, attempt.Line), &attempt.Start
		} else if said == "" && m.Error != nil {
			said = m.Error.Message
		}
		f = fate{finding("refused", at, "%s failed permanently%s: %s%s.", about(m), onSome(at), who,
			quoted(said)), api.ArrivedNo}
		f.Explanation = meaning(refusal(m, said))
	}
	if m.Status == api.StatusDead {
		f.Do = append(f.Do, q.step("Send it again", messagePage(m), "dead-letter replay", m.QueueID))
	}
	return f
}

// refusal returns the last refusal of a message, whose text is given.
func refusal(m api.WhyMessage, said string) replies.Reply {
	r := replies.Reply{Text: said}
	if m.Error != nil {
		r.Error = m.Error.Code
		if said == m.Error.Message && m.Error.StatusCode != nil {
			r.Code = *m.Error.StatusCode
		}
	}
	if a := lastAttempt(m); a != nil && said == a.Line {
		r.Code, r.Enhanced, r.Error = a.Code, a.Enhanced, a.Error
	}
	return r
}

func lastAttempt(m api.WhyMessage) *api.Attempt {
	if len(m.Log) == 0 {
		return nil
	}
	return &m.Log[len(m.Log)-1]
}

// doubtful is the fate of a message whose attempt died between the final dot and the reply.
func (q *question) doubtful(m api.WhyMessage, then string) fate {
	var at *time.Time
	if a := lastAttempt(m); a != nil {
		at = &a.Start
	}
	return fate{finding("inDoubt", at, "It is unknown whether %s received %s: the connection to the relay "+
		"ended%s "+
		"after the whole message and before the reply; "+
		"%s.", q.Address(), strings.ToLower(about(m)[:1])+about(m)[1:],
		onSome(at), then), api.ArrivedUnknown}
}

// The outbox's reasons for a wait; see delivery_hold.go and delivery_attempt.go there.
const (
	heldReason     = "the account is held"
	campaignReason = "its campaign is paused or held"
)

// live is the fate of a message that waits or is being sent.
func (q *question) live(m api.WhyMessage) fate {
	next := ""
	if m.Next != nil && m.Next.After(q.now) {
		next = "; the next attempt is on " + on(*m.Next)
	}
	retry := q.step("Send it now", messagePage(m), "outbox retry", m.QueueID)
	cancel := q.step("Cancel it", messagePage(m), "outbox cancel", m.QueueID)
	do := func(f api.WhyFinding, steps ...api.WhyStep) fate {
		f.Do = append(f.Do, steps...)
		return fate{f, api.ArrivedNotYet}
	}
	account, held := q.held[m.Account]
	switch waited := !m.Created.IsZero() && m.Made > 0; {
	case m.Status == api.StatusSending:
		return do(finding("sending", nil, "%s is being sent right now.", about(m)))
	case m.InDoubt > 0 && lastAttempt(m) != nil && lastAttempt(m).InDoubt:
		f := q.doubtful(m, "it will be sent again"+strings.TrimPrefix(next, "; the next attempt is"))
		f.Do = append(f.Do, cancel)
		return f
	case strings.HasPrefix(m.Reason, heldReason) || held && m.State != api.Paused:
		why := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(m.Reason, heldReason), ": "), account.LastError)
		f := finding("held", m.Next, "%s waits because its account %s is held%s. It is sent when the "+
			"relay accepts the account's messages again.", about(m), m.Account, quoted(why))
		f.Explanation = meaning(replies.Reply{Text: why})
		return do(f, q.step("Test the account's login", "/accounts", "account verify", m.Account))
	case m.State == api.Paused:
		return do(finding("paused", nil, "%s waits because the queue %s is paused.", about(m), laneQueue(m.Lane)),
			q.resume(laneQueue(m.Lane))...)
	case m.Reason == campaignReason:
		return do(finding("paused", nil, "%s waits because its campaign is paused or held.", about(m)),
			q.step("List the campaigns", "/campaigns", "campaign list"))
	case m.Reason != "":
		return do(finding("paced", m.Next, "%s waits for a limit: %s%s.", about(m), m.Reason, next), cancel)
	case waited:
		line := m.Recipient.Response
		if a := lastAttempt(m); a != nil {
			line = cmp.Or(line, a.Line)
		}
		f := finding("delayed", m.Next, "%s has not gone out yet: attempt %d of %d failed%s%s.", about(m),
			m.Made, m.Attempts, quoted(line), next)
		f.Explanation = meaning(refusal(m, line))
		return do(f, retry, cancel)
	case m.Scheduled != nil && m.Scheduled.After(q.now):
		return do(finding("scheduled", m.Scheduled, "%s is scheduled: it is sent on %s.", about(m),
			on(*m.Scheduled)), retry, cancel)
	}
	return do(finding("waiting", m.Next, "%s waits for a worker%s.", about(m), next),
		q.step("Show the queue", "/", "queue status", laneQueue(m.Lane)))
}

// resume returns the steps to resume a queue. People who are bound to an account may not.
func (q *question) resume(queue string) []api.WhyStep {
	if q.bound {
		return nil
	}
	return []api.WhyStep{q.step("Resume the queue", "/", "queue resume", queue)}
}

// told returns the result of the webhooks about a message: nil, or the last failure. A failed delivery is a
// failure even if another endpoint got the same event: that application doesn't know.
func (q *question) told(m api.WhyMessage) *api.WhyFinding {
	for _, d := range q.answer.Deliveries {
		if d.QueueID != m.QueueID || d.Status != "failed" && (d.Status != "pending" || d.Attempts == 0) {
			continue
		}
		said := d.Error
		if said == "" && d.StatusCode != 0 {
			said = fmt.Sprintf("it answered %d", d.StatusCode)
		}
		where := "a webhook endpoint"
		if d.Endpoint != "" {
			where = "the webhook endpoint " + d.Endpoint
		}
		f := finding("webhookLost", &d.Created,
			"The application wasn't notified that %s: the %s for %s failed%s after %s.", becomes(d.Event), d.Event, where,
			quoted(said), plural(d.Attempts, "attempt"))
		if d.Status == "pending" {
			f = finding("webhookWaits", &d.Created,
				"The application hasn't been notified yet that %s: the %s for %s failed%s so far, and "+
					"Postroom retries it.",
				becomes(d.Event), d.Event, where, quoted(said))
		}
		f.QueueID, f.Account = m.QueueID, m.Account
		f.Explanation = new(replies.OfWebhook(d.StatusCode, d.Error))
		if d.Endpoint != "" {
			f.Do = append(f.Do, q.step("Deliver it again", "/webhooks/"+escaped(d.Endpoint), "webhook deliveries",
				d.Endpoint))
		}
		return &f
	}
	return nil
}

// becomes says as text what an event reports.
func becomes(name string) string {
	switch event.Type(name) {
	case event.MessageSent:
		return "the relay took the message"
	case event.MessageFailed:
		return "the message failed"
	case event.MessageBounce:
		return "the message came back"
	case event.MessageDelivered:
		return "the message was delivered"
	}
	return "there was a " + name
}
