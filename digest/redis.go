package digest

import (
	"crypto/sha256"
	"embed"
	"encoding/base32"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// shards is the number of key prefixes that recipients are spread over. All keys of a recipient have one.
const shards = 16

// readerKey names a recipient of an account.
type readerKey struct{ account, id string }

func (k readerKey) shard() int { return redisdb.PartitionFor(k.account+"\x00"+k.id, shards) }

func (k readerKey) key() string { return redisdb.Key(k.shard(), "digest-recipient", k.account, k.id) }

// events is the key of a category's waiting events. Urgent events have their own list.
func (k readerKey) events(category string) string {
	return redisdb.Key(k.shard(), "digest-events", k.account, url.QueryEscape(category), k.id)
}

func (k readerKey) known(day int64) string {
	return redisdb.Key(k.shard(), "digest-known", strconv.FormatInt(day, 10), k.account, k.id)
}

func (k readerKey) runs() string {
	return redisdb.Key(k.shard(), "digest-recipient-runs", k.account, k.id)
}

func (k readerKey) String() string { return fmt.Sprintf("recipient %q of account %q", k.id, k.account) }

// recipientsKey is the key of the index of an account's recipients in a shard.
func recipientsKey(shard int, account string) string {
	return redisdb.Key(shard, "digest-recipients", account)
}

// runsKey is the key of the index of an account's runs in a shard. The state follows.
func runsKey(shard int, account string) string { return redisdb.Key(shard, "digest-runs", account) }

// shardKeys returns the keys. One of them exists while any digest is planned or made.
func shardKeys() (keys []string) {
	for shard := range shards {
		keys = append(keys, dueKey(shard), openKey(shard))
	}
	return keys
}

func dueKey(shard int) string    { return redisdb.Key(shard, "digest-due") }
func openKey(shard int) string   { return redisdb.Key(shard, "digest-open") }
func fencesKey(shard int) string { return redisdb.Key(shard, "digest-fences") }

// runKey is the key of a run; ok is false for what can't be an id.
func runKey(id string) (key string, ok bool) {
	shard, ok := shardOfRun(id)
	return redisdb.Key(shard, "digest-run", id), ok
}

// takenKey is the key of the events that a run took from its category number i.
func takenKey(id string, i int) string {
	shard, _ := shardOfRun(id)
	return redisdb.Key(shard, "digest-taken", id, strconv.Itoa(i))
}

// runIDSize is the length of the id of a run: 24 letters and digits, and two digits for the shard.
const runIDSize = 26

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// runID names the run of a period. Only one run has it, whoever computes it.
func runID(k readerKey, schedule, period string) string {
	sum := sha256.Sum256([]byte(k.account + "\x00" + k.id + "\x00" + schedule + "\x00" + period))
	return letters.EncodeToString(sum[:15]) + fmt.Sprintf("%02d", k.shard())
}

func shardOfRun(id string) (int, bool) {
	if len(id) != runIDSize {
		return 0, false
	}
	shard, err := strconv.Atoi(id[runIDSize-2:])
	return shard, err == nil && shard >= 0 && shard < shards &&
		strings.Trim(id[:runIDSize-2], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// entry is a schedule of a recipient for which something waits: a member of due.
type entry struct {
	readerKey
	schedule string
}

// separator can't be in ids, which have no control characters.
const separator = "\x1f"

func (e entry) member() string { return e.account + separator + e.id + separator + e.schedule }

func readEntry(member string) (e entry, ok bool) {
	parts := strings.Split(member, separator)
	if len(parts) != 3 {
		return e, false
	}
	return entry{readerKey{parts[0], parts[1]}, parts[2]}, true
}

// held is a member of open that a worker has.
type held struct {
	shard  int
	member string
	fence  string
}

// run returns the id of the run that is held; empty if it has none yet.
func (h held) run() string {
	id, ok := strings.CutPrefix(h.member, "run ")
	if !ok {
		return ""
	}
	return id
}

// entry returns the due entry, and since when it is due.
func (h held) entry() (e entry, due time.Time, ok bool) {
	at, member, _ := strings.Cut(h.member, " ")
	e, ok = readEntry(member)
	return e, redisdb.ParseTime(at), ok
}

//go:embed lua/*.lua
var lua embed.FS

var prelude = redisdb.Source(lua, "lua/prelude.lua")

func script[A, R any](name string) *redisdb.Script[A, R] {
	return redisdb.NewScript[A, R]("digest/"+name, redisdb.Source(lua, "lua/"+name+".lua"), prelude)
}

var (
	addEventsScript    = script[addEventsArgs, string]("add_events")
	removeEventsScript = script[removeEventsArgs, []deleted]("remove_events")
	preferScript       = script[preferArgs, word]("prefer")
	claimScript        = script[claimArgs, []claimed]("claim")
	planScript         = script[planArgs, word]("plan")
	openScript         = script[openArgs, opened]("open")
	beginScript        = script[beginArgs, word]("begin")
	renewScript        = script[renewArgs, word]("renew")
	closeScript        = script[closeArgs, word]("close")
	endScript          = script[endArgs, word]("end")
	backScript         = script[backArgs, backed]("back")
	retryScript        = script[retryArgs, retried]("retry")
	forgetScript       = script[forgetArgs, word]("forget")
)

type word struct{ Word string }

type addEventsArgs struct {
	Now              time.Time
	Today            int64
	Keep             int
	Known, Retention int // seconds
	Recipients       []string
}

type removeEventsArgs struct{ ID, Group, Entity string }

type deleted struct{ Deleted, Older int }

type preferArgs struct {
	Version string
	Now     time.Time
	ID      string
	Fields  string
	Gone    string
	Kept    string
	Plans   []string
}

type claimArgs struct {
	Now, Lease time.Time
	Most       int
}

type claimed struct{ Member, Fence string }

type planArgs struct {
	Held, Fence, Version, Member string
	Time                         time.Time
}

type openArgs struct {
	Member, Fence, Version string
	Now, Lease             time.Time
	Run, Reason            string
	Seconds                int
	Lasts, Fields          string
	Schedule               string
	Later                  time.Time
	Categories             []string
}

type opened struct {
	Word   string
	Fence  string
	Events int
}

type beginArgs struct {
	Run, Fence string
	Now        time.Time
	Most       int
}

type renewArgs struct {
	Lease time.Time
	Held  []string
}

type closeArgs struct {
	Run, Fence             string
	Now                    time.Time
	State, Reason, QueueID string
	Groups                 string
	Seconds                int
	Again                  time.Time
	Unspent, Open          bool
}

type endArgs struct {
	Run                    string
	Now                    time.Time
	QueueID, State, Reason string
	Seconds                int
}

type backArgs struct {
	Member    string
	Due       time.Time
	Keep      int
	Retention int
	Most      int
}

type backed struct {
	Word              string
	Returned, Dropped int
}

type retryArgs struct {
	Run string
	Now time.Time
}

type retried struct{ Word, State string }

type forgetArgs struct {
	ID         string
	Categories int
	Members    []string
}
