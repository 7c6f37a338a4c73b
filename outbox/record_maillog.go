package outbox

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// maillog writes the lines that an operator searches for when an email is missing. Each has the message's id.
// Addresses are masked unless the log is at debug.
type maillog struct{ log *slog.Logger }

func (l maillog) queued(ctx context.Context, id string, e envelope, due time.Time) {
	l.log.InfoContext(ctx, "message queued", "message_id", id, "account", e.Account, "rfc822_message_id",
		e.MessageID, "recipients", l.addresses(ctx, e.To), "bytes", e.Size, "due", due)
}

func (l maillog) sent(ctx context.Context, id string, attempt int, to []string, response string,
	took time.Duration) {
	l.log.InfoContext(ctx, "message sent", "message_id", id, "attempt", attempt, "recipients",
		l.addresses(ctx, to), "response", response, "took", took)
}

func (l maillog) deferred(ctx context.Context, id string, attempt int, to []string, cause *lastError,
	next time.Time, doubt bool) {
	l.log.WarnContext(ctx, "message deferred", "message_id", id, "attempt", attempt, "recipients",
		l.addresses(ctx, to), "error_type", cause.Code, "smtp_code", cause.SMTP, "error",
		l.text(ctx, cause.Message), "next_attempt", next, "in_doubt", doubt)
}

func (l maillog) waits(ctx context.Context, id, reason string, until time.Time) {
	l.log.InfoContext(ctx, "message waits", "message_id", id, "reason", l.text(ctx, reason), "until", until)
}

func (l maillog) failed(ctx context.Context, id string, attempt int, to []string, cause *lastError,
	doubt bool) {
	l.log.ErrorContext(ctx, "message failed", "message_id", id, "attempt", attempt, "recipients",
		l.addresses(ctx, to), "error_type", cause.Code, "smtp_code", cause.SMTP, "error", l.text(ctx,
			cause.Message), "in_doubt", doubt)
}

func (l maillog) cancelled(ctx context.Context, id, reason string) {
	l.log.InfoContext(ctx, "message cancelled", "message_id", id, "reason", reason)
}

// fact logs hits at debug: there may be thousands in a second.
func (l maillog) fact(ctx context.Context, f Fact) {
	level := slog.LevelInfo
	if f.Type == event.TrackOpen || f.Type == event.TrackClick {
		level = slog.LevelDebug
	}
	l.log.Log(ctx, level, "message event", "message_id", f.MessageID, "event", f.Type, "source",
		f.Details.Source,
		"recipient", l.addresses(ctx, []string{f.Recipient}), "bounce_type", f.Details.BounceType, "smtp_code",
		f.Details.Code, "bot", f.Details.Bot)
}

func (l maillog) suppressed(ctx context.Context, id string, to []string, reason string) {
	l.log.InfoContext(ctx, "message suppressed", "message_id", id, "recipients", l.addresses(ctx, to), "reason",
		reason)
}

func (l maillog) forgotten(ctx context.Context, id, reason string) {
	l.log.InfoContext(ctx, "dead letter forgotten", "message_id", id, "reason", reason)
}

func (l maillog) reopened(ctx context.Context, id string, due time.Time, replay bool) {
	l.log.InfoContext(ctx, "message rescheduled", "message_id", id, "due", due, "replay", replay)
}

func (l maillog) recovered(ctx context.Context, id, why string) {
	l.log.WarnContext(ctx, "message recovered", "message_id", id, "why", why)
}

// addresses returns the first addresses, masked unless the log is at debug.
func (l maillog) addresses(ctx context.Context, addresses []string) string {
	plain := l.log.Enabled(ctx, slog.LevelDebug)
	shown := make([]string, 0, min(len(addresses), 5))
	for i, a := range addresses {
		if i == 4 && len(addresses) > 5 {
			shown = append(shown, "…")
			break
		}
		if !plain {
			a = mask(a)
		}
		shown = append(shown, a)
	}
	return strings.Join(shown, ",")
}

// text masks the addresses that a relay quotes in its reply, unless the log is at debug.
func (l maillog) text(ctx context.Context, text string) string {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		return text
	}
	return maskAll(text)
}

// mask hides the local part of an address except its first letter.
func mask(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return "***"
	}
	return string([]rune(address)[:1]) + "***" + address[at:]
}

// quoted is an address in a relay's reply: the text between characters that no address has.
var quoted = regexp.MustCompile(`[^ <>,;:"'()\[\]]*@[^ <>,;:"'()\[\]]*`)

// maskAll hides every address inside a text.
func maskAll(text string) string { return quoted.ReplaceAllStringFunc(text, mask) }

// ended is a message in the log: all of it but its content, which Options.KeepContent keeps beside it.
type ended struct {
	Envelope  envelope `json:"envelope"`
	Status    status   `json:"status"`
	Result    string   `json:"result"`
	At        int64    `json:"at"` // when it ended, in Unix milliseconds like the times below
	Created   int64    `json:"created"`
	Scheduled int64    `json:"scheduled"`
	Lane      api.Lane `json:"lane"`
	Gateway   string   `json:"gateway,omitempty"`
	Attempts  int      `json:"attempts"`
	Max       int      `json:"max"`
	Doubts    int      `json:"doubts,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Shared    string   `json:"shared,omitempty"` // name of the shared content, if the content is kept
}

// The results of a message.
const (
	resultSent       = "sent"
	resultFailed     = "failed"
	resultCancelled  = "cancelled"
	resultSuppressed = "suppressed"
)

// unlogged is the log entry of a message that has none.
const unlogged = "0"

// ending returns the log entry of a message that ends, packed; "" if there is no log (Options.KeepEnded),
// unlogged if its campaign keeps it out.
func (s *store) ending(r row, st status, result, reason string, at time.Time) (string, error) {
	if r.envelope.Campaign.unlogged() {
		return unlogged, nil
	}
	if s.opts.KeepEnded < 0 {
		return "", nil
	}
	e := ended{
		Envelope: r.envelope, Status: st, Result: result, At: redisdb.Millis(at), Created: r.created,
		Scheduled: r.planned, Lane: r.lane, Gateway: r.gateway, Attempts: r.attempts, Max: r.max, Doubts: r.doubts,
		Reason: reason,
	}
	if s.opts.keeps(r, result) {
		e.Shared = r.shared
	}
	return s.jsons.pack(r.id, &e)
}

// keeps reports whether an ending message's content is kept. The message must have been sent and have an
// entry in the log, through which it is found and retention deletes it. A content that names an erased person
// is not kept.
func (o Options) keeps(r row, result string) bool {
	return o.KeepContent > 0 && result == resultSent && !r.envelope.Campaign.unlogged() &&
		!slices.Contains(r.envelope.To, message.Erased)
}

func (e ended) row(id string, partition int) row {
	return row{
		id: id, partition: partition, state: e.Result, ended: e.At, lane: e.Lane, created: e.Created,
		planned: e.Scheduled, attempts: e.Attempts, max: e.Max, gateway: e.Gateway, doubts: e.Doubts,
		reason: e.Reason, shared: e.Shared, envelope: e.Envelope, status: e.Status,
	}
}
