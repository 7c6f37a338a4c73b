package outbox

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// keys names the keys of the outbox.
type keys struct{}

func (keys) message(p int, id string) string { return redisdb.Key(p, "message", id) }

func (keys) envelope(p int, id string) string { return redisdb.Key(p, "envelope", id) }

func (keys) content(p int, id string) string { return redisdb.Key(p, "content", id) }

func (keys) texts(p int) string { return redisdb.Key(p, "texts") }

func (keys) shared(p int, name string) string { return redisdb.Key(p, "shared", name) }

// mailings is the hash of the contents that mailings hold.
func (keys) mailings(p int) string { return redisdb.Key(p, "mailings") }

func (keys) incoming(p int, id string) string { return redisdb.Key(p, "incoming", id) }

func (keys) facts(p int, id string) string { return redisdb.Key(p, "facts", id) }

// dialogues has the SMTP dialogues of a message's attempts.
func (keys) dialogues(p int, id string) string { return redisdb.Key(p, "dialogues", id) }

func (keys) reference(p int, hash string) string { return redisdb.Key(p, "reference", hash) }

func (keys) status(p int, id string) string { return redisdb.Key(p, "status", id) }

func (keys) ended(p int, id string) string { return redisdb.Key(p, "ended", id) }

func (keys) index(p int, lane, st string) string { return redisdb.Key(p, "index", lane, st) }

func (keys) logged(p int, lane, result string) string { return redisdb.Key(p, "log", lane, result) }

// outcome indexes the messages of an outcome.
func (keys) outcome(p int, lane, outcome string) string {
	return redisdb.Key(p, "outcome", lane, outcome)
}

// of returns the key of an account's part of an index or counter, or the key of all accounts for "".
func of(key, account string) string {
	if account == "" {
		return key
	}
	return key + ":" + account
}

func (keys) idempotency(p int, hash string) string { return redisdb.Key(p, "idempotency", hash) }

func (keys) events(p int) string { return redisdb.Key(p, "events") }

func (keys) held(p int) string { return redisdb.Key(p, "held") }

func (keys) pauses(p int) string { return redisdb.Key(p, "pauses") }

// swept returns the keys that the sweeper checks. None of them exists while there is nothing to repair.
func (k keys) swept(p int) []string {
	return []string{k.held(p), k.backlogs(p), k.leases(p), redisdb.Key(p, "due"),
		redisdb.Key(p, "unqueued")}
}

// compared returns the indexes that the sweeper compares with the queue.
func (k keys) compared(p int) (indexes []string) {
	for _, lane := range lanesOf(queue.Submit) {
		for _, state := range comparedStates {
			indexes = append(indexes, k.index(p, string(lane), state))
		}
	}
	return indexes
}

// addressed has the notes of messages to the addresses of a bucket.
func (keys) addressed(p, bucket int) string { return redisdb.Key(p, "addressed", strconv.Itoa(bucket)) }

// leases has the messages that are being sent, by the end of the lease.
func (keys) leases(p int) string { return redisdb.Key(p, "leases") }

func (keys) backlogs(p int) string { return redisdb.Key(p, "backlogs") }

// all returns a pattern for the keys of one kind in all partitions.
func (keys) all(kind string) string { return "postroom:{*}:" + kind + ":*" }

// rates has the counters of a day: by hour, and of tags, lists and domains by day; hours has those by hour.
func (keys) rates(p int, at time.Time, hours bool) string {
	if hours {
		return redisdb.Key(p, "rates", "hours", at.Format(dayForm))
	}
	return redisdb.Key(p, "rates", at.Format(dayForm))
}

// accountEvents has the number of events of an account, by type.
func (keys) accountEvents(p int, account string) string {
	return redisdb.Key(p, "rates", "events", account)
}

// quota has what of the quotas is used; quotaDay has the messages of a day.
func (keys) quota(p int) string { return redisdb.Key(p, "quota") }

func (keys) quotaDay(p int, at time.Time) string {
	return redisdb.Key(p, "quota", at.UTC().Format(dayForm))
}

// dayForm is a day in the name of a key.
const dayForm = "20060102"

func (keys) stats(p int, hour int64) string {
	return redisdb.Key(p, "stats", strconv.FormatInt(hour, 10))
}

// keyHash is the name of an idempotency key in Redis. Keys may be long, and each account has its own.
func keyHash(account, key string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + key))
	return short(sum[:])
}

// ofRequest returns the idempotency key of an account's request.
func (k keys) ofRequest(account, key string, partitions int) string {
	hash := keyHash(account, key)
	return k.idempotency(redisdb.PartitionFor(hash, partitions), hash)
}

// acceptedIn returns the message id in a memo, the first answer to a key. It is empty if no recipient could
// be sent to.
func acceptedIn(memo string) string {
	if strings.Contains(memo, "\n") {
		return ""
	}
	id, _, _ := strings.Cut(memo, " ")
	return id
}
