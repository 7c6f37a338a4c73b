package feedback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/message/signedtoken"
)

// Stamps reads the return paths of messages. signedtoken.Ring implements it.
type Stamps interface {
	// ReadReturnPath fails with ErrForged or ErrUnknownKey of package signedtoken.
	ReadReturnPath(address string) (signedtoken.Token, error)
}

// BounceOptions say where mail comes back to. The zero value takes it from whoever hands it over, and expects none by SMTP.
type BounceOptions struct {
	Domain   string // of return paths with a token; empty: mail to them is not expected
	Address  string // where mail comes back to whose return path a relay rewrote; empty: nowhere
	Registry prometheus.Registerer
}

// Bounces takes in mail that came back: bounces, delays, complaints, and what only looks like them. It is safe for concurrent use.
type Bounces struct {
	feedback *Feedback
	stamps   Stamps
	opts     BounceOptions
	metrics  *bounceMetrics
}

// NewBounces makes Bounces, which puts what it learns into the inbox of f.
func NewBounces(f *Feedback, stamps Stamps, o BounceOptions) (*Bounces, error) {
	if f == nil || stamps == nil {
		return nil, errors.New("new returns: feedback and stamps are needed")
	}
	return &Bounces{feedback: f, stamps: stamps, opts: o, metrics: newBounceMetrics(o.Registry)}, nil
}

// Proof is what proves that a mail that came back is about a message of ours.
type Proof string

// The proofs.
const (
	Unproven    Proof = ""
	ByToken     Proof = "token"      // it came to a return path that only that message had, or has it in it
	ByMessageID Proof = "message_id" // it has the Message-ID of a message that was sent to the very recipient it names
)

// Result is what was done with a mail that came back.
type Result string

// The results.
const (
	Taken     Result = "taken"     // what it tells is in the inbox
	Disproven Result = "unproven"  // nothing: it may be forged
	Forgotten Result = "forgotten" // nothing: its token holds, but the log has forgotten the message
	Ignored   Result = "ignored"   // nothing: it tells nothing that matters, such as a holiday greeting
)

// Outcome is what came of a mail that came back.
type Outcome struct {
	Result     Result
	Proof      Proof
	MessageID  string   // Postroom's id of the message; empty: not known
	Recipients []string // of that message, about whom something was learnt
}

// Expected says whether mail to an address is taken: nil for a return path with a token of ours, and for BounceOptions.Address. What looks like
// a return path and is none is a fault of kind NotFound; any other address one of kind Forbidden.
func (r *Bounces) Expected(address string) error {
	local, domain, _ := strings.Cut(address, "@")
	switch {
	case r.opts.Address != "" && strings.EqualFold(address, r.opts.Address):
		return nil
	case r.opts.Domain == "" || !strings.EqualFold(domain, r.opts.Domain):
		return fault.New(fault.Forbidden, "", "no mail comes back to this address")
	}
	if _, err := r.stamps.ReadReturnPath(address); err == nil {
		return nil
	}
	r.metrics.refused.Inc()
	if strings.HasPrefix(strings.ToLower(local), "bounces+") {
		return fault.New(fault.NotFound, "", "not a return path of any message")
	}
	return fault.New(fault.Forbidden, "", "no mail comes back to this address")
}

// Receive reads a mail that came back to an address, and puts what it proves into the inbox: it is durable there when the error is nil.
// The address may be empty, where only the mail itself tells. What is not proven changes nothing, and is no error: the error is the reader's,
// or that nothing can be taken now, and then the same mail should come again. Nobody is answered, whatever the mail is: an answer to a bounce
// is how mail goes in circles.
func (r *Bounces) Receive(ctx context.Context, mail io.Reader, envelopeTo string) (bounce.Report, Outcome, error) {
	now := r.feedback.opts.Now()
	report, err := bounce.Read(mail, bounce.Options{EnvelopeTo: envelopeTo, Now: now})
	if err != nil {
		return bounce.Report{}, Outcome{}, err
	}
	out, entries, err := r.judge(ctx, report, envelopeTo, now)
	if err == nil && len(entries) > 0 {
		err = r.feedback.put(ctx, entries)
	}
	if err != nil {
		return report, Outcome{}, fmt.Errorf("take in a mail that came back: %w", err)
	}
	r.metrics.read(report.Kind, out.Result)
	r.log(ctx, report, out)
	return report, out, nil
}

// log tells what came of a mail. Addresses are in the lines of what is done with it.
func (r *Bounces) log(ctx context.Context, report bounce.Report, out Outcome) {
	r.feedback.log.InfoContext(ctx, "mail came back", "message_id", out.MessageID, "kind", report.Kind, "form", report.Form, "result", out.Result, "proof", out.Proof,
		"reporting_mta", report.ReportingMTA, "recipients", len(report.Recipients), "original_message_id", report.Original.MessageID)
}
