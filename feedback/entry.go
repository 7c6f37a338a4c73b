package feedback

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/outbox"
)

// effect is what a fact means for its address, beyond the timeline.
type effect string

// The effects. No effect is the empty string.
const (
	effectHard        effect = "hard"        // the address is dead
	effectSoft        effect = "soft"        // it counts against the address
	effectComplaint   effect = "complaint"   // the recipient called it spam
	effectUnsubscribe effect = "unsubscribe" // the recipient wants no more of it
)

// entry is one fact in the inbox, as JSON.
type entry struct {
	outbox.Later

	// Refs say how the message may be found where MessageID is empty: "id:" and an id of ours, "<message-id>", or what provider.Reference makes.
	Refs     []string  `json:"refs,omitempty"`
	Effect   effect    `json:"effect,omitempty"`
	Received time.Time `json:"received"`        // when it was taken in
	Looks    int       `json:"looks,omitempty"` // how often its message was looked for in vain
}

// ofID marks a reference that is an id of ours.
const ofID = "id:"

// entryOf makes an entry of a fact whose message is known.
func entryOf(l outbox.Later, now time.Time) entry {
	if l.At.IsZero() {
		l.At = now
	}
	return entry{Later: l, Effect: effectOf(l), Received: now}
}

// effectOf says what a fact means that a part of Postroom tells. Who unsubscribes on our pages is suppressed before the page answers, and may
// have come back since, so that is not done once more.
func effectOf(l outbox.Later) effect {
	switch {
	case l.Type == event.MessageBounce && l.Told.BounceType == "hard":
		return effectHard
	case l.Type == event.MessageBounce && l.Told.BounceType == "soft":
		return effectSoft
	case l.Type == event.MessageComplaint && l.Told.FeedbackType != "not-spam":
		return effectComplaint
	}
	return ""
}

// source is who told, as a label: one of [Sources].
func (e *entry) source() string { return sourceOf(e.Told.Source) }

// stream is the stream that the fact belongs into.
func (e *entry) stream() string {
	switch e.Type {
	case event.TrackOpen, event.TrackClick:
		return hits
	case event.MessageDelivered, event.MessageDeferred:
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
		return entry{}, fmt.Errorf("read a fact: it has no key or no type")
	}
	return e, nil
}

// maxKey is how long a key may be for the outbox.
const maxKey = 200

// shortKey is the key itself, or a hash in place of one that is too long.
func shortKey(owner, key string) string {
	if whole := owner + "/" + key; len(whole) <= maxKey {
		return whole
	}
	sum := sha256.Sum256([]byte(key))
	return owner + "/sha256:" + base64.RawURLEncoding.EncodeToString(sum[:])
}
