package feedback

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/outbox"
)

// effect is a fact's effect on its address, in addition to the timeline.
type effect string

// No effect is the empty string.
const (
	effectHard        effect = "hard"        // the address is dead
	effectSoft        effect = "soft"        // it counts against the address
	effectComplaint   effect = "complaint"   // the recipient called it spam
	effectUnsubscribe effect = "unsubscribe" // the recipient unsubscribed

	// What an email alone says. [Feedback.weigh] makes one of the others of it.
	effectSaidDead effect = "said-dead" // that the address is dead
	effectSaidSpam effect = "said-spam" // that the recipient called it spam
	effectObjects  effect = "objects"   // the recipient called it spam, if one email can prove that
)

// entry is one fact in the inbox, as JSON.
type entry struct {
	outbox.Fact

	// Refs are the references that find the message if MessageID is empty: "id:" and a proof of ours,
	// "<message-id>", or a result of provider.Reference.
	Refs []string `json:"refs,omitempty"`
	// Proven is set if the message went to Recipient, although the log has it no more.
	Proven   bool      `json:"proven,omitempty"`
	Effect   effect    `json:"effect,omitempty"`
	Received time.Time `json:"received"`        // when it was taken
	Looks    int       `json:"looks,omitempty"` // how often its message was looked up without success
}

// ofID is the prefix of a reference that is a proof of ours, or only an id.
const ofID = "id:"

// entryOf returns the entry of a fact whose message is known.
func entryOf(l outbox.Fact, now time.Time) entry {
	if l.At.IsZero() {
		l.At = now
	}
	return entry{Fact: l, Effect: effectOf(l), Received: now}
}

// effectOf returns the effect of a fact from Postroom itself. An unsubscribe on our pages has none: it is
// suppressed before the page answers, and the recipient may have resubscribed since.
func effectOf(l outbox.Fact) effect {
	switch {
	case l.Type == event.MessageBounce && l.Details.BounceType == "hard":
		return effectHard
	case l.Type == event.MessageBounce && l.Details.BounceType == "soft":
		return effectSoft
	case l.Type == event.MessageComplaint && l.Details.FeedbackType != "not-spam":
		return effectComplaint
	}
	return ""
}

// source is the source of the fact as a label: one of [Sources].
func (e *entry) source() string { return sourceOf(e.Details.Source) }

// stream is the stream of the fact.
func (e *entry) stream() string {
	switch e.Type {
	case event.TrackOpen, event.TrackClick:
		return hits
	case event.MessageDelivered, event.MessageDeferred, event.MessageReported:
		return deliveries
	}
	return urgent
}

func (e *entry) line() (string, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("write down a fact: %w", err)
	}
	return string(raw), nil
}

func parseEntry(line string) (entry, error) {
	var e entry
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return entry{}, fmt.Errorf("read a fact: %w", err)
	}
	if e.Key == "" || e.Type == "" {
		return entry{}, fmt.Errorf("read a report: it has no key or no type")
	}
	return e, nil
}

// maxKey bounds a key, as the outbox does.
const maxKey = 200

// shortKey returns the key, or a hash of a key that is too long.
func shortKey(owner, key string) string {
	if whole := owner + "/" + key; len(whole) <= maxKey {
		return whole
	}
	sum := sha256.Sum256([]byte(key))
	return owner + "/sha256:" + base64.RawURLEncoding.EncodeToString(sum[:])
}
