package outbox

import (
	"crypto/sha256"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/message"
)

// messageIDOf makes the Message-ID of a message: its id tells which message it is to whoever hears of it
// again. In lower case, for some mail programs change the case.
func messageIDOf(id, domain string) string { return "<" + strings.ToLower(id) + "@" + domain + ">" }

// ownMessageID is the Message-ID of a message that brings none. One whose author is no address gets none;
// writing it says why.
func ownMessageID(id string, from message.Address) string {
	address, err := message.NormalizeAddress(from.Address)
	if err != nil {
		return ""
	}
	_, domain, _ := strings.Cut(address, "@")
	return messageIDOf(id, domain)
}

// MessageOf reads Postroom's id of a message off its Message-ID, if Postroom made that; whether there is such
// a message is another question.
func MessageOf(messageID string) (id string, ok bool) {
	local, _, found := strings.Cut(strings.Trim(messageID, "<> "), "@")
	id = strings.ToUpper(local)
	_, err := ulid.ParseStrict(id)
	return id, found && err == nil
}

func referenceHash(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return short(sum[:])
}
