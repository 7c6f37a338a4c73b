package smtpsend

import "slices"

// permanentNames are the errors EmailEngine gives up on when there was no reply.
var permanentNames = []string{nameAuth, nameNoAuth, nameOAuth2, nameTLS, nameEnvelope, nameMessage,
	nameProtocol}

// ClassifyBasic judges by EmailEngine's plain rule: a reply decides alone, 500 and above is permanent but for
// 503. Where that agrees with Classify on whether to try again, Classify's finer verdict stands.
func ClassifyBasic(e Evidence) Judgement {
	j := Classify(e)
	j.Verdict = basicVerdict(e.Code >= 500 && e.Code != 503, j.Verdict)
	j.Suppress = j.Suppress && j.Verdict == Hard
	return j
}

// basicSilence is the plain rule for an error without a reply: its name decides.
func basicSilence(name string, full Verdict) Verdict {
	return basicVerdict(slices.Contains(permanentNames, name), full)
}

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
