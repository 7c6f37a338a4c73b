package smtpsend

// permanentNames are the errors without a reply that EmailEngine does not retry.
var permanentNames = []string{nameAuth, nameNoAuth, nameOAuth2, nameTLS, nameEnvelope, nameMessage,
	nameProtocol}

// ClassifyBasic judges by EmailEngine's rule: replies of 500 and above are permanent, except 503. Where
// Classify agrees on that, its finer verdict stands.
func ClassifyBasic(e Evidence) Judgement {
	j := Classify(e)
	j.Verdict = basicVerdict(e.Code >= 500 && e.Code != 503, j.Verdict)
	j.Suppress = j.Suppress && j.Verdict == Hard
	return j
}

// basicVerdict returns full if it agrees with permanent, else the nearest verdict that does.
func basicVerdict(permanent bool, full Verdict) Verdict {
	retried := full == Soft || full == Throttle
	switch {
	case permanent && retried:
		return Policy
	case !permanent && !retried:
		return Soft
	}
	return full
}
