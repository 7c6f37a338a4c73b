package outbox

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/internal/signedtoken"
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

// partitionOf returns the partition that a message id names. ok is false if id is not a message id.
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

// proof is the text that a message carries to prove its account and its only recipient (signedtoken.Proof).
// It begins with the id of the message. Without keys it is the id.
func (s *store) proof(id, account string, to []string) string {
	if s.Tokens != nil {
		if proof, err := s.Tokens.Proof(aboutSent(id, account, to)); err == nil {
			return proof
		}
	}
	return strings.ToLower(id)
}

// aboutSent is the content of a return path or a proof.
func aboutSent(id, account string, to []string) signedtoken.Token {
	about := signedtoken.Token{MessageID: id, Account: account}
	if len(to) == 1 {
		about.Address = to[0]
	}
	return about
}

// MessageOf returns the message id in a Message-ID or a proof, if Postroom made that, and the proof. Nothing
// is verified, and the message may not exist.
func MessageOf(messageID string) (id, proof string, ok bool) {
	proof, _, _ = strings.Cut(strings.Trim(messageID, "<> "), "@")
	id, _, _ = strings.Cut(strings.ToUpper(proof), "-")
	_, err := ulid.ParseStrict(id)
	return id, proof, err == nil
}

// recipientsStay is how long recipients' hashes are kept if a message had several: complaints come months
// later.
const recipientsStay = 400 * 24 * time.Hour

// recipientHashes returns the account and the recipients' hashes of a message, separated by commas. An
// account's id has no comma.
func recipientHashes(id string, e envelope) string {
	parts := []string{e.Account}
	for _, to := range e.To {
		parts = append(parts, recipientHash(id, to))
	}
	return strings.Join(parts, ",")
}

// recipientHash is 48 bits of a hash, for comparison in any case.
func recipientHash(id, address string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + strings.ToLower(address)))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

func referenceHash(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return short(sum[:])
}

// CampaignID is the id of a campaign run's message to one person. It is a ULID that is computed, not drawn:
// it has the run's time, 24 bits of the campaign's number, 36 bits of the ordinal, and 10 bits of the run.
type CampaignID struct {
	At       time.Time // when the run began
	Campaign uint32    // below 1<<24
	Run      int       // below 1<<10
	Ordinal  uint32
}

// Message returns the id of the message. The same recipient of a run always has the same one.
func (c CampaignID) Message(partitions int) string {
	var u ulid.ULID
	_ = u.SetTime(ulid.Timestamp(c.At)) // fails beyond the year 10889
	high := uint64(c.Campaign)<<40 | uint64(c.Ordinal)<<4 | uint64(c.Run)>>6
	low := uint16(c.Run&63) << 10
	for i := range 8 {
		u[6+i] = byte(high >> (56 - 8*i))
	}
	u[14], u[15] = byte(low>>8), byte(low)
	p := 0
	if partitions > 1 {
		p = int(c.Ordinal) % partitions
	}
	return u.String()[:24] + string(crockford[p/len(crockford)]) + string(crockford[p%len(crockford)])
}

// ReadCampaignID reads a message id as a campaign's. Any other id gives one of no campaign: the caller
// compares the time with the run's.
func ReadCampaignID(id string) (c CampaignID, ok bool) {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return c, false
	}
	high := uint64(0)
	for i := range 8 {
		high = high<<8 | uint64(u[6+i])
	}
	return CampaignID{At: u.Timestamp(), Campaign: uint32(high >> 40), Ordinal: uint32(high >> 4 & (1<<36 - 1)),
		Run: int(high&15)<<6 | int(u[14]>>2)}, true
}
