package outbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// How many workers may die over a message, and how many of its attempts may end in doubt, before it fails.
const (
	maxLost   = 20
	maxDoubts = 5
)

// policy is the settings for further attempts.
type policy struct {
	backoff       queue.Backoff
	holdInDoubt   bool // an attempt in doubt is the last one
	hold          bool // messages wait while a relay refuses the account itself
	inPlace       bool // they wait where they are if a relay or their sender fails, and keep no log
	noDeadLetters bool // the content of a failed message is deleted
	random        func() float64
}

// attempted is the result of an attempt.
type attempted struct {
	start, end time.Time
	tries      []routing.Try // the relays asked
	result     smtpsend.Result
	err        error // the whole transaction's error
	refused    bool  // no relay was asked: it does not count as an attempt
	stopping   bool  // the process is stopping
	// how long to wait for the last relay's report if the attempt is in doubt; 0 if it makes none
	reports time.Duration

	suppressed map[int]*suppression.Entry // the suppressed recipients
}

// decision is the result of an attempt: the message's new status and its events.
type decision struct {
	outcome     outcome
	at          time.Time
	due         time.Time // when the next attempt is due, if delayed
	attempts    int       // made, including this one
	status      status
	sent        []int // recipients newly sent
	left        []int // recipients still to be tried
	lost        []int // recipients newly given up
	response    string
	why         map[int]reason // why each recipient was newly refused
	cause       *lastError     // the last of them
	doubt       bool           // the recipients lost or left may have the message
	ban         string         // HoldAccount or HoldSender if its campaign can send nothing more
	fresh       bool           // this attempt is in doubt
	remembers   time.Duration  // how long its provider knows whether it accepted the message; 0 if it doesn't
	spent       bool           // recipients were given up although another attempt might have reached them
	gateway     string         // the last relay asked; empty for the account's own relay
	host        string         // the last relay asked
	address     string         // that it was asked from; empty if the system chose it
	took        time.Duration  // the attempt's duration; 0 if no relay was asked
	trouble     reason         // why the account is held
	reservation string         // the limit's reservation, when deferred
	apart       bool           // the limit is the destination's
	reason      string         // as text, when deferred or held
	hold        string         // what the message waits for, when held
	known       []string       // provider.Reference of the providers that took it
	tried       []string       // the relays asked, by routing.Scope
	dialogues   dialogues      // with the relays asked

	stopped map[int]*suppression.Entry // recipients newly suppressed
	unasked bool                       // all recipients left are suppressed: no attempt was made
}

// waits reports whether the message is put back and no attempt is spent.
func (d *decision) waits() bool { return d.outcome == deferred || d.outcome == held }

// end is the result of a message that leaves the outbox, and the reason if all its recipients are suppressed;
// "" if it stays.
func (d *decision) end() (result, reason string) {
	switch d.outcome {
	case sent:
		return resultSent, ""
	case dropped:
		return resultFailed, ""
	case suppressed:
		for _, entry := range d.stopped {
			reason = string(entry.Reason)
		}
		return resultSuppressed, reason
	}
	return "", ""
}

// untried reports whether no relay was asked.
func (d *decision) untried() bool { return len(d.status.Log) == 0 }

// knowsMore reports whether the decision must be recorded although the lease was lost: a reply was read.
func (d *decision) knowsMore() bool { return len(d.sent) > 0 || d.cause != nil && d.cause.SMTP != 0 }

// reason is why a recipient did not get the message.
type reason struct {
	*lastError
	smtp *smtpsend.Error // the relay's; nil if the error is not from one
}

// Errors that end a message without an attempt at a relay.
var (
	errNoGateway = errors.New("the gateway no longer exists")
	errNoAccount = errors.New("the account no longer exists")
	errNoSender  = errors.New("the account has lost the sender")
	errUnwritten = errors.New("the message can't be written")
	errTooLate   = errors.New("the time to deliver by has passed")
	errNotTheirs = errors.New("the campaign is not for the recipient any more")
	errResent    = errors.New("the recipient gets the campaign by another message")
	errInDoubt   = errors.New(
		"the attempt before died between the final dot and the reply; the message may have been delivered")
	errLost   = fmt.Errorf("the worker died %d times while sending this message", maxLost)
	errDoubts = fmt.Errorf(
		"%d attempts died between the final dot and the reply; the message may have been delivered", maxDoubts)
)

// endCodes are the codes of these errors in the API.
var endCodes = map[error]string{
	errNoGateway: "ENOGATEWAY", errNoAccount: "ENOACCOUNT", errNoSender: "ENOSENDER", errUnwritten: "EMESSAGE",
	errTooLate: "EDELIVERBY", errNotTheirs: "ECAMPAIGN", errResent: "ERESENT", errInDoubt: "EINDOUBT",
	errLost: "EINTERNAL", errDoubts: "EINDOUBT",
}

// endCode returns the code of an error that is one of these, and "" for any other.
func endCode(err error) string {
	for end, code := range endCodes {
		if errors.Is(err, end) {
			return code
		}
	}
	return ""
}

// refuse returns why a message must not be sent at all, or nil if it may be.
func refuse(c *claim, p policy, now time.Time) error {
	switch {
	case strings.Contains(c.lapsed, "doubt") && p.holdInDoubt,
		c.status.Doubt != nil && c.status.only(now) == "" && p.holdInDoubt,
		c.unreported() && p.holdInDoubt:
		return errInDoubt
	case c.doubts-c.oldDoubts >= maxDoubts:
		return errDoubts
	case c.lost >= maxLost:
		return errLost
	case c.envelope.DeliverBy != nil && now.After(*c.envelope.DeliverBy):
		return errTooLate
	}
	return nil
}

// decide returns what follows from an attempt. It is a pure function of the claim, the attempt and the
// policy.
func decide(c *claim, t attempted, p policy) decision {
	var se *smtpsend.Error
	errors.As(t.err, &se)
	untried := errors.Is(t.err, smtpsend.ErrAborted) || errors.Is(t.err, lease.ErrLost) ||
		t.stopping && t.err != nil
	if untried && (se == nil || !se.InDoubt) {
		return decision{outcome: released, at: t.end, reason: t.err.Error()}
	}
	d := decision{at: t.end, attempts: c.attempts + 1, status: c.status, gateway: c.gateway}
	for _, one := range t.tries {
		d.tried = append(d.tried, routing.Scope(c.envelope.Account, one.Gateway))
		d.gateway, d.host, d.address, d.took = one.Gateway, one.Host, one.Address, one.End.Sub(one.Start)
	}
	if t.refused {
		d.attempts--
	}
	d.status.Recipients = slices.Clone(c.status.Recipients)
	d.sort(c, t, se)
	d.fresh = d.doubt && !t.refused
	d.status.Doubt = d.remembered(c, t, se)
	if p.inPlace && t.err != nil && d.spares(c, t, p, se) {
		return d
	}
	d.conclude(c, t, p)
	d.status.Last, d.status.Lost = d.cause, cmp.Or(d.last(d.lost).lastError, c.status.Lost)
	if !p.inPlace {
		d.status.Log = d.logged(c, t)
	}
	return d
}

// answered returns how many attempts were answered before the one whose key the next request has.
func (c *claim) answered() int {
	if c.status.Doubt != nil {
		return c.status.Doubt.Answered
	}
	return max(0, c.attempts-c.doubts)
}

// remembered returns the doubt that a repeat of the same request can resolve, or nil. A doubt from an earlier
// attempt stays until an answer is about the message or its recipients.
func (d *decision) remembered(c *claim, t attempted, se *smtpsend.Error) *remembered {
	open := c.status.Doubt
	about := se != nil && !se.InDoubt && (se.Scope == smtpsend.ScopeRecipient ||
		se.Scope == smtpsend.ScopeMessage)
	switch {
	case c.status.only(t.end) != "" && len(d.sent) == 0 && !about:
		return open
	case d.remembers > 0:
		return &remembered{d.gateway, t.start.Add(d.remembers).UTC().Truncate(time.Millisecond), c.answered()}
	}
	return nil
}

// sort sets the status of each recipient that the attempt included.
func (d *decision) sort(c *claim, t attempted, se *smtpsend.Error) {
	results, next := t.result.Recipients, 0 // in the order of the recipients
	queued := c.status.having(rcptQueued)
	for _, i := range queued {
		r := &d.status.Recipients[i]
		if entry := t.suppressed[i]; entry != nil {
			r.Status, r.Response = rcptSuppressed, Explain(entry)
			continue
		}
		r.Attempts++
		at := slices.IndexFunc(results[next:], func(r smtpsend.RecipientResult) bool {
			return r.Address == c.envelope.To[i]
		})
		if at < 0 {
			d.blame(i, t.err, se)
			continue
		}
		next += at
		if result := results[next]; result.Err != nil {
			d.blame(i, result.Err, result.Err)
		} else {
			r.Status, r.Response, r.ID = rcptSent, result.Response, result.ProviderID
			d.sent = append(d.sent, i)
			d.provider(result)
		}
	}
	d.response, d.stopped = t.result.Response, t.suppressed
	d.unasked = len(d.stopped) > 0 && len(d.stopped) == len(queued)
}

// provider notes under which name a provider's webhooks know the message.
func (d *decision) provider(r smtpsend.RecipientResult) {
	reference := provider.Reference(provider.Name(r.Provider), r.ProviderID)
	if reference != "" && !slices.Contains(d.known, reference) {
		d.known = append(d.known, reference)
	}
}

// blame records why a recipient did not get the message, and whether that is final.
func (d *decision) blame(i int, err error, se *smtpsend.Error) {
	r := &d.status.Recipients[i]
	d.cause = describe(err, se)
	if d.why == nil {
		d.why = map[int]reason{}
	}
	d.why[i] = reason{d.cause, se}
	r.Response = d.cause.Message
	if se != nil && se.InDoubt {
		d.remembers = se.Remembered
	}
	d.doubt = d.doubt || se != nil && se.InDoubt || errors.Is(err, errInDoubt) || errors.Is(err, errDoubts)
	if permanent(err, se) {
		r.Status = rcptFailed
		d.lost = append(d.lost, i)
		return
	}
	d.left = append(d.left, i)
}

// Why a campaign can send nothing more: the values of Sending.Hold.
const (
	HoldAccount = "account" // the relay refused the account itself
	HoldSender  = "sender"  // the account has lost its sender or its gateway
)

// bans are the values of decision.ban by the codes of endCodes.
var bans = map[string]string{"ENOACCOUNT": HoldAccount, "ENOGATEWAY": HoldAccount, "ENOSENDER": HoldSender}

// spares makes the recipient of a campaign wait in place, and reports whether it did: the relay, the account
// or the sender is at fault. Nothing was delivered, and no attempt is spent.
func (d *decision) spares(c *claim, t attempted, p policy, se *smtpsend.Error) bool {
	d.ban = bans[endCode(t.err)]
	away := se != nil && !se.InDoubt && !se.Uncarried() && (se.Elsewhere() ||
		se.Scope == smtpsend.ScopeConnection || se.Code == 0)
	if n := len(t.tries); away && n > 0 && t.tries[n-1].OfDestination(se) {
		away = false // the servers of other people may be well
	}
	if away = away && !troubled(se); troubled(se) && (!p.hold || c.gateway != "") {
		d.ban = HoldAccount
	}
	if d.ban == "" && !away {
		return false
	}
	d.left, d.lost = append(d.left, d.lost...), nil
	d.outcome, d.due, d.reason = released, d.nextAttempt(c, t, p), d.cause.Message
	return true
}

// conclude decides whether the recipients that are left get another attempt.
func (d *decision) conclude(c *claim, t attempted, p policy) {
	if d.holds(c, p) {
		return
	}
	if len(d.left) > 0 {
		d.due = d.nextAttempt(c, t, p)
		late := c.envelope.DeliverBy != nil && d.due.After(*c.envelope.DeliverBy)
		d.spent = d.attempts >= c.max || late
		waits := d.fresh && t.reports > 0
		if waits {
			d.due = later(d.due, t.end.Add(t.reports))
		}
		if !d.spent && !(d.doubt && p.holdInDoubt && !waits && (d.status.Doubt == nil || p.inPlace)) {
			d.outcome = delayed
			return
		}
		for _, i := range d.left {
			d.status.Recipients[i].Status = rcptFailed
		}
		d.lost, d.left = append(d.lost, d.left...), nil
		slices.Sort(d.lost)
	}
	switch {
	case len(d.status.having(rcptFailed)) > 0 && p.noDeadLetters:
		d.outcome = dropped
	case len(d.status.having(rcptFailed)) > 0:
		d.outcome = failed
	case len(d.status.having(rcptSuppressed)) > 0 && len(d.status.having(rcptSent)) == 0:
		d.outcome = suppressed
	default:
		d.outcome = sent
	}
}

// holds makes a message wait for its account, if the relay refused the account and the account is set to
// hold. A message in doubt does not wait if it must not be repeated then.
func (d *decision) holds(c *claim, p policy) bool {
	if !p.hold || d.doubt && p.holdInDoubt {
		return false
	}
	for i, why := range d.why {
		if troubled(why.smtp) {
			r := &d.status.Recipients[i]
			r.Status = rcptQueued
			r.Attempts--
			d.trouble = why
		}
	}
	if d.trouble.lastError == nil {
		return false
	}
	d.lost = slices.DeleteFunc(d.lost, func(i int) bool { return troubled(d.why[i].smtp) })
	d.outcome, d.due, d.reason = held, d.at.Add(holdAtMost), heldReason(d.trouble.Message)
	d.hold = accountHold(c.envelope.Account)
	if c.gateway != "" { // the one it asked for; the account's other mail is not concerned
		d.outcome, d.due, d.reason = deferred, d.at.Add(gatewayAgain), "gateway "+c.gateway+" refuses: "+
			d.trouble.Message
	}
	d.attempts--
	return true
}

// nextAttempt is the time of the next attempt: after the backoff, and not before the time that the relay
// gave.
func (d *decision) nextAttempt(c *claim, t attempted, p policy) time.Time {
	wait := p.backoff.Delay(d.attempts+1-c.lost, p.random())
	for _, i := range d.left {
		if se := d.why[i].smtp; se != nil {
			wait = max(wait, se.RetryAfter)
		}
	}
	return t.end.Add(wait).Truncate(time.Millisecond)
}

// permanent reports whether an error is final. Without a reply, only the errors of endCodes are.
func permanent(err error, se *smtpsend.Error) bool {
	if se != nil {
		return se.Permanent() && !se.InDoubt
	}
	return endCode(err) != ""
}

// describe returns an error for the record and the API.
func describe(err error, se *smtpsend.Error) *lastError {
	if se != nil {
		return &lastError{Message: cmp.Or(se.Line, se.Error()), Code: se.Name(), SMTP: se.Code,
			Account: troubled(se)}
	}
	if err == nil {
		return &lastError{Message: "the relay said nothing about this recipient", Code: "EPROTOCOL"}
	}
	return &lastError{Message: err.Error(), Code: cmp.Or(endCode(err), "EINTERNAL")}
}

// logged returns the log with a line for each relay of this attempt. It keeps only the first and the last
// trial of a held message.
func (d *decision) logged(c *claim, t attempted) []api.Attempt {
	log := append(slices.Clone(c.status.Log), lapsedAttempts(c)...)
	if d.unasked || t.refused && c.lapsed != "" {
		return log // nothing was tried, or it is refused because of the lapsed attempts, or they were its last
	}
	n := len(log)
	again := d.waits() && n > 1 && log[n-1].Held && log[n-2].Held
	if again {
		log = log[:n-1]
	}
	tries := t.tries
	if len(tries) == 0 {
		tries = []routing.Try{{Gateway: c.gateway, Start: t.start, End: t.end, Result: t.result, Err: t.err}}
	}
	d.dialogues = dialogues{}
	for n, one := range tries {
		number := len(log) + 1
		d.dialogues.keep(number, one.Result.Dialogue, again)
		log = append(log, d.logTry(one, number, n == len(tries)-1, n == 0))
	}
	return log
}

// lapsedAttempts are the log's lines about the attempts before whose worker died.
func lapsedAttempts(c *claim) (lines []api.Attempt) {
	for n, lapse := range strings.Fields(c.lapsed) {
		how, began, _ := strings.Cut(lapse, "@")
		lines = append(lines, api.Attempt{
			Number: len(c.status.Log) + n + 1, Start: redisdb.ParseTime(began), Gateway: c.gateway,
			InDoubt: how == "doubt", Error: "EINTERNAL", Line: "the worker died during this attempt",
		})
	}
	return lines
}

// logTry is the log's line about one relay. The line of the last relay has the result of the attempt. If it
// is the only one, it also has the refusal of a recipient.
func (d *decision) logTry(t routing.Try, number int, last, only bool) api.Attempt {
	end := t.End.UTC().Truncate(time.Millisecond)
	a := api.Attempt{
		Number: number, Start: t.Start.UTC().Truncate(time.Millisecond), End: &end, Gateway: t.Gateway,
		Host: t.Host, Address: t.Address, TLS: t.Result.TLS, Code: t.Result.Code, Line: t.Result.Response,
	}
	var why reason
	if last {
		a.InDoubt, a.Held = d.fresh, d.waits()
	}
	switch {
	case a.Held:
		why = d.trouble
	case last && only:
		why = d.last(slices.Concat(d.lost, d.left))
	case t.Err != nil:
		var se *smtpsend.Error
		errors.As(t.Err, &se)
		why = reason{describe(t.Err, se), se}
	}
	if why.lastError != nil {
		a.Error, a.Code, a.Line = why.Code, why.SMTP, why.Message
		if why.smtp != nil {
			a.Enhanced, a.Status, a.ProviderCode = why.smtp.Enhanced, why.smtp.Status, why.smtp.Reason
		}
	}
	return a
}

// last is the reason of the last of the recipients.
func (d *decision) last(which []int) reason {
	for _, i := range slices.Backward(which) {
		if r, ok := d.why[i]; ok {
			return r
		}
	}
	return reason{}
}

// summary is the error for the queue's dashboard: a code without addresses.
func (d *decision) summary() error {
	cause := d.status.fault(string(d.outcome))
	if cause == nil {
		return errors.New("failed")
	}
	if cause.SMTP != 0 {
		return fmt.Errorf("%s %d after attempt %d", cause.Code, cause.SMTP, d.attempts)
	}
	return fmt.Errorf("%s after attempt %d", cause.Code, d.attempts)
}
