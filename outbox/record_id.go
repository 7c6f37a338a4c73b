package outbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/message"
)

// crockford is the alphabet of ULIDs.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// maxPartitions is how many partitions the last two characters of an id can name.
const maxPartitions = len(crockford) * len(crockford)

// newID makes a message id: a ULID, so that ids sort by time, whose last two characters name the partition
// of the message.
func newID(now time.Time, partition int) string {
	id := ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
	return id[:24] + string(crockford[partition/len(crockford)]) + string(crockford[partition%len(crockford)])
}

// newEventID makes the id of an event: a ULID.
func newEventID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// partitionOf returns the partition that a message id names. ok is false if id is no message id.
func partitionOf(id string, partitions int) (p int, ok bool) {
	if _, err := ulid.ParseStrict(id); err != nil {
		return 0, false
	}
	high, low := strings.IndexByte(crockford, id[24]), strings.IndexByte(crockford, id[25])
	partition := high*len(crockford) + low
	return partition, high >= 0 && low >= 0 && partition < partitions
}

// partition is the partition of a message that exists.
func (s *store) partition(id string) int {
	p, _ := partitionOf(id, s.DB.Partitions())
	return p
}

// taskID is the id of the task of a message at an epoch. A new task takes the next epoch, because an archived
// or retained task blocks its id.
func taskID(id, epoch string) string { return id + "." + epoch }

// messageOf is the message id in a task id.
func messageOf(task string) string {
	id, _, _ := strings.Cut(task, ".")
	return id
}

// short writes half of a SHA-256 as text. 128 bits rule out an accidental collision, and the keys of a week
// take a third less memory.
func short(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:16]) }

// messageIDOf makes the Message-ID of a message from its id, so that reports about it can be matched. It is
// in lower case, because some mail programs change the case.
func messageIDOf(id, domain string) string { return "<" + strings.ToLower(id) + "@" + domain + ">" }

// ownMessageID is the Message-ID of a message that was submitted without one. It is "" if the author is no
// valid address; then composing the message fails.
func ownMessageID(id string, from message.Address) string {
	address, err := message.NormalizeAddress(from.Address)
	if err != nil {
		return ""
	}
	_, domain, _ := strings.Cut(address, "@")
	return messageIDOf(id, domain)
}

// MessageOf returns the message id in a Message-ID, if Postroom made that. The message may not exist.
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
