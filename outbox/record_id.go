package outbox

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// crockford is the alphabet of ULIDs.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// maxPartitions is how many partitions the last two characters of an id can name.
const maxPartitions = len(crockford) * len(crockford)

// newID makes a message id: a ULID, so that ids sort by time, whose last two characters name the partition
// the message lives in.
func newID(now time.Time, partition int) string {
	id := ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
	return id[:24] + string(crockford[partition/len(crockford)]) + string(crockford[partition%len(crockford)])
}

// newEventID makes the id of an event: a ULID.
func newEventID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
}

// partitionOf reads the partition off a message id. It answers false for what can't be an id.
func partitionOf(id string, partitions int) (int, bool) {
	if _, err := ulid.ParseStrict(id); err != nil {
		return 0, false
	}
	high, low := strings.IndexByte(crockford, id[24]), strings.IndexByte(crockford, id[25])
	partition := high*len(crockford) + low
	return partition, high >= 0 && low >= 0 && partition < partitions
}

// taskID is the id of the wake-up of a message at an epoch. A fresh wake-up takes the next epoch, because an
// archived or retained task blocks its id.
func taskID(id, epoch string) string { return id + "." + epoch }

// messageOf reads the message id off a task id.
func messageOf(task string) string {
	id, _, _ := strings.Cut(task, ".")
	return id
}

// short writes half of a SHA-256 as text: nobody finds two inputs that agree in 128 bits by accident, and a
// week's keys take a third less.
func short(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum[:16]) }
