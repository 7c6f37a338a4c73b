package outbox

import (
	"context"
	"crypto/sha256"
	"net"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/provider"
)

// messageIDOf makes the Message-ID of a message: its id tells which message it is to whoever hears of it again. In lower case, for some mail
// programs change the case.
func messageIDOf(id, domain string) string { return "<" + strings.ToLower(id) + "@" + domain + ">" }

// ownMessageID is the Message-ID of a message that brings none. One whose author is no address gets none; writing it says why.
func ownMessageID(id string, from message.Address) string {
	address, err := message.NormalizeAddress(from.Address)
	if err != nil {
		return ""
	}
	_, domain, _ := strings.Cut(address, "@")
	return messageIDOf(id, domain)
}

// MessageOf reads Postroom's id of a message off its Message-ID, if Postroom made that; whether there is such a message is another question.
func MessageOf(messageID string) (id string, ok bool) {
	local, _, found := strings.Cut(strings.Trim(messageID, "<> "), "@")
	id = strings.ToUpper(local)
	_, err := ulid.ParseStrict(id)
	return id, found && err == nil
}

// Lookup finds messages by what others call them: their Message-ID, in angle brackets, where it does not tell their id itself (MessageOf), or
// what package provider's Reference makes of a provider's id. They are in the order of the references, and "" where nothing is known. A
// reference is known from when a relay took the message, for Options.KeepReferences.
func (b *Outbox) Lookup(ctx context.Context, references []string) ([]string, error) {
	pipe := b.DB.Client().Pipeline()
	found := make([][]*redis.StringCmd, len(references))
	for i, reference := range references {
		for p := range b.DB.Partitions() {
			found[i] = append(found[i], pipe.Get(ctx, b.store.reference(p, referenceHash(reference))))
		}
	}
	if err := execRead(ctx, pipe); err != nil && len(references) > 0 {
		return nil, away(err, "look up messages by what others call them")
	}
	ids := make([]string, len(references))
	for i, all := range found {
		for _, cmd := range all {
			if id := cmd.Val(); id != "" {
				ids[i] = id
			}
		}
	}
	return ids, nil
}

func referenceHash(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return short(sum[:])
}

// references are the names under which others may speak of a message that a relay took just now: as finish.lua takes them.
func (b *Outbox) references(c *claim, d decision) string {
	if b.opts.KeepReferences == 0 || len(d.sent) == 0 {
		return ""
	}
	var names []string
	if _, ours := MessageOf(c.envelope.MessageID); !ours {
		names = append(names, referenceHash(c.envelope.MessageID))
	}
	host, _, err := net.SplitHostPort(d.host)
	if err != nil {
		host = d.host
	}
	if n, known := provider.OfRelay(host); known {
		for _, i := range d.sent {
			reference := provider.Reference(n, provider.AnsweredID(n, d.status.Recipients[i].Response))
			if hash := referenceHash(reference); reference != "" && !slices.Contains(names, hash) {
				names = append(names, hash)
			}
		}
	}
	return strings.Join(names, " ")
}
