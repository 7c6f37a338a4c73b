package outbox

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// Messages are found by a recipient's address. A partition has a list for each of many hashes of an address,
// with a note for each message and recipient in the order of acceptance. A note is a tag of the address, a
// tag of the account, and the id of the message. It may be wrong: two addresses may have one tag, and
// messages are deleted without their notes. So a reader looks at the messages themselves. Obsolete notes are
// removed as new notes come (note_addressed in prelude.lua).
const (
	addressedBuckets = 1 << 14
	addressedTag     = 3 // letters of a tag
	addressedFor     = 400 * 24 * time.Hour
)

// Whom is an address in an account's mail; an empty account means all accounts.
type Whom struct {
	*message.Traces
	Account string
}

// isTo reports whether a message is to the address, and of the account.
func (w Whom) isTo(r row) bool {
	return slices.ContainsFunc(r.envelope.To, w.Is) && (w.Account == "" || r.envelope.Account == w.Account)
}

// noted is where the notes of an address are, and how they begin.
type noted struct {
	bucket int
	tag    string
}

// notedOf returns the place of an address. Spellings of one address have one place.
func notedOf(address string) noted {
	sum := sha256.Sum256([]byte(message.Comparable(address)))
	return noted{bucket: int(binary.BigEndian.Uint16(sum[:])) % addressedBuckets, tag: addressTag(sum[2:])}
}

func accountTag(account string) string {
	sum := sha256.Sum256([]byte(account))
	return addressTag(sum[:])
}

func addressTag(sum []byte) string {
	return base64.RawURLEncoding.EncodeToString(sum[:3])[:addressedTag]
}

// addressed returns where a message's recipients are noted, as an argument of scripts: bucket and tags in
// turns. Erased recipients have none.
func (e envelope) addressed() string {
	var b strings.Builder
	account := accountTag(e.Account)
	for _, to := range e.To {
		if to == message.Erased {
			continue
		}
		at := notedOf(to)
		b.WriteString(strconv.Itoa(at.bucket))
		b.WriteByte(' ')
		b.WriteString(at.tag)
		b.WriteString(account)
		b.WriteByte(' ')
	}
	return b.String()
}

// keepAddressed returns how many seconds a list's notes are kept after the last one: longer than any of its
// messages, so that lists disappear for addresses that get no more mail.
func (o Options) keepAddressed() int {
	return int(max(addressedFor, o.MaxAhead+o.KeepDeadLetters, o.MaxAhead+o.KeepEnded).Seconds())
}
