package smtpsend

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Evidence is what a refusal is judged by.
type Evidence struct {
	Phase      Phase     // empty: unknown, as for a bounce that does not say
	Code       int       // reply code
	Enhanced   string    // enhanced code; empty without. It is ignored when its class is not Code's
	Text       string    // the reply's words, lines joined by a space, without codes
	Recipients int       // how many recipients the reply is about; 0 counts as one
	Now        time.Time // to turn "try again after <date>" into a wait; zero: such dates are ignored
}

// Judgement is what a refusal means.
type Judgement struct {
	Verdict        Verdict
	Scope          Scope
	Suppress       bool          // the address is invalid or gone
	Reconnect      bool          // only the connection had enough
	NewTransaction bool          // only the transaction had enough
	RetryAfter     time.Duration // as the reply asks; 0: it does not
	Rule           string        // effect of the rule in rules.tsv that decided; empty: the codes did
}

// Classify judges a refusal by its phase, its codes and its words. The reply code's class decides between for
// good and for now, unless the words say that the relay did not mean it: quotas in a 5xx pass, an expired
// plan in a 4xx does not.
func Classify(e Evidence) Judgement {
	if e.Enhanced != "" && (e.Code < 100 || int(e.Enhanced[0]-'0') != e.Code/100) {
		e.Enhanced = ""
	}
	j, decided := byPhase(e)
	if !decided {
		if r, ok := matchRule(e.Code, e.Text); ok {
			j, decided = byEffect(e, r.effect)
			j.Rule = string(r.effect)
		}
	}
	if !decided {
		j = byCode(e)
	}
	if e.Code == 521 && j.Verdict == Hard {
		// 521 is how a host takes no mail at all (RFC 7504), and how AOL, AT&T and Postfix turn a client away; AOL
		// puts 5.2.1 beside it all the same. It is no word about the mailbox.
		j = Judgement{Verdict: Block, Scope: ScopeDestination, Rule: j.Rule}
	}
	if j.Verdict == Soft && aboutServer(e) {
		j.Scope = ScopeConnection
	}
	if j.Verdict == Soft || j.Verdict == Throttle {
		j.RetryAfter = max(j.RetryAfter, retryAfter(e.Text, e.Now))
	}
	return j
}

// byPhase judges what needs no words.
func byPhase(e Evidence) (Judgement, bool) {
	permanent := e.Code >= 500
	switch {
	case e.Code == 503 && !slices.Contains(authSubject, e.Enhanced) &&
		!strings.Contains(strings.ToLower(e.Text), "authenticat"):
		// We and the relay disagree about where we are. That is nobody's fault but the conversation's.
		return Judgement{Verdict: Soft, Scope: ScopeConnection}, true
	case e.Phase == PhaseAuth && (permanent || e.Code == 432 && e.Enhanced == "4.7.12"):
		return Judgement{Verdict: Auth, Scope: ScopeAccount}, true
	case e.Phase == PhaseAuth && e.Code == 432:
		return Judgement{Verdict: Throttle, Scope: ScopeAccount}, true
	case e.Code == 530, e.Code == 535, e.Code == 538, e.Code == 534 && e.Phase != PhaseData &&
		e.Phase != PhaseDot:
		return Judgement{Verdict: Auth, Scope: ScopeAccount}, true
	case e.Code == 556 || strings.HasSuffix(e.Enhanced, ".1.10") && permanent:
		return unknownRecipient(e), true
	case slices.Contains(quotaSubject, e.Enhanced):
		return Judgement{Verdict: Throttle, Scope: ScopeAccount}, true
	case slices.Contains(recipientQuotaSubject, e.Enhanced):
		return Judgement{Verdict: Throttle, Scope: ScopeRecipient}, true
	case slices.Contains(authSubject, e.Enhanced):
		return Judgement{Verdict: Auth, Scope: ScopeAccount}, true
	}
	return Judgement{}, false
}

// Enhanced codes whose meaning a large provider has fixed beyond RFC 3463.
var (
	// Exchange Online: daily recipient limit; continuous errors; trial and tenant limits; tenant threshold.
	// Gmail: daily quota.
	quotaSubject = []string{"5.1.90", "5.2.251", "5.7.232", "5.7.233", "5.7.236", "5.7.508", "5.7.705",
		"5.4.5"}
	recipientQuotaSubject = []string{"5.2.121", "5.2.122"}
	// Exchange Online: anonymous mail; unregistered domains; unprovisioned domain; outbound spam. RFC 4954:
	// mechanism too weak, encryption required, password transition.
	authSubject = []string{"5.7.51", "5.7.57", "5.7.750", "5.7.751", "5.7.64", "5.7.10", "5.7.11", "5.7.12",
		"4.7.12"}
)

// byEffect is what a rule's match means in this phase. False: in this phase it means nothing.
func byEffect(e Evidence, f effect) (Judgement, bool) {
	permanent := e.Code >= 500
	switch f {
	case effectThrottleRecipient:
		return Judgement{Verdict: Throttle, Scope: ScopeRecipient}, true
	case effectThrottleAccount:
		j := Judgement{Verdict: Throttle, Scope: ScopeAccount}
		if e.Phase == PhaseAuth {
			j.RetryAfter = 15 * time.Minute // knocking on makes such a lock last longer
		}
		return j, true
	case effectThrottleDestination:
		return Judgement{Verdict: Throttle, Scope: ScopeDestination}, true
	case effectThrottleConnection:
		return Judgement{Verdict: Throttle, Scope: ScopeConnection}, true
	case effectReconnect:
		return Judgement{Verdict: Soft, Scope: ScopeConnection, Reconnect: true}, true
	case effectNext:
		return Judgement{Verdict: Soft, Scope: ScopeMessage, NewTransaction: e.Phase == PhaseRcpt}, true
	case effectAuth:
		return Judgement{Verdict: Auth, Scope: ScopeAccount}, true
	case effectSize:
		return retryable(e, Judgement{Verdict: Policy, Scope: ScopeMessage}), true
	case effectFull:
		if e.Phase == PhaseMail && permanent {
			return Judgement{Verdict: Auth, Scope: ScopeAccount}, true // the sender's own
		}
		if e.Enhanced == "4.3.1" {
			return Judgement{Verdict: Soft, Scope: scopeOf(e.Phase)}, true // the relay's disk, nobody's mailbox
		}
		return retryable(e, Judgement{Verdict: Hard, Scope: ScopeRecipient}), true
	case effectPolicy:
		return Judgement{Verdict: Policy, Scope: ScopeMessage}, true
	case effectBlock:
		return Judgement{Verdict: Block, Scope: ScopeDestination}, true
	case effectGreylist:
		return Judgement{Verdict: Soft, Scope: ScopeRecipient}, true
	case effectGone:
		j := unknownRecipient(e)
		j.Suppress = false
		return j, true
	case effectUnknown:
		return unknownRecipient(e), true
	case effectRejectedAddress:
		if e.Phase == PhaseRcpt && !strings.HasPrefix(e.Enhanced, "5.7.") || addressSubject(e.Enhanced) {
			return unknownRecipient(e), true
		}
		return Judgement{Verdict: Policy, Scope: ScopeMessage}, true
	case effectTransient:
		return Judgement{Verdict: Soft, Scope: scopeOf(e.Phase)}, true
	}
	return Judgement{}, false
}

// aboutServer reports whether a refusal for now comes so early, and in such terms, that it is the relay's own
// trouble: it is shutting down, out of space, or has lost a part of itself (RFC 3463 section 3.4).
func aboutServer(e Evidence) bool {
	return e.Phase == PhaseMail && (e.Code == 421 || strings.HasPrefix(e.Enhanced, "4.3."))
}

// retryable turns a refusal for good into one for now when the reply code says so.
func retryable(e Evidence, j Judgement) Judgement {
	if e.Code < 500 {
		j.Verdict = Soft
	}
	return j
}

// byCode judges a reply whose words say nothing we know.
func byCode(e Evidence) Judgement {
	scope := scopeOf(e.Phase)
	switch {
	case e.Code < 500:
		// 452 in answer to RCPT is how RFC 5321 section 4.5.3.1.10 says that the transaction is full.
		full := e.Phase == PhaseRcpt && (e.Enhanced == "4.5.3" || e.Code == 452 && e.Enhanced == "")
		return Judgement{Verdict: Soft, Scope: scope, NewTransaction: full}
	case e.Phase == PhaseRcpt && e.Enhanced == "5.5.3":
		return Judgement{Verdict: Soft, Scope: ScopeMessage, NewTransaction: true}
	case e.Phase == PhaseGreeting:
		// It is about this host or this hour, never about a recipient.
		return Judgement{Verdict: Soft, Scope: ScopeDestination}
	case e.Phase == PhaseEHLO, e.Phase == PhaseSTARTTLS, e.Phase == PhaseTLS:
		return Judgement{Verdict: Auth, Scope: ScopeAccount}
	case e.Phase == PhaseMail:
		return Judgement{Verdict: Policy, Scope: ScopeMessage}
	case addressSubject(e.Enhanced), e.Phase == PhaseRcpt && (e.Code == 551 && e.Enhanced == "" ||
		e.Enhanced == "5.2.1" || e.Enhanced == "5.7.13"):
		return unknownRecipient(e)
	case e.Phase == PhaseRcpt && e.Enhanced == "5.4.1" &&
		strings.Contains(strings.ToLower(e.Text), "access denied"):
		return unknownRecipient(e) // how Exchange Online says that its directory does not have the address
	case e.Enhanced == "5.2.2":
		return Judgement{Verdict: Hard, Scope: ScopeRecipient}
	case e.Phase == PhaseRcpt:
		return Judgement{Verdict: Policy, Scope: ScopeRecipient}
	}
	return Judgement{Verdict: Policy, Scope: ScopeMessage}
}

// addressSubject reports whether an enhanced code says that the recipient's address is wrong (RFC 3463
// section 3.2).
func addressSubject(enhanced string) bool {
	return slices.Contains([]string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"}, enhanced)
}

// unknownRecipient is an address that does not exist. Where the reply may be about another address (the
// sender's, our host's, or one of several recipients), it is no reason to suppress anybody.
func unknownRecipient(e Evidence) Judgement {
	switch {
	case e.Phase == PhaseMail, aboutAnother(e):
		return Judgement{Verdict: Policy, Scope: ScopeMessage}
	case e.Phase == PhaseGreeting, e.Phase == PhaseEHLO:
		return Judgement{Verdict: Soft, Scope: ScopeDestination}
	case e.Recipients > 1:
		return Judgement{Verdict: Policy, Scope: ScopeMessage}
	}
	return Judgement{Verdict: Hard, Scope: ScopeRecipient, Suppress: true}
}

var (
	urlPattern       = regexp.MustCompile(`(?i)\bhttps?://\S+`)
	malformedPattern = regexp.MustCompile(`(?i)\b(invalid|bad|illegal|malformed) (e-?mail )?address`)
	anotherPattern   = regexp.MustCompile(
		`(?i)\b(senders?|ip (address|name|host)|(your|client|sending|source) (ip|host|name)|(invalid|bad) (ip|host)|client address|your (mail )?(server|domain|network)|` +
			`helo|ehlo|ptr|reply-to|return[- ](path|address)|reverse[- ]?path|envelope[- ]?from|mail ?from|in from:|from[ :-]+(address|header|domain|field)|` +
			`(mail|message|e-?mail)s? from|header|body|link to|such (host|list|domain)|to post)\b`)
)

// aboutAnother reports whether a reply that says that something does not exist names something other than the
// recipient. Links do not count: they carry our own address as a parameter. After the content an invalid
// address may be one of the header's.
func aboutAnother(e Evidence) bool {
	words := urlPattern.ReplaceAllString(e.Text, "")
	return anotherPattern.MatchString(words) || e.Phase == PhaseDot && !addressSubject(e.Enhanced) &&
		malformedPattern.MatchString(words)
}

// scopeOf is what a reply in a phase is about when nothing says otherwise.
func scopeOf(p Phase) Scope {
	switch p {
	case PhaseRcpt:
		return ScopeRecipient
	case PhaseAuth, PhaseTLS, PhaseSTARTTLS, PhaseDNS:
		return ScopeAccount
	case PhaseConnect, PhaseGreeting, PhaseEHLO:
		return ScopeConnection
	}
	return ScopeMessage
}
