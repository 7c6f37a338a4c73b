package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// claimed is the message that a returned mail claims to be about, and the proof.
type claimed struct {
	outbox.Addressed
	id    string
	proof Proof
	token signedtoken.Sent // zero if there is none
	// the token is not in the mail: we stored it under a Message-ID that the application made
	stored bool
}

// speaksFor reports whether only a recipient of the message, and who handled the mail to it, can have written
// the mail. A token of the whole message, and a Message-ID that the application made, are not secret enough:
// others have them too.
func (c claimed) speaksFor(to string) bool { return !c.stored && c.token.To(folded(to)) }

// judge returns the facts that an email proves, as entries for the inbox.
func (b *Bounces) judge(ctx context.Context, report bounce.Report, envelopeTo string, now time.Time) (Outcome,
	[]entry, error) {
	if !matters(report) {
		return Outcome{Result: Ignored}, nil, nil
	}
	c, err := b.claim(ctx, report, envelopeTo)
	if err != nil {
		return Outcome{}, nil, err
	}
	switch {
	case c.proof == ByToken && len(c.To) == 0:
		return Outcome{Result: Forgotten, Proof: ByToken, MessageID: c.id}, nil, nil
	case c.proof == Unproven || len(c.To) == 0:
		return Outcome{Result: Disproven}, nil, nil
	}
	out := Outcome{Result: Taken, Proof: c.proof, MessageID: c.id}
	var entries []entry
	for _, s := range c.about(report) {
		entries = append(entries, c.entryOf(report, s, now))
		out.Recipients = append(out.Recipients, s.to)
	}
	if len(entries) == 0 { // it is about a message of ours, but about none of its recipients
		return Outcome{Result: Disproven, MessageID: c.id}, nil, nil
	}
	return out, entries, nil
}

// matters reports whether an email has relevant facts. A receiver's report on authentication has none.
func matters(report bounce.Report) bool {
	switch report.Kind {
	case bounce.Bounced, bounce.Delayed, bounce.Delivered:
		return true
	case bounce.Complained:
		return report.Feedback.Type != "auth-failure"
	}
	return false
}

// claim finds the message by the token in the envelope recipient, the token in the mail, or the Message-ID,
// in this order.
func (b *Bounces) claim(ctx context.Context, report bounce.Report, envelopeTo string) (c claimed, _ error) {
	for _, address := range []string{envelopeTo, report.ReturnPath} {
		if s, err := b.feedback.Tokens.ReadReturnPath(address); err == nil && c.id == "" {
			c.id, c.token, c.proof = s.MessageID, s, ByToken
		}
	}
	if c.id == "" && report.Original.MessageID != "" {
		id, proof, err := b.byMessageID(ctx, report.Original.MessageID)
		if err != nil {
			return claimed{}, err
		}
		if c.id = id; id != "" {
			c.proof = ByMessageID
			c.token, _ = b.feedback.Tokens.ReadProof(proof) // zero if it isn't one
			_, _, ours := outbox.MessageOf(report.Original.MessageID)
			c.stored = !ours
		}
	}
	if c.id == "" {
		return c, nil
	}
	found, err := b.feedback.Outbox.Recipients(ctx, []string{c.id})
	if err != nil {
		return claimed{}, err
	}
	if len(found) != 1 {
		return claimed{}, fmt.Errorf("asked whom one message was sent to, got %d answers", len(found))
	}
	c.Addressed = found[0]
	if !c.Known {
		c.Addressed, err = b.feedback.proven(ctx, c.token, found[0], addressesIn(report))
	} else if c.proof == ByMessageID && !sameMessageID(c.MessageID, report.Original.MessageID) {
		c.proof = Unproven
	}
	return c, err
}

// byMessageID returns Postroom's id of the message with a Message-ID, and its proof, or "".
func (b *Bounces) byMessageID(ctx context.Context, messageID string) (id, proof string, _ error) {
	if id, proof, ok := outbox.MessageOf(messageID); ok {
		return id, proof, nil
	}
	found, err := b.feedback.Outbox.Lookup(ctx, []string{"<" + strings.Trim(messageID, "<> ") + ">"})
	if err != nil || len(found) == 0 || found[0] == "" {
		return "", "", err
	}
	id, proof, _ = outbox.MessageOf(found[0])
	return id, proof, nil
}

// addressesIn returns the addresses of an email that may be the recipient of the message.
func addressesIn(report bounce.Report) []string {
	all := slices.Clone(report.Original.To)
	for _, said := range report.Recipients {
		all = append(all, said.Original, said.Address)
	}
	return all
}

// proven returns the account of a message that is not in the log any more, and the addresses that it went to,
// by a token or by the stored hashes. The account is "" if it was deleted.
func (f *Feedback) proven(ctx context.Context, token signedtoken.Sent, kept outbox.Addressed,
	addresses []string) (a outbox.Addressed, err error) {
	a.Account = kept.Account
	for _, address := range addresses {
		to := folded(address)
		if (token.To(to) || kept.Went(to)) && ownRecipient(a.To, to) == "" {
			a.To = append(a.To, address)
		}
	}
	if len(a.To) > 0 && a.Account == "" {
		a.Account, err = f.Account(ctx, token.Of)
	}
	return a, err
}

func sameMessageID(a, b string) bool {
	return strings.EqualFold(strings.Trim(a, "<> "), strings.Trim(b, "<> "))
}

// statement is the statement of an email about one recipient of the message.
type statement struct {
	to        string // as the message spells it
	said      bounce.Recipient
	forwarded bool // it names another address, which the recipient's mail was forwarded to
}

// about returns the statements about recipients of the message. A token for one recipient proves nothing
// about others. A token for the whole message, and a Message-ID, are known to all recipients, so the mail has
// to name the recipient.
func (c claimed) about(report bounce.Report) []statement {
	if c.proof == ByToken && !c.token.Whole {
		for _, to := range c.To {
			if c.token.To(folded(to)) {
				return []statement{c.ofRecipient(to, report)}
			}
		}
		return nil
	}
	var out []statement
	seen := map[string]bool{}
	for _, said := range report.Recipients {
		if to := c.named(said); to != "" && !seen[to] {
			seen[to] = true
			out = append(out, statement{to: to, said: said})
		}
	}
	// Only one recipient knows the token, or the Message-ID. Complaints often hide the recipient.
	if len(out) == 0 && len(c.To) == 1 {
		out = append(out, c.ofRecipient(c.To[0], report))
	}
	return out
}

// named returns the recipient of the message that is meant, or "".
func (c claimed) named(said bounce.Recipient) string {
	for _, address := range []string{said.Original, said.Address} {
		for _, to := range c.To {
			if address != "" && sameMailbox(to, address) {
				return to
			}
		}
	}
	return ""
}

// ofRecipient returns the statement about a known recipient: the statement that names it, or else the worst.
// Mail that names no one is about that recipient.
func (c claimed) ofRecipient(to string, report bounce.Report) statement {
	var worst bounce.Recipient
	for i, said := range report.Recipients {
		if c.named(said) == to {
			return statement{to: to, said: said}
		}
		if i == 0 || severity(said) > severity(worst) {
			worst = said
		}
	}
	return statement{to: to, said: worst, forwarded: strings.Contains(worst.Address, "@")}
}

func severity(said bounce.Recipient) int {
	return map[bounce.Action]int{bounce.ActionFailed: 2, bounce.ActionDelayed: 1}[said.Action]
}

// sameMailbox reports whether an address in a bounce means a recipient. It ignores case and a detail after a
// plus. It accepts the domain before the local part, as qmail writes its virtual domains.
func sameMailbox(to, address string) bool {
	to, address = folded(to), folded(address)
	if to == address {
		return true
	}
	local, domain, _ := strings.Cut(to, "@")
	other, sameDomain := strings.CutSuffix(address, "@"+domain)
	plain, _, _ := strings.Cut(local, "+")
	return sameDomain && (other == plain || other == domain+"-"+local)
}
