package tracking

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// maxAgent is how much is kept of what a browser calls itself, in bytes.
const maxAgent = 200

// hit is an open or a click that waits to be handed over.
type hit struct {
	kind   kind
	stamp  signedtoken.Token
	key    string
	at     time.Time
	agent  string
	remote string
	reason string // why it is a program's; empty: a person's, unless visits say otherwise
	visits *visits
}

// newHit judges a hit by itself, and leaves out what is not to be kept.
func (t *Tracking) newHit(k kind, s signedtoken.Token, v Visit, now time.Time) *hit {
	agent := v.Header.Get("User-Agent")
	h := &hit{kind: k, stamp: s, key: t.key(k, s, agent, v.Remote, now), at: now}
	h.reason = botRule(k, agent, now.Sub(s.Time()))
	if wantsPrivacy(v.Header) {
		return h
	}
	h.agent = cut(agent)
	if !isProxy(agent) { // whose address says nothing about the reader
		h.remote = kept(v.Remote, t.Address)
	}
	return h
}

// key tells a hit from others. Of its address and browser it has no more than a keyed hash, cut short.
func (t *Tracking) key(k kind, s signedtoken.Token, agent string, remote netip.Addr, now time.Time) string {
	mac := hmac.New(sha256.New, t.Secret)
	for _, part := range [...]string{s.URL, agent} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	address := remote.As16()
	mac.Write(address[:])
	var sum [sha256.Size]byte
	hash := mac.Sum(sum[:0])[:9]
	return string(k) + ":" + s.MessageID + ":" + strconv.Itoa(s.Recipient) + ":" + strconv.FormatInt(now.Unix(), 36) + ":" + hex.EncodeToString(hash)
}

// fact is a hit as the message learns it.
func (h *hit) fact() outbox.Later {
	reason := h.reason
	if reason == "" && h.visits != nil && h.visits.bot(h.at) {
		reason = Burst
	}
	return outbox.Later{
		Key: h.key, Type: h.kind.event(), Account: h.stamp.Account, MessageID: h.stamp.MessageID, Index: h.stamp.Recipient, At: h.at,
		Told: event.Later{
			Source: "track", URL: h.stamp.URL, RemoteAddress: h.remote, UserAgent: h.agent, Bot: reason != "", BotReason: reason,
		},
	}
}

// size is about how many bytes of memory a hit takes.
func (h *hit) size() int { return 400 + len(h.stamp.URL) + len(h.stamp.Account) + len(h.agent) }

// kept is what may be kept of an address.
func kept(a netip.Addr, how string) string {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid() || how == AddressNone:
		return ""
	case how == AddressWhole:
		return a.String()
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.Addr().String()
}

// cut shortens what a browser calls itself.
func cut(agent string) string {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	return strings.ToValidUTF8(agent, "")
}
