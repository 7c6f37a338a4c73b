package provider

import (
	"strconv"
	"time"

	"github.com/postroom/postroom/api/fault"
)

const (
	codeMissing     = "SignatureMissing"
	codeMismatch    = "SignatureMismatch"
	codeStale       = "SignatureStale"
	codeReused      = "TokenReused"
	codeTopic       = "TopicUnknown"
	codeCertificate = "CertificateRefused"

	maxSecrets = 10
	ahead      = 5 * time.Minute // how far a provider's clock may be before ours
)

func missing(what string) error {
	return fault.New(fault.Unauthorized, codeMissing, "The request has no usable %s", what)
}

func mismatch() error {
	return fault.New(fault.Unauthorized, codeMismatch, "The signature or the secret of the request is wrong")
}

func tooLarge() error {
	return fault.New(fault.TooLarge, "ProviderBody",
		"The body is larger than %d bytes or has more than %d events", MaxBody, MaxEvents)
}

func wrongBody(format string, args ...any) error {
	return fault.New(fault.Invalid, "ProviderBody", format, args...)
}

// fresh refuses a signed time outside of the window.
func (v *Verifier) fresh(at, now time.Time) error {
	if at.Before(now.Add(-v.window)) || at.After(now.Add(ahead)) {
		return fault.New(fault.Unauthorized, codeStale, "The request was signed too long ago or in the "+
			"future")
	}
	return nil
}

// signedSeconds reads the decimal seconds of a signature. Other forms of a number, such as "+1" or "01", are
// harmless: the text is signed.
func signedSeconds(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}

func secretField(i int) string { return "secrets[" + strconv.Itoa(i) + "]" }
