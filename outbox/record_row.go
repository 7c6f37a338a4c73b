package outbox

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/redis/go-redis/v9"
)

// execRead runs a pipeline of reads. A missing key is not an error.
func execRead(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, err := pipe.Exec(ctx)
	if err == nil || len(cmds) == 0 {
		return err
	}
	for _, c := range cmds {
		if err := c.Err(); err != nil && err != redis.Nil { //nolint:errorlint // go-redis documents the comparison
			return err
		}
	}
	return nil
}

// byPartition returns the ids of messages by partition.
func (s *store) byPartition(ids []string) map[int][]string {
	parts := map[int][]string{}
	for _, id := range ids {
		p := s.partition(id)
		parts[p] = append(parts[p], id)
	}
	return parts
}

// getAll adds a read of each message's key to a pipeline, with one command for each partition. After the
// pipeline was executed, the function returns the values by id. Values of missing keys are empty.
func (s *store) getAll(ctx context.Context, pipe redis.Pipeliner, ids []string,
	key func(p int, id string) string) func() map[string]string {
	parts, got := s.byPartition(ids), map[int]*redis.SliceCmd{}
	for p, some := range parts {
		keys := make([]string, len(some))
		for i, id := range some {
			keys[i] = key(p, id)
		}
		got[p] = pipe.MGet(ctx, keys...)
	}
	return func() map[string]string { return valuesOf(parts, got) }
}

// valuesOf returns the values that were read of each partition's ids, by id.
func valuesOf(parts map[int][]string, got map[int]*redis.SliceCmd) map[string]string {
	values := map[string]string{}
	for p, some := range parts {
		for i, value := range texts(got[p]) {
			values[some[i]] = value
		}
	}
	return values
}

// readLog reads messages, live or ended, in order. It leaves out messages that have been deleted.
func (s *store) readLog(ctx context.Context, entries []entry) ([]row, error) {
	rows := make(map[string]row, len(entries))
	live, err := s.readEnded(ctx, entries, rows)
	if err != nil {
		return nil, err
	}
	found, err := s.readRows(ctx, live)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		rows[r.id] = r
	}
	if len(found) < len(live) { // some may have ended since
		live = slices.DeleteFunc(live, func(e entry) bool { _, ok := rows[e.id]; return ok })
		if _, err := s.readEnded(ctx, live, rows); err != nil {
			return nil, err
		}
	}
	out := make([]row, 0, len(rows))
	for _, e := range entries {
		if r, ok := rows[e.id]; ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// readEnded adds the messages that are in the log to rows, and returns the others.
func (s *store) readEnded(ctx context.Context, entries []entry, rows map[string]row) (others []entry,
	_ error) {
	pipe := s.DB.Client().Pipeline()
	got := s.getAll(ctx, pipe, idsOf(entries), s.keys.ended)
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	records := got()
	for _, e := range entries {
		record := records[e.id]
		if record == "" {
			others = append(others, e)
			continue
		}
		var ended ended
		if err := s.jsons.unpack(e.id, []byte(record), &ended); err != nil {
			return nil, err
		}
		rows[e.id] = ended.row(e.id, s.partition(e.id))
	}
	return others, nil
}

// recordFields are the fields of a message's hash that its row needs, in the order readRow takes them.
var recordFields = []string{"state", "lane", "created", "due", "scheduled", "attempts", "max", "gateway",
	"doubts", "fence", "epoch", "reason", "shared", "began", "size"}

// row is a message as read from Redis.
type row struct {
	id        string
	partition int
	state     string // if the message has ended: its result
	ended     int64  // 0 if it is live
	fence     string
	epoch     string // its task's
	lane      api.Lane
	created   int64
	due       int64
	taken     int64 // when an active message's attempt began
	planned   int64 // time of the first attempt
	attempts  int
	max       int
	gateway   string
	doubts    int
	reason    string // why it waits, if for a limit or its account
	size      int    // bytes that count towards quotas
	shared    string // name of the shared content it is rendered from; empty if its content is the message
	envelope  envelope
	status    status
	outcome   *api.Outcome // see Reader.addOutcomes
}

// contentGone is the code of a message whose shared content is gone.
const contentGone = "ContentGone"

// contentOf returns a message as it is sent, but with preview links: the person who reads it here didn't
// receive it.
func (s *store) contentOf(ctx context.Context, r row) ([]byte, error) {
	packed, err := s.DB.Client().Get(ctx, s.keys.content(r.partition, r.id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, unknownMessage(r.id)
	}
	if err != nil {
		return nil, redisError(err, "read content of message "+r.id)
	}
	r.envelope.preview = true
	var raw []byte
	var personal render.Personalization
	if r.shared != "" {
		personal, err = s.personalOf(r.id, packed)
	} else if raw, err = r.unpack(s.codec, packed, s.opts.MaxSize); !r.changes() {
		return raw, err
	}
	if err != nil {
		return nil, err
	}
	owner, err := s.ownerOf(ctx, r.envelope)
	if err != nil {
		return nil, err
	}
	if r.shared == "" {
		return s.changed(ctx, r, owner, raw)
	}
	m, _, err := s.renderSigned(ctx, r.partition, r.shared, r.id, r.envelope, r.correct(personal), owner)
	if errors.Is(err, errNoSharedContent) {
		return nil, fault.Wrap(err, fault.Conflict, contentGone,
			"The shared content of message %s was deleted from Redis", r.id)
	}
	if err != nil {
		return nil, err
	}
	return m.Raw, nil
}

// unpack returns the content of a message that was stored whole. An ended message's envelope has the size
// that was sent, with additions; then most bounds it.
func (r row) unpack(c *codec, packed []byte, most int) ([]byte, error) {
	if r.ended != 0 {
		return c.unpackAll(packed, contentName(r.id), max(r.envelope.Size, most))
	}
	return c.unpack(packed, contentName(r.id), r.envelope.Size)
}

// personalOf unpacks the part of a message that is not in its shared content.
func (s *store) personalOf(id string, packed []byte) (personal render.Personalization, err error) {
	if packed, err = s.codec.opened(packed, contentName(id)); err == nil {
		err = s.jsons.unpack(id, packed, &personal)
	}
	return personal, err
}

// readRows reads live messages in one round trip, in order. It leaves out messages that have ended.
func (s *store) readRows(ctx context.Context, entries []entry) ([]row, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := s.DB.Client().Pipeline()
	hashes, ids := make([]*redis.SliceCmd, len(entries)), idsOf(entries)
	for i, id := range ids {
		hashes[i] = pipe.HMGet(ctx, s.keys.message(s.partition(id), id), recordFields...)
	}
	gotEnvelopes := s.getAll(ctx, pipe, ids, s.keys.envelope)
	gotStatuses := s.getAll(ctx, pipe, ids, s.keys.status)
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	rows, envelopes, statuses := make([]row, 0, len(ids)), gotEnvelopes(), gotStatuses()
	for i, id := range ids {
		if envelopes[id] == "" || hashes[i].Val()[0] == nil {
			continue
		}
		r, err := s.readRow(id, texts(hashes[i]), envelopes[id], statuses[id])
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *store) readRow(id string, f []string, env, st string) (row, error) {
	n := make([]int64, len(f))
	for i := range f {
		n[i], _ = strconv.ParseInt(f[i], 10, 64)
	}
	r := row{
		id: id, partition: s.partition(id), state: f[0], lane: api.Lane(f[1]), created: n[2], due: n[3],
		planned: n[4], attempts: int(n[5]), max: int(n[6]), gateway: f[7], doubts: int(n[8]), fence: f[9],
		epoch: f[10], reason: f[11], shared: f[12], taken: n[13], size: int(n[14]),
	}
	if err := s.jsons.unpack(id, []byte(env), &r.envelope); err != nil {
		return r, err
	}
	var err error
	r.status, err = s.jsons.unpackStatus(id, st, r.envelope)
	return r, err
}

// mayBeThere reports whether an attempt was cut off between the final dot and the reply: the message may have
// been delivered.
func (r row) mayBeThere() bool { return r.doubts > 0 || r.status.doubtful() > 0 }

// about is the part of an event that names the message, for some of its recipients.
func (r row) about(which []int) event.Message {
	return r.envelope.about(r.id, r.lane, r.gateway, r.envelope.addresses(which))
}

// entry is a message in an index.
type entry struct {
	id      string
	created int64
	ended   bool // the index is one of the log
}

// entriesOf returns entries that have only an id.
func entriesOf(ids []string) []entry {
	entries := make([]entry, len(ids))
	for i, id := range ids {
		entries[i].id = id
	}
	return entries
}

func idsOf(entries []entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.id
	}
	return ids
}
