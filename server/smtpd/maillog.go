package smtpd

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// maillog writes the lines an operator looks for when mail does not come in. Addresses of mail are in none of them; outbox logs those of a
// message that was queued.
type maillog struct{ *slog.Logger }

func (l maillog) listening(on listener, purpose string, tls bool) {
	l.Info("smtp inlet listens", "address", on.Addr().String(), "purpose", purpose, "lmtp", on.lmtp, "implicit_tls", on.implicit, "starttls", tls && !on.implicit && !on.lmtp)
}

func (l maillog) notAccepted(err error, pause time.Duration) {
	l.Warn("smtp connection not accepted", "error", err, "pause", pause)
}

func (l maillog) cutOff(ctx context.Context, connections int, grace time.Duration) {
	l.WarnContext(ctx, "smtp connections cut off", "connections", connections, "grace", grace)
}

func (l maillog) panicked(ctx context.Context, remote netip.Addr, value any, stack []byte) {
	l.ErrorContext(ctx, "smtp conversation failed", "remote_addr", remote, "panic", value, "stack", string(stack))
}

func (l maillog) handshake(ctx context.Context, remote netip.Addr, err error) {
	l.InfoContext(ctx, "tls handshake failed", "remote_addr", remote, "error", err)
}

func (l maillog) loggedIn(ctx context.Context, remote netip.Addr, tls bool, who *login) {
	l.DebugContext(ctx, "smtp login", "remote_addr", remote, "tls", tls, "token_id", who.tokenID, "account", who.account)
}

func (l maillog) loginRefused(ctx context.Context, remote netip.Addr, tls bool, err error) {
	l.WarnContext(ctx, "smtp login refused", "remote_addr", remote, "tls", tls, "error", err)
}

func (l maillog) taken(ctx context.Context, s *session, answer api.SubmitAnswer, repeated bool) {
	l.InfoContext(ctx, "message taken in", "message_id", answer.QueueID, "account", s.login.account, "token_id", s.login.tokenID,
		"remote_addr", s.remote, "tls", s.tls, "recipients", len(s.t.to), "bytes", len(s.t.body.content), "repeated", repeated)
}

// refused is a message that was answered 4xx or 5xx. It has no id: it was never queued.
func (l maillog) refused(ctx context.Context, s *session, r reply) {
	l.WarnContext(ctx, "message not taken in", "account", s.login.account, "token_id", s.login.tokenID, "remote_addr", s.remote,
		"recipients", len(s.t.to), "smtp_code", r.code, "reply", r.text)
}

func (l maillog) notTaken(ctx context.Context, s *session, r reply, err error) {
	if fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable) {
		l.ErrorContext(ctx, "message not taken in", "account", s.login.account, "token_id", s.login.tokenID, "remote_addr", s.remote,
			"smtp_code", r.code, "error", err)
		return
	}
	l.refused(ctx, s, r)
}
