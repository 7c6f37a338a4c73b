package apisend

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// meaning is a refusal in SMTP's terms. Error.Code stays a code of SMTP, because events,
// suppressions and pages read it as one: an HTTP status of the same number means something else.
type meaning struct {
	phase    smtpsend.Phase
	code     int
	enhanced string
	verdict  smtpsend.Verdict
	scope    smtpsend.Scope
	suppress bool
}

// The meanings that answers of providers have.
var (
	unknownAddress = meaning{smtpsend.PhaseRcpt, 550, "5.1.1", smtpsend.Hard, smtpsend.ScopeRecipient, true}
	fullMailbox    = meaning{smtpsend.PhaseRcpt, 452, "4.2.2", smtpsend.Soft, smtpsend.ScopeRecipient, false}
	laterAddress   = meaning{smtpsend.PhaseRcpt, 450, "4.2.0", smtpsend.Soft, smtpsend.ScopeRecipient, false}
	slowDomain     = meaning{smtpsend.PhaseRcpt, 450, "4.7.0", smtpsend.Throttle, smtpsend.ScopeDomain, false}
	badAddress     = meaning{smtpsend.PhaseRcpt, 550, "5.1.3", smtpsend.Policy, smtpsend.ScopeRecipient, false}
	badMessage     = meaning{smtpsend.PhaseDot, 554, "5.6.0", smtpsend.Policy, smtpsend.ScopeMessage, false}
	tooLarge       = meaning{smtpsend.PhaseDot, 552, "5.3.4", smtpsend.Policy, smtpsend.ScopeMessage, false}
	badSender      = meaning{smtpsend.PhaseMail, 550, "5.7.1", smtpsend.Auth, smtpsend.ScopeAccount, false}
	badKey         = meaning{smtpsend.PhaseAuth, 535, "5.7.8", smtpsend.Auth, smtpsend.ScopeAccount, false}
	tooFast        = meaning{smtpsend.PhaseMail, 450, "4.7.0", smtpsend.Throttle, smtpsend.ScopeAccount, false}
	busy           = meaning{smtpsend.PhaseMail, 450, "4.7.0", smtpsend.Throttle, smtpsend.ScopeConnection,
		false}
	broken       = meaning{smtpsend.PhaseMail, 451, "4.3.0", smtpsend.Soft, smtpsend.ScopeConnection, false}
	unavailable  = meaning{smtpsend.PhaseMail, 421, "4.3.2", smtpsend.Soft, smtpsend.ScopeConnection, false}
	laterMessage = meaning{smtpsend.PhaseDot, 451, "4.0.0", smtpsend.Soft, smtpsend.ScopeMessage, false}
)

// refusal is a provider's objection to a message or a recipient.
type refusal struct {
	meaning
	reason string        // the provider's code or word
	text   string        // its message
	wait   time.Duration // that it asks for; 0 means as in the header
}

// quotaWait is the wait after a quota of a day or a month is used up: its end is unknown.
const quotaWait = time.Hour

// byStatus judges an answer by its status alone. readable says whether it has the API's form. It returns
// false if it is in doubt whether the message was taken.
func byStatus(status int, readable bool) (meaning, bool) {
	switch {
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return badMessage, true
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status >= 300 && status < 400:
		return badKey, true
	case status == http.StatusPaymentRequired:
		return badSender, true
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusGone,
		status == http.StatusNotAcceptable, status == http.StatusUnsupportedMediaType:
		return badKey, true
	case status == http.StatusRequestEntityTooLarge:
		return tooLarge, true
	case status == http.StatusTooManyRequests:
		return tooFast, true
	case status == http.StatusServiceUnavailable:
		return unavailable, true
	case status == http.StatusInternalServerError && readable:
		return broken, true
	case status < 300, status == http.StatusConflict, status >= 500 && !readable:
		// A conflict is one of two requests with the same key: the other one decides.
		return meaning{}, false
	}
	return laterMessage, true
}

// longestWait bounds what a provider may ask for.
const longestWait = 24 * time.Hour

// failure is the error that a refusal means.
func (x *exchange) failure(r refusal) *smtpsend.Error {
	wait := r.wait
	if wait == 0 && (r.verdict == smtpsend.Throttle || r.verdict == smtpsend.Soft) {
		wait = x.asksToWait()
	}
	line := strconv.Itoa(x.status)
	if r.reason != "" {
		line += " " + r.reason
	}
	if r.text != "" {
		line += ": " + r.text
	}
	return &smtpsend.Error{
		Protocol: protocol, Phase: r.phase, Command: x.method, Code: r.code, Enhanced: r.enhanced,
		Line: message.OneLine(line, 1000), Verdict: r.verdict, Scope: r.scope, Suppress: r.suppress,
		RetryAfter: wait, Status: x.status, Reason: message.OneLine(r.reason, 100),
	}
}

// protocol is Error.Protocol of all errors of this package.
const protocol = "http"

// asksToWait returns the wait that the header of an answer asks for: Retry-After, or the time until the limit
// is reset.
func (x *exchange) asksToWait() time.Duration {
	wait := dialing.RetryAfter(x.header, x.now)
	if wait == 0 && x.adapter.reset != nil {
		wait = x.adapter.reset(x.header, x.now)
	}
	return min(max(wait, 0), longestWait)
}

// usedUp reports whether an answer says that no further request is permitted until the limit is reset.
func (x *exchange) usedUp() bool {
	for _, name := range []string{"X-Ratelimit-Remaining", "Ratelimit-Remaining", "X-Sib-Ratelimit-Remaining"} {
		if x.header.Get(name) == "0" {
			return true
		}
	}
	return false
}

// unixTime returns the time until a moment that a header gives in Unix seconds.
func unixTime(name string) func(http.Header, time.Time) time.Duration {
	return func(h http.Header, now time.Time) time.Duration {
		at, err := strconv.ParseInt(h.Get(name), 10, 64)
		if err != nil || at <= 0 || at > 1<<40 {
			return 0
		}
		return time.Unix(at, 0).Sub(now)
	}
}

// inSeconds returns the time that a header gives in seconds.
func inSeconds(name string) func(http.Header, time.Time) time.Duration {
	return func(h http.Header, _ time.Time) time.Duration {
		n, err := strconv.ParseUint(h.Get(name), 10, 31)
		if err != nil {
			return 0
		}
		return time.Duration(n) * time.Second
	}
}

// doubt is the error for a recipient if it is unknown whether the provider took the message.
func (x *exchange) doubt(why error) *smtpsend.Error {
	return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseDot, Command: x.method,
		Verdict: smtpsend.Soft, Scope: smtpsend.ScopeMessage, InDoubt: true, Err: why, Status: x.status}
}

// strange describes an answer that is not of the API's form.
func (x *exchange) strange() error {
	kind, _, _ := strings.Cut(x.header.Get("Content-Type"), ";")
	return fmt.Errorf("status %d, whose content (%s, %d bytes) is not an answer of the API", x.status,
		message.OneLine(kind, 60), len(x.body))
}

var errUnnamed = errors.New("the answer says nothing about this recipient")
