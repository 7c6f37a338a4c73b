package feedback

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// place finds the messages of facts and puts the facts onto their timelines. Facts with an id of ours go
// first. The rest, and facts whose id is unknown, are looked up by reference. A message that is not found yet
// is looked up again later; in the end its fact is unknown.
func (f *Feedback) place(ctx context.Context, items []*item) error {
	var named, rest []*item
	for _, it := range items {
		if it.MessageID == "" {
			it.MessageID = it.echoedID()
		}
		if it.MessageID != "" || it.aboutNone() {
			named = append(named, it)
		}
	}
	if err := f.trace(ctx, named); err != nil {
		return err
	}
	if err := f.learn(ctx, named); err != nil {
		return err
	}
	for _, it := range items {
		if (it.result == "" || it.result == unknown) && len(it.references()) > 0 {
			rest = append(rest, it)
		}
	}
	found, err := f.lookUp(ctx, rest)
	if err != nil {
		return err
	}
	if err := f.learn(ctx, found); err != nil {
		return err
	}
	for _, it := range items {
		switch {
		case it.result != "" && it.result != unknown, it.ours:
		case len(it.references()) > 0 && it.Looks < len(f.opts.LookupDelays):
			it.result = postponed
		default:
			it.result = unknown
		}
	}
	return nil
}

// trace looks up the facts with an effect on an address by the provider's own id of the message, which we
// stored when the provider took it. It counts more than the mail's content: another customer of the same
// provider can copy the Message-ID and the metadata of an email that he received.
func (f *Feedback) trace(ctx context.Context, named []*item) error {
	var refs []string
	for _, it := range named {
		if it.Effect != "" {
			refs = append(refs, it.providerRefs()...)
		}
	}
	proofs, err := askedOnce(ctx, f.Outbox.Lookup, refs)
	if err != nil {
		return fmt.Errorf("look up %d ids of providers: %w", len(refs), err)
	}
	for _, it := range named {
		for _, ref := range it.providerRefs() {
			if id, proof, ok := outbox.MessageOf(proofs[ref]); ok && it.Effect != "" && id != it.MessageID {
				f.log.Warn("a provider's id is of another message than the mail says", "source", it.source(),
					"message_id", id, "said", it.MessageID)
				it.MessageID, it.proof, it.ours = id, proof, true
				break
			}
		}
	}
	return nil
}

// providerRefs returns the provider's own ids of the message, as references.
func (e *entry) providerRefs() []string {
	return slices.DeleteFunc(e.references(), func(ref string) bool {
		return !strings.HasPrefix(ref, e.Details.Source+":")
	})
}

// echoedID returns our id of the message if the provider returned it, or "".
func (e *entry) echoedID() string {
	for _, ref := range e.Refs {
		if proof, ok := strings.CutPrefix(ref, ofID); ok {
			if id, _, ours := outbox.MessageOf(proof); ours {
				return id
			}
		}
	}
	return ""
}

// references returns the references that the message may be looked up by.
func (e *entry) references() []string {
	return slices.DeleteFunc(slices.Clone(e.Refs), func(ref string) bool { return strings.HasPrefix(ref, ofID) })
}

// aboutNone reports whether a fact has no message, as an unsubscribe without one.
func (e *entry) aboutNone() bool {
	return e.Account != "" && len(e.Refs) == 0 && (e.Type == event.ListUnsubscribe ||
		e.Type == event.ListSubscribe)
}

// lookUp finds messages by reference, and returns the facts whose message was found.
func (f *Feedback) lookUp(ctx context.Context, items []*item) ([]*item, error) {
	var refs []string
	for _, it := range items {
		refs = append(refs, it.references()...)
	}
	proofs, err := askedOnce(ctx, f.Outbox.Lookup, refs)
	if err != nil {
		return nil, fmt.Errorf("look up %d references of messages: %w", len(refs), err)
	}
	var found []*item
	for _, it := range items {
		for _, ref := range it.references() {
			if id, proof, ok := outbox.MessageOf(proofs[ref]); ok {
				it.MessageID, it.proof, it.ours = id, proof, true
				found = append(found, it)
				break
			}
		}
	}
	return found, nil
}

// learn puts facts with a known message id onto the timelines.
func (f *Feedback) learn(ctx context.Context, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	if err := f.settleRecipients(ctx, items); err != nil {
		return err
	}
	if err := f.weigh(ctx, items); err != nil {
		return err
	}
	facts := make([]outbox.Fact, len(items))
	for i, it := range items {
		facts[i] = it.Fact
	}
	results, err := f.Outbox.RecordFacts(ctx, facts)
	if err != nil {
		return fmt.Errorf("add %d reports to timelines: %w", len(facts), err)
	}
	if len(results) != len(facts) {
		return fmt.Errorf("add %d reports to timelines: %d results", len(facts), len(results))
	}
	for i, it := range items {
		it.result = resultOf(results[i])
	}
	return nil
}

func resultOf(r outbox.FactResult) outcome {
	switch r {
	case outbox.FactRecorded:
		return applied
	case outbox.FactKnown:
		return duplicate
	case outbox.FactLimit:
		return full
	}
	return unknown
}

// settleRecipients reads the recipients of messages where needed: if the fact has an effect, or names no
// recipient.
func (f *Feedback) settleRecipients(ctx context.Context, items []*item) error {
	var ids []string
	for _, it := range items {
		if it.MessageID != "" && (it.Effect != "" || it.Recipient == "" && it.Index < 0) {
			ids = append(ids, it.MessageID)
		}
	}
	sent, err := askedOnce(ctx, f.Outbox.Recipients, ids)
	if err != nil {
		return fmt.Errorf("read the recipients of %d messages: %w", len(ids), err)
	}
	for _, it := range items {
		to, ok := sent[it.MessageID]
		switch {
		case ok && to.Known:
			it.settle(&to)
		case ok && it.Recipient != "":
			if err := f.prove(ctx, it, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// prove settles the recipient of a fact whose message is not in the log any more, if a proof says that the
// message went there. It sets the account, so that the fact is recorded.
func (f *Feedback) prove(ctx context.Context, it *item, kept outbox.Addressed) error {
	it.sent = nil
	if it.Proven {
		it.sent = &outbox.Addressed{Account: it.Account, To: []string{it.Recipient}}
		return nil
	}
	var token signedtoken.Sent
	for _, text := range append([]string{it.proof}, it.Refs...) {
		s, err := f.Tokens.ReadProof(strings.TrimPrefix(text, ofID))
		if err == nil && s.MessageID == it.MessageID {
			token = s
			break
		}
	}
	sent, err := f.proven(ctx, token, kept, []string{it.Recipient})
	if err != nil {
		return fmt.Errorf("find the account of a message that the log has no more: %w", err)
	}
	if len(sent.To) > 0 {
		it.sent, it.Account = &sent, sent.Account
	}
	return nil
}

// askedOnce asks for the answer of each key once, and returns the answers by key. ask returns one answer for
// each key.
func askedOnce[T any](ctx context.Context, ask func(context.Context, []string) ([]T, error), keys []string) (
	map[string]T, error) {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) == 0 {
		return nil, nil
	}
	answers, err := ask(ctx, keys)
	if err != nil {
		return nil, err
	}
	if len(answers) != len(keys) {
		return nil, fmt.Errorf("%d answers", len(answers))
	}
	byKey := make(map[string]T, len(keys))
	for i, key := range keys {
		byKey[key] = answers[i]
	}
	return byKey, nil
}

// settle sets the recipient as the message spells it. A fact without a recipient is about the only recipient,
// if there is one. It sets the account too, so that the fact is recorded if the log deletes the message now.
func (it *item) settle(sent *outbox.Addressed) {
	it.sent, it.Account = sent, sent.Account
	switch to := sent.To; {
	case it.Recipient != "":
		if own := ownRecipient(to, it.Recipient); own != "" {
			it.Recipient = own
		}
	case it.Index >= 0 && it.Index < len(to):
		it.Recipient = to[it.Index]
	case len(to) == 1:
		it.Recipient = to[0]
	}
}
