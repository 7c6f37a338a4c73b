package smtpsend

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Until it has answered EHLO, a server may be any program at the address that an account named as its relay,
// such as a database in the operator's network. Such a program's text is shown to no one: it goes to the log,
// at debug. Relays of the settings file (Relay.OperatorsOwn) are exempt.

// hiddenReply is an error without a server's text.
type hiddenReply struct {
	error
	said string
}

// Unwrap returns the error.
func (r hiddenReply) Unwrap() error { return r.error }

// saidIn returns the server's text in an error, or "" if the error shows it.
func saidIn(err error) string {
	r, _ := errors.AsType[hiddenReply](err)
	return r.said
}

// errNotSMTP is the cause of a refusal that an SMTP server would not word so.
var errNotSMTP = errors.New("no answer of an SMTP server")

// hideReply removes a server's text from a failure of the greeting or of EHLO, unless it reads like an SMTP
// server's.
func (e *Error) hideReply() {
	greeting, other := errors.AsType[greetingError](e.Err)
	switch {
	case other:
		e.Err = hiddenReply{greetingError{greeting.code, "its text isn't shown"}, e.Err.Error()}
	case errors.Is(e.Err, errProtocol):
		e.Err = hiddenReply{errProtocol, e.Err.Error()}
	case e.Code != 0 && !wordedAsSMTP(e):
		e.Err, e.Line = hiddenReply{errNotSMTP, e.Line}, fmt.Sprint(e.Code)
	}
}

// wordedAsSMTP reports whether only an SMTP server refuses like this. Signs are an enhanced code, a code of
// the mail system (x5z, RFC 5321 section 4.2.1) or of its policies (x7z, in use), 421, 521 (RFC 7504), or 501
// or 504 for the name in EHLO. FTP and NNTP have the others: 400, 500, 502, 530.
func wordedAsSMTP(e *Error) bool {
	switch e.Code {
	case 421, 501, 504, 521:
		return true
	}
	digit := e.Code / 10 % 10
	return e.Enhanced != "" || e.Code >= 400 && (digit == 5 || digit == 7)
}

// certificateOf removes from an error of a TLS handshake what the certificate says, such as names of hosts.
func certificateOf(err error) error {
	var (
		verification *tls.CertificateVerificationError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	switch {
	case errors.Is(err, errPin):
		return hiddenReply{errPin, err.Error()}
	case errors.Is(err, ErrTLSA):
		return hiddenReply{ErrTLSA, err.Error()}
	case errors.As(err, &host):
		return hiddenReply{errors.New("the certificate is not valid for this host"), err.Error()}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return hiddenReply{errors.New("the certificate has expired or is not yet valid"), err.Error()}
	case errors.As(err, &verification):
		return hiddenReply{errors.New("the certificate is not signed by a known authority"), err.Error()}
	}
	return err
}
