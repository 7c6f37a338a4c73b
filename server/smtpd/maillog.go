package smtpd

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// maillog writes the lines that an operator looks for when mail does not come in. They contain no email
// addresses; outbox logs a queued message's.
type maillog struct{ *slog.Logger }

func (l maillog) listening(on listener, i *Inlet) {
	purpose := "submission"
	if i.bounces != nil {
		purpose = "returned mail"
	}
	l.Info("smtp inlet listens", "address", on.Addr().String(), "purpose", purpose, "lmtp", on.lmtp,
		"implicit_tls", on.implicit, "starttls", i.cert != nil && !on.implicit && !on.lmtp)
}

func (l maillog) handshake(ctx context.Context, remote netip.Addr, err error) {
	l.InfoContext(ctx, "tls handshake failed", "remote_addr", remote, "error", err)
}

func (l maillog) proxyRefused(ctx context.Context, remote netip.Addr, setting string) {
	l.WarnContext(ctx, "connection closed: PROXY header from an untrusted address",
		"remote_addr", remote, "fix",
		"if this is your proxy, set http.trustedProxies to its address, and "+setting+" to true")
}

func (l maillog) loginRefused(ctx context.Context, remote netip.Addr, tls bool, err error) {
	l.WarnContext(ctx, "smtp login refused", "remote_addr", remote, "tls", tls, "error", err)
}

func (l maillog) taken(ctx context.Context, s *session, answer api.SubmitAnswer, repeated bool) {
	l.InfoContext(ctx, "message "+
		"accepted", "message_id", answer.QueueID, "account", s.login.account, "token_id",
		s.login.tokenID,
		"remote_addr", s.remote, "tls", s.tls, "recipients", len(s.t.to), "bytes", len(
			s.t.body.content), "repeated", repeated)
}

// refused logs a message that was answered 4xx or 5xx. It has no id: it was never queued.
func (l maillog) refused(ctx context.Context, s *session, r reply, err error) {
	level, extra := slog.LevelWarn, slog.String("reply", r.text)
	if err != nil && (fault.Is(err, fault.Internal) || fault.Is(err, fault.Unavailable)) {
		level, extra = slog.LevelError, slog.Any("error", err)
	}
	l.Log(ctx, level, "message refused", "account", s.login.account, "token_id", s.login.tokenID,
		"remote_addr", s.remote,
		"recipients", len(s.t.to), "smtp_code", r.code, extra)
}
