package feedback

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/suppression"
)

// suppress suppresses addresses where the facts require it. It repeats this for known facts, because the
// process that learnt them may have died before it came here.
func (f *Feedback) suppress(ctx context.Context, items []*item) error {
	now := f.opts.Now()
	var add []suppression.Entry
	for _, it := range items {
		entry, ok := f.judge(it, now)
		if !ok {
			continue
		}
		if it.Effect != effectSoft {
			add = append(add, entry)
			f.metrics.suppressed.WithLabelValues(it.source(), string(entry.Reason)).Inc()
			continue
		}
		suppressed, err := f.Suppression.Soft(ctx, entry, now)
		if err != nil {
			return fmt.Errorf("count a soft bounce: %w", err)
		}
		if suppressed {
			f.metrics.suppressed.WithLabelValues(it.source(), string(entry.Reason)).Inc()
		}
	}
	if len(add) == 0 {
		return nil
	}
	if _, err := f.Suppression.Add(ctx, add...); err != nil {
		return fmt.Errorf("suppress %d addresses: %w", len(add), err)
	}
	return nil
}

// weigh decides the effects of facts that only an email reports. The first email about an address is soft: it
// counts as a soft bounce, or stops the account's bulk mail. One about another message confirms it.
func (f *Feedback) weigh(ctx context.Context, items []*item) error {
	now := f.opts.Now()
	for _, it := range items {
		said := suppression.Entry{Address: it.Recipient, Reason: suppression.HardBounce, MessageID: it.MessageID}
		sure, alone := effectHard, effectSoft
		switch it.Effect {
		case effectSaidDead:
		case effectSaidSpam:
			said.Reason, sure, alone = suppression.SpamReport, effectComplaint, effectObjects
		default:
			continue
		}
		if it.sent == nil || it.sent.Account == "" || ownRecipient(it.sent.To, it.Recipient) == "" {
			it.Effect = "" // the account was deleted, and no other is concerned
			continue
		}
		said.Account = it.sent.Account
		confirmed, err := f.Suppression.Confirmed(ctx, said, now)
		if err != nil && !fault.Is(err, fault.Invalid) { // no mail is sent to an invalid address
			return fmt.Errorf("count a mail that came back: %w", err)
		}
		if it.Effect = alone; !confirmed {
			continue
		}
		it.Effect, it.Details.Reason = sure, ""
		if sure == effectHard {
			it.Details.BounceType = "hard"
		}
	}
	return nil
}

// judge returns the suppression of a fact, and reports whether there is one. The log, or a proof, must say
// that the message went to the address.
func (f *Feedback) judge(it *item, now time.Time) (suppression.Entry, bool) {
	if it.Effect == "" || it.Recipient == "" || it.result == postponed || it.sent == nil {
		return suppression.Entry{}, false
	}
	if ownRecipient(it.sent.To, it.Recipient) == "" {
		f.log.Debug("report ignored: its address wasn't a recipient of the "+
			"message", "source", it.source(), "message_id",
			it.MessageID)
		return suppression.Entry{}, false
	}
	account, list := it.sent.Account, cmp.Or(it.Details.ListID, it.sent.ListID)
	e := suppression.Entry{
		Address: it.Recipient, Reason: suppression.HardBounce, Account: account, Created: it.At,
		Source: it.source(), MessageID: it.MessageID,
		Response: message.Clip(cmp.Or(it.Details.Diagnostic, it.Details.Reason), 500),
	}
	switch it.Effect {
	case effectUnsubscribe:
		if account == "" {
			return e, false // the account was deleted, and its lists with it
		}
		e.Reason, e.List = suppression.Unsubscribe, list
	case effectObjects:
		e.Reason = suppression.Unsubscribe // from all lists of the account
		e.Response = "a complaint by mail, which nothing confirms yet"
	case effectComplaint:
		e.Reason = suppression.SpamReport
		fallthrough
	default:
		if account == "" && f.perAccount() {
			return e, false
		}
		e = f.Suppression.WithDefaults(e)
	}
	// not an address that email can be sent to: nothing to suppress
	if _, wrong := e.Normal("", now); len(wrong) > 0 {
		f.log.Debug("report ignored: its address can't be suppressed", "source", it.source(), "message_id",
			it.MessageID, "field", wrong[0].Key)
		return e, false
	}
	return e, true
}

// perAccount reports whether deliveries suppress only within their account.
func (f *Feedback) perAccount() bool {
	e := suppression.Entry{Reason: suppression.HardBounce, Account: "any"}
	return f.Suppression.WithDefaults(e).Account != ""
}

// ownRecipient returns the recipient of a message that an address means, however a provider spells it, or "".
func ownRecipient(to []string, address string) string {
	wanted := folded(address)
	for _, one := range to {
		if folded(one) == wanted {
			return one
		}
	}
	return ""
}

// folded returns an address for comparison. Providers write local parts in lower case, and domains in either
// form.
func folded(address string) string {
	if normal, err := message.NormalizeAddress(address); err == nil {
		address = normal
	}
	return strings.ToLower(address)
}
