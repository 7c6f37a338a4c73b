package mxsend

import (
	"crypto/x509"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// The kinds of policy for counting sessions (RFC 8460 section 4.2).
const (
	policyTLSA = "tlsa"
	policySTS  = "sts"
	policyNone = "no-policy-found"
)

// results are the result types of TLS-RPT (RFC 8460 section 4.3).
var results = []string{"success", "starttls-not-supported", "certificate-host-mismatch",
	"certificate-expired",
	"certificate-not-trusted", "validation-failure", "tlsa-invalid", "dnssec-invalid", "sts-policy-fetch-error",
	"sts-policy-invalid", "sts-webpki-invalid"}

type metrics struct{ sessions *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{telemetry.MetricsOf(reg).CountersBy("postroom_mx_sessions_total",
		"Sessions of direct delivery with recipients' servers, by policy and TLS result in the terms of RFC 8460.", "policy", "result")}
	for _, policy := range []string{policyTLSA, policySTS, policyNone} {
		for _, result := range results {
			m.sessions.WithLabelValues(policy, result)
		}
	}
	return m
}

func (m *metrics) count(policy, result string) { m.sessions.WithLabelValues(policy, result).Inc() }

// observe counts the session of one result, unless it was counted before or didn't come to TLS.
func (m *metrics) observe(policy string, r *smtpsend.Result, failure *smtpsend.Error) {
	switch {
	case failure != nil && aboutTLS(failure):
		m.count(policy, tlsResult(failure))
	case r.Reused || r.RemoteName == "":
	case r.TLSFailed != nil:
		m.count(policy, tlsResult(r.TLSFailed))
	case r.TLS == "":
		m.count(policy, "starttls-not-supported")
	default:
		m.count(policy, "success")
	}
}

// aboutTLS reports whether a connection failed at TLS.
func aboutTLS(e *smtpsend.Error) bool {
	return e.Phase == smtpsend.PhaseTLS || e.Phase == smtpsend.PhaseSTARTTLS
}

// tlsResult returns the result type of a failure of TLS.
func tlsResult(e *smtpsend.Error) string {
	var (
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
	)
	switch {
	case e.Phase == smtpsend.PhaseSTARTTLS:
		return "starttls-not-supported"
	case errors.Is(e, smtpsend.ErrTLSA):
		return "validation-failure"
	case errors.As(e, &host):
		return "certificate-host-mismatch"
	case errors.As(e, &invalid) && invalid.Reason == x509.Expired:
		return "certificate-expired"
	case errors.As(e, &unknown):
		return "certificate-not-trusted"
	}
	return "validation-failure"
}
