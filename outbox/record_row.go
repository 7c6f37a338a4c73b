package outbox

import (
	"context"
	"errors"
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

// readLog reads messages, live or ended, in order. Messages that were deleted meanwhile are left out. A
// message that was live in its index and has ended since is read from the log.
func (s *store) readLog(ctx context.Context, entries []entry) ([]row, error) {
	var live []entry
	for _, e := range entries {
		if !e.ended {
			live = append(live, e)
		}
	}
	found, err := s.readRows(ctx, live)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]row, len(entries))
	for _, r := range found {
		rows[r.id] = r
	}
	pipe := s.DB.Client().Pipeline()
	got := make(map[string]*redis.StringCmd, len(entries)-len(rows))
	for _, e := range entries {
		if _, ok := rows[e.id]; !ok {
			got[e.id] = pipe.Get(ctx, s.keys.ended(s.partition(e.id), e.id))
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	for id, cmd := range got {
		if len(cmd.Val()) == 0 {
			continue
		}
		var e ended
		if err := s.jsons.unpack(id, []byte(cmd.Val()), &e); err != nil {
			return nil, err
		}
		rows[id] = e.row(id, s.partition(id))
	}
	out := make([]row, 0, len(rows))
	for _, e := range entries {
		if r, ok := rows[e.id]; ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// recordFields are the fields of a message's hash that its row needs, in the order readRow takes them.
var recordFields = []string{"state", "lane", "created", "due", "scheduled", "attempts", "max", "gateway",
	"doubts", "fence", "epoch", "reason", "shared", "began", "size"}

// row is a message as read from Redis.
type row struct {
	id        string
	partition int
	state     string // of an ended message: its result
	ended     int64  // 0: it is live
	fence     string
	epoch     string // of its task
	lane      api.Lane
	created   int64
	due       int64
	taken     int64 // of an active message: when its attempt began
	planned   int64 // time of the first attempt
	attempts  int
	max       int
	gateway   string
	doubts    int
	reason    string // why it waits, if for a limit or its account
	size      int    // bytes that count towards quotas
	shared    string // name of the shared content it is rendered from; empty: its content is the message
	envelope  envelope
	status    status
	outcome   *api.Outcome // see Reader.addOutcomes
}

// contentGone is the code of a message whose shared content is gone.
const contentGone = "ContentGone"

// contentOf returns a message as it is sent, but its links are those of a preview: who reads it here did not
// get it.
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

// unpack returns the content of a message that was stored whole. Of an ended one the envelope has the size
// that was sent, with additions; then most bounds it.
func (r row) unpack(c *codec, packed []byte, most int) ([]byte, error) {
	if r.ended != 0 {
		return c.unpackAll(packed, contentName(r.id), max(r.envelope.Size, most))
	}
	return c.unpack(packed, contentName(r.id), r.envelope.Size)
}

// personalOf unpacks the part of a message that is beside its shared content.
func (s *store) personalOf(id string, packed []byte) (personal render.Personalization, err error) {
	if packed, err = s.codec.opened(packed, contentName(id)); err == nil {
		err = s.jsons.unpack(id, packed, &personal)
	}
	return personal, err
}

// readRows reads live messages in one round trip, in order. Messages that ended meanwhile are left out.
func (s *store) readRows(ctx context.Context, entries []entry) ([]row, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := s.DB.Client().Pipeline()
	hashes := make([]*redis.SliceCmd, len(entries))
	envelopes, statuses := make([]*redis.StringCmd, len(entries)), make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		p := s.partition(e.id)
		hashes[i] = pipe.HMGet(ctx, s.keys.message(p, e.id), recordFields...)
		envelopes[i] = pipe.Get(ctx, s.keys.envelope(p, e.id))
		statuses[i] = pipe.Get(ctx, s.keys.status(p, e.id))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(entries))
	for i, e := range entries {
		if envelopes[i].Err() != nil || hashes[i].Val()[0] == nil {
			continue
		}
		r, err := s.readRow(e.id, texts(hashes[i]), envelopes[i].Val(), statuses[i].Val())
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
