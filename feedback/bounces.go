package feedback

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/telemetry"
)

// BounceOptions are the addresses that bounces come to. The zero value accepts none over SMTP.
type BounceOptions struct {
	Domain   string                // domain of return paths with a token; if empty, mail to them is not expected
	Address  string                // for bounces of mail whose return path a relay rewrote; empty if none
	Registry prometheus.Registerer // nil if nothing is counted
}

// Bounces reads mail that came back: bounces, delays, complaints, and mail that looks like them. It is safe
// for concurrent use.
type Bounces struct {
	feedback *Feedback
	opts     BounceOptions
	mails    *prometheus.CounterVec // by kind, result
	refused  prometheus.Counter
}

// NewBounces returns a Bounces that puts facts into the inbox of f.
func NewBounces(f *Feedback, o BounceOptions) *Bounces {
	auto := telemetry.MetricsOf(o.Registry)
	b := &Bounces{
		feedback: f, opts: o,
		mails: auto.CountersBy("postroom_feedback_returned_total",
			"Returned emails by type and result: taken, unproven (may be forged), forgotten (its message is no longer in the log), ignored (nothing to report).", "kind", "result"),
		refused: auto.Counter("postroom_feedback_return_paths_refused_total",
			"Recipients that the bounce listener refused: return paths that are forged or too old, and unknown addresses."),
	}
	for _, kind := range []bounce.Kind{
		bounce.Bounced, bounce.Delayed, bounce.Delivered, bounce.Complained, bounce.AutoReply, bounce.Challenge,
		bounce.None,
	} {
		for _, result := range []Result{Taken, Disproven, Forgotten, Ignored} {
			b.mails.WithLabelValues(string(kind), string(result))
		}
	}
	return b
}

// Proof is the proof that an email that came back is about a message of ours.
type Proof string

const (
	Unproven    Proof = ""
	ByToken     Proof = "token"      // its return path, or one in the mail, belongs to that message alone
	ByMessageID Proof = "message_id" // it has the Message-ID of a message to the recipient that it names
)

// Result is what Receive did with an email.
type Result string

const (
	Taken     Result = "taken"    // its facts are in the inbox
	Disproven Result = "unproven" // nothing: it may be forged
	// nothing: its token is valid, but the message is no longer in the log, and no address in the mail is its
	// recipient's
	Forgotten Result = "forgotten"
	Ignored   Result = "ignored" // nothing: it has no relevant facts, such as an out-of-office reply
)

// Outcome is the result of Receive.
type Outcome struct {
	Result     Result
	Proof      Proof
	MessageID  string   // Postroom's id of the message; empty if unknown
	Recipients []string // recipients of that message, one fact each
}

// Expected returns nil for a return path with a token of ours, and for BounceOptions.Address. It returns
// NotFound for an address that only looks like a return path, and Forbidden for any other address.
func (b *Bounces) Expected(address string) error {
	local, domain, _ := strings.Cut(address, "@")
	switch {
	case b.opts.Address != "" && strings.EqualFold(address, b.opts.Address):
		return nil
	case b.opts.Domain == "" || !strings.EqualFold(domain, b.opts.Domain):
		return fault.New(fault.Forbidden, "", "this address doesn't accept bounces")
	}
	if _, err := b.feedback.Tokens.ReadReturnPath(address); err == nil {
		return nil
	}
	b.refused.Inc()
	if strings.HasPrefix(strings.ToLower(local), signedtoken.Prefix) {
		return fault.New(fault.NotFound, "", "not a return path of any message")
	}
	return fault.New(fault.Forbidden, "", "this address doesn't accept bounces")
}

// Receive reads mail that came back to envelopeTo, and puts the facts it proves into the inbox. They are
// durable when the error is nil. If envelopeTo is empty, only the mail itself is searched for a return path.
// A fact without proof changes nothing and isn't an error. An error comes from the reader, or means that the
// inbox is unavailable: the same mail should come again. Postroom never replies to such mail, because replies
// to bounces are mail loops.
func (b *Bounces) Receive(ctx context.Context, mail io.Reader, envelopeTo string) (bounce.Report, Outcome,
	error) {
	now := b.feedback.opts.Now()
	report, err := bounce.Read(mail, bounce.Options{EnvelopeTo: envelopeTo, Now: now})
	if err != nil {
		return bounce.Report{}, Outcome{}, err
	}
	out, entries, err := b.judge(ctx, report, envelopeTo, now)
	if err == nil && len(entries) > 0 {
		err = b.feedback.put(ctx, entries)
	}
	if err != nil {
		return report, Outcome{}, fmt.Errorf("take in a mail that came back: %w", err)
	}
	b.mails.WithLabelValues(string(report.Kind), string(out.Result)).Inc()
	b.feedback.log.InfoContext(ctx, "mail came back", "message_id", out.MessageID, "kind", report.Kind, "form",
		report.Form,
		"result", out.Result, "proof", out.Proof, "reporting_mta", report.ReportingMTA, "recipients",
		len(report.Recipients),
		"original_message_id", report.Original.MessageID)
	return report, out, nil
}
