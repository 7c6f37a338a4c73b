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

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// maxAgent bounds the user agent that is kept, in bytes.
const maxAgent = 200

// hit is an open or a click that waits to be passed on.
type hit struct {
	kind   kind
	token  signedtoken.Token
	key    string
	at     time.Time
	agent  string
	remote string
	reason string // rule that marks it as a bot's; empty if it is a person's, unless visits show a burst
	visits *visits
}

// newHit marks a hit as a bot's if its own data show that, and leaves out what may not be kept.
func (t *Tracking) newHit(k kind, s signedtoken.Token, v Visit, now time.Time) *hit {
	agent := v.Header.Get("User-Agent")
	h := &hit{kind: k, token: s, key: t.key(k, s, agent, v.Remote, now), at: now}
	h.reason = botRule(k, agent, now.Sub(s.Time()))
	if wantsPrivacy(v.Header) {
		return h
	}
	h.agent = strings.ToValidUTF8(message.Clip(agent, maxAgent), "")
	if !isProxy(agent) { // the address of a proxy is not the reader's
		h.remote = feedback.AddressKept(v.Remote.Unmap().WithZone("").String(), t.Address)
	}
	return h
}

// key is unique to a hit. It contains address and browser only as a keyed hash, cut short.
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
	return string(k) + ":" + s.MessageID + ":" + strconv.Itoa(s.Recipient) + ":" + strconv.FormatInt(now.Unix(),
		36) + ":" + hex.EncodeToString(hash)
}

// fact returns the hit as a fact for the inbox.
func (h *hit) fact() outbox.Fact {
	reason := h.reason
	if reason == "" && h.visits != nil && h.visits.bot(h.at) {
		reason = Burst
	}
	return outbox.Fact{
		Key: h.key, Type: h.kind.event(), Account: h.token.Account, MessageID: h.token.MessageID,
		Index: h.token.Recipient, At: h.at,
		Details: event.Later{
			Source: "track", URL: h.token.URL, RemoteAddress: h.remote, UserAgent: h.agent, Bot: reason != "",
			BotReason: reason,
		},
	}
}

// size is roughly the memory of a hit in bytes.
func (h *hit) size() int { return 400 + len(h.token.URL) + len(h.token.Account) + len(h.agent) }
