package smtpsend

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Evidence is a refusal to be judged.
type Evidence struct {
	Phase      Phase     // empty if unknown, as in most bounces
	Code       int       // reply code
	Enhanced   string    // enhanced code; empty without. It is ignored when its class is not Code's
	Text       string    // the reply's words, lines joined by a space, without codes
	Recipients int       // how many recipients the reply is about; 0 counts as one
	Now        time.Time // to turn "try again after <date>" into a wait; if zero, such dates are ignored
}

// Judgement is the meaning of a refusal.
type Judgement struct {
	Verdict        Verdict
	Scope          Scope
	Suppress       bool          // the address is invalid or gone
	Reconnect      bool          // only the connection was full
	NewTransaction bool          // only the transaction was full
	RetryAfter     time.Duration // as the reply asks; 0 if it does not
	Rule           string        // effect of the rule in rules.tsv that decided; empty if the codes did
}

// accountRefused is the judgement of credentials, settings or plans that the relay refuses.
var accountRefused = Judgement{Verdict: Auth, Scope: ScopeAccount}

// Classify judges a refusal by its phase, codes and words. The class of the reply code decides whether it is
// permanent, unless the words prove otherwise: a quota in a 5xx passes, an expired plan in a 4xx does not.
func Classify(e Evidence) Judgement {
	if e.Enhanced != "" && (e.Code < 100 || int(e.Enhanced[0]-'0') != e.Code/100) {
		e.Enhanced = ""
	}
	j, decided := byPhase(e)
	if !decided {
		if r, ok := matchRule(e.Code, e.Text); ok {
			j = byEffect(e, r.effect)
			j.Rule = string(r.effect)
		} else {
			j = byCode(e)
		}
	}
	if e.Code == 521 && j.Verdict == Hard {
		// 521: the host takes no mail at all (RFC 7504). AOL, AT&T and Postfix refuse a client with it, AOL even
		// with 5.2.1. It is not about the mailbox.
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

// byPhase judges what phase and codes alone decide.
func byPhase(e Evidence) (Judgement, bool) {
	permanent := e.Code >= 500
	switch {
	case e.Code == 503 && !slices.Contains(authSubject, e.Enhanced) &&
		!strings.Contains(strings.ToLower(e.Text), "authenticat"):
		// The two sides disagree about the state. Only the connection is at fault.
		return Judgement{Verdict: Soft, Scope: ScopeConnection}, true
	case e.Phase == PhaseAuth && (permanent || e.Code == 432 && e.Enhanced == "4.7.12"),
		e.Code == 530, e.Code == 535, e.Code == 538,
		e.Code == 534 && e.Phase != PhaseData && e.Phase != PhaseDot:
		return accountRefused, true
	case e.Phase == PhaseAuth && e.Code == 432:
		return Judgement{Verdict: Throttle, Scope: ScopeAccount}, true
	case e.Code == 556 || strings.HasSuffix(e.Enhanced, ".1.10") && permanent:
		return unknownRecipient(e), true
	case slices.Contains(quotaSubject, e.Enhanced):
		return Judgement{Verdict: Throttle, Scope: ScopeAccount}, true
	case slices.Contains(recipientQuotaSubject, e.Enhanced):
		return Judgement{Verdict: Throttle, Scope: ScopeRecipient}, true
	case slices.Contains(authSubject, e.Enhanced):
		return accountRefused, true
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

// effects are the judgements of effects that need nothing but the match. byEffect refines the others.
var effects = map[effect]Judgement{
	effectThrottleRecipient:   {Verdict: Throttle, Scope: ScopeRecipient},
	effectThrottleAccount:     {Verdict: Throttle, Scope: ScopeAccount},
	effectThrottleDestination: {Verdict: Throttle, Scope: ScopeDestination},
	effectThrottleDomain:      {Verdict: Throttle, Scope: ScopeDomain},
	effectThrottleConnection:  {Verdict: Throttle, Scope: ScopeConnection},
	effectReconnect:           {Verdict: Soft, Scope: ScopeConnection, Reconnect: true},
	effectNext:                {Verdict: Soft, Scope: ScopeMessage},
	effectAuth:                accountRefused,
	effectSize:                {Verdict: Policy, Scope: ScopeMessage},
	effectFull:                {Verdict: Hard, Scope: ScopeRecipient},
	effectPolicy:              {Verdict: Policy, Scope: ScopeMessage},
	effectBlock:               {Verdict: Block, Scope: ScopeDestination},
	effectGreylist:            {Verdict: Soft, Scope: ScopeRecipient},
	effectGone:                {},
	effectUnknown:             {},
	effectRejectedAddress:     {Verdict: Policy, Scope: ScopeMessage},
	effectTransient:           {Verdict: Soft},
}

// byEffect returns what a rule's match means in this phase.
func byEffect(e Evidence, f effect) Judgement {
	j := effects[f]
	switch f {
	case effectThrottleAccount:
		if e.Phase == PhaseAuth {
			j.RetryAfter = 15 * time.Minute // further logins make such a lock last longer
		}
	case effectNext:
		j.NewTransaction = e.Phase == PhaseRcpt
	case effectFull:
		if e.Phase == PhaseMail && e.Code >= 500 {
			return accountRefused // the sender's own mailbox
		}
		if e.Enhanced == "4.3.1" {
			return Judgement{Verdict: Soft, Scope: scopeOf(e.Phase)} // the relay's disk is full, not a mailbox
		}
	case effectGone, effectUnknown:
		j = unknownRecipient(e)
		j.Suppress = j.Suppress && f == effectUnknown
	case effectRejectedAddress:
		if e.Phase == PhaseRcpt && !strings.HasPrefix(e.Enhanced, "5.7.") || addressSubject(e.Enhanced) {
			return unknownRecipient(e)
		}
	case effectTransient:
		j.Scope = scopeOf(e.Phase)
	}
	if (f == effectSize || f == effectFull) && e.Code < 500 {
		j.Verdict = Soft
	}
	return j
}

// aboutServer reports whether a temporary refusal is about the relay itself: it is shutting down, out of
// space, or broken (RFC 3463 section 3.4).
func aboutServer(e Evidence) bool {
	return e.Phase == PhaseMail && (e.Code == 421 || strings.HasPrefix(e.Enhanced, "4.3."))
}

// byCode judges a reply whose words match no rule.
func byCode(e Evidence) Judgement {
	scope := scopeOf(e.Phase)
	switch {
	case e.Code < 500:
		// 452 in answer to RCPT means that the transaction is full (RFC 5321 section 4.5.3.1.10).
		full := e.Phase == PhaseRcpt && (e.Enhanced == "4.5.3" || e.Code == 452 && e.Enhanced == "")
		return Judgement{Verdict: Soft, Scope: scope, NewTransaction: full}
	case e.Phase == PhaseRcpt && e.Enhanced == "5.5.3":
		return Judgement{Verdict: Soft, Scope: ScopeMessage, NewTransaction: true}
	case e.Phase == PhaseGreeting:
		// It is about this host or this hour, not about a recipient.
		return Judgement{Verdict: Soft, Scope: ScopeDestination}
	case e.Phase == PhaseEHLO, e.Phase == PhaseSTARTTLS, e.Phase == PhaseTLS:
		return accountRefused
	case e.Phase == PhaseMail:
		return Judgement{Verdict: Policy, Scope: ScopeMessage}
	case addressSubject(e.Enhanced), e.Phase == PhaseRcpt && (e.Code == 551 && e.Enhanced == "" ||
		e.Enhanced == "5.2.1" || e.Enhanced == "5.7.13" ||
		// Exchange Online: its directory does not have the address.
		e.Enhanced == "5.4.1" && strings.Contains(strings.ToLower(e.Text), "access denied")):
		return unknownRecipient(e)
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

// unknownRecipient is an address that does not exist. If the reply may be about another address (the
// sender's, our host's, or one of several recipients), nothing is suppressed.
func unknownRecipient(e Evidence) Judgement {
	another := e.Phase == PhaseMail || aboutAnother(e)
	switch {
	case !another && (e.Phase == PhaseGreeting || e.Phase == PhaseEHLO):
		return Judgement{Verdict: Soft, Scope: ScopeDestination}
	case another, e.Recipients > 1:
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

// aboutAnother reports whether a reply that something does not exist names something other than the
// recipient. Links do not count: they have our own address as a parameter. After the content an invalid
// address may be one of the header's.
func aboutAnother(e Evidence) bool {
	words := urlPattern.ReplaceAllString(e.Text, "")
	return anotherPattern.MatchString(words) || e.Phase == PhaseDot && !addressSubject(e.Enhanced) &&
		malformedPattern.MatchString(words)
}

// scopeOf is the default scope of a reply in a phase.
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
