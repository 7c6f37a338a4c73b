package feedback

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
)

// providerEntry returns the entry for a provider's event. It returns false for an event without use: of an
// unknown type, and about no message. keep is Options.StoreAddress.
func providerEntry(e provider.Event, keep string, now time.Time) (entry, bool) {
	t, used := types[e.Kind]
	out := entry{Refs: refsOf(e), Effect: providerEffect(e), Received: now}
	if !used && len(out.Refs) == 0 {
		return entry{}, false
	}
	if !used {
		t, e.Reason = event.MessageReported, provider.Reason(e.Word)
	}
	out.Fact = outbox.Fact{
		Key: shortKey(string(e.Provider), e.Key), Type: t, Recipient: e.Recipient, Index: -1,
		At: sensible(e.Time, now),
		Details: event.Later{
			Source: string(e.Provider), ProviderMessageID: e.ProviderMessageID, Status: e.Enhanced, Code: e.SMTPCode,
			Diagnostic: message.Clip(e.Diagnostic, 500),
			URL:        e.URL, UserAgent: message.Clip(e.UserAgent, 256), RemoteAddress: AddressKept(e.IP, keep),
			Reason: string(e.Reason),
		},
	}
	out.Details.Raw = masked(e.Raw, keep)
	switch e.Kind {
	case provider.Delivered:
		out.Details.Action = "delivered"
	case provider.Deferred:
		out.Details.Action = "delayed"
	case provider.Bounced:
		out.Details.Action = "failed"
		out.bounced(judged(e, now))
	case provider.Dropped:
		out.Details.Action, out.Details.BounceType = "failed", string(droppedAs(e.Reason))
	case provider.Complained:
		out.Details.FeedbackType = feedbackType(e.Diagnostic)
	case provider.Opened, provider.Clicked:
		if e.Bot {
			out.Details.Bot, out.Details.BotReason = true, "provider"
		}
	}
	return out, true
}

// types are the event types of kinds of facts. All others are event.MessageReported.
var types = map[provider.Kind]event.Type{
	provider.Delivered: event.MessageDelivered, provider.Deferred: event.MessageDeferred,
	provider.Bounced: event.MessageBounce, provider.Dropped: event.MessageBounce,
	provider.Complained: event.MessageComplaint, provider.Unsubscribed: event.ListUnsubscribe,
	provider.Opened: event.TrackOpen, provider.Clicked: event.TrackClick,
}

// providerEffect returns the effect on the address of events other than bounces, which bounced judges.
func providerEffect(e provider.Event) effect {
	switch e.Kind {
	case provider.Dropped: // by the provider's own suppression list
		switch e.Reason {
		case provider.ReasonBounced, provider.ReasonInvalid:
			return effectHard
		case provider.ReasonSpam:
			return effectComplaint
		case provider.ReasonUnsubscribed:
			return effectUnsubscribe
		}
	case provider.Complained:
		if feedbackType(e.Diagnostic) != "not-spam" {
			return effectComplaint
		}
	case provider.Unsubscribed:
		return effectUnsubscribe
	}
	return ""
}

// judged returns what a refusal means that a provider reports, and whether the address is dead. The reply
// that the provider quotes is judged like one to Postroom. Without one, the provider's own classification
// counts. An address is dead only if the provider does not contradict.
func judged(e provider.Event, now time.Time) (v smtpsend.Verdict, dead bool) {
	if e.Reason == provider.ReasonBlocked {
		return smtpsend.Block, false
	}
	hard := e.Bounce == provider.Hard
	said := smtpsend.Evidence{Code: e.SMTPCode, Enhanced: e.Enhanced, Text: e.Diagnostic, Recipients: 1,
		Now: now}
	if hard {
		said.Phase = smtpsend.PhaseRcpt // unless the words name another
	}
	if j, ok := bounce.Judge(said); ok {
		return j.Verdict, hard && j.Suppress
	}
	return "", hard
}

// droppedAs returns the bounce type of a message that the provider did not send.
func droppedAs(r provider.Reason) provider.Bounce {
	if r == provider.ReasonBounced || r == provider.ReasonInvalid {
		return provider.Hard
	}
	return ""
}

// feedbackType returns the type of a complaint (RFC 5965 section 7.3) that the provider names.
func feedbackType(word string) string {
	switch word = strings.ToLower(strings.TrimSpace(word)); word {
	case "abuse", "fraud", "virus", "not-spam", "auth-failure", "other", "opt-out":
		return word
	}
	return "abuse"
}

// refsOf returns the references of the message, the best first.
func refsOf(e provider.Event) []string {
	var refs []string
	if proof := e.Echoed(); proof != "" {
		refs = append(refs, ofID+proof)
	}
	if e.MessageID != "" {
		if _, proof, ours := outbox.MessageOf(e.MessageID); ours {
			refs = append(refs, ofID+proof)
		} else {
			refs = append(refs, e.MessageID)
		}
	}
	for _, id := range []string{e.ProviderMessageID, e.ProviderAlias} {
		if ref := provider.Reference(e.Provider, id); ref != "" {
			refs = append(refs, ref)
		}
	}
	return refs
}

// likeAddress matches what may be an IP address.
var likeAddress = regexp.MustCompile(`[0-9A-Fa-f:.]{7,45}`)

// masked is a provider's JSON with the part of each IP address that keep allows.
func masked(raw json.RawMessage, keep string) json.RawMessage {
	return likeAddress.ReplaceAllFunc(raw, func(text []byte) []byte {
		if _, err := netip.ParseAddr(string(text)); err != nil {
			return text
		}
		return []byte(AddressKept(string(text), keep))
	})
}

// sensible returns the provider's time of a fact, or now if it is missing or in the future.
func sensible(at, now time.Time) time.Time {
	if at.IsZero() || at.After(now.Add(5*time.Minute)) {
		return now
	}
	return at
}

// The settings of how much of an IP address is stored.
const (
	AddressMasked = "masked" // without its last octet (IPv4) or its last 80 bits (IPv6)
	AddressWhole  = "ip"     // all of it
	AddressNone   = "none"   // nothing
)

// AddressKept returns the part of an IP address that keep allows. An empty keep means AddressMasked.
func AddressKept(ip, keep string) string {
	address, err := netip.ParseAddr(ip)
	switch {
	case err != nil || keep == AddressNone:
		return ""
	case keep == AddressWhole:
		return ip
	}
	bits := 24
	if address.Is6() {
		bits = 48
	}
	masked, _ := address.Prefix(bits) // the number of bits is right for the kind
	return masked.Addr().String()
}
