package audit

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	chunk   = 1000 // entries read with one round trip
	maxOpen = 100  // unfinished entries that are listed
)

// Verify checks the whole log, and that it still has what this process knows. A known entry with Seq 0 means
// none.
func (l *Log) Verify(ctx context.Context, known api.AuditHead) (api.AuditVerified, error) {
	w, head, err := l.check(ctx, known)
	if err != nil {
		return api.AuditVerified{}, err
	}
	return api.AuditVerified{Intact: len(w.problems) == 0, Entries: w.entries, First: w.first, Head: head,
		Unfinished: w.open, Problems: w.problems, Time: l.opts.Now().UTC()}, nil
}

// check verifies the whole log.
func (l *Log) check(ctx context.Context, known api.AuditHead) (*verification, api.AuditHead, error) {
	begin, err := l.store.anchor(ctx, checkpointKey())
	var head anchor
	if err == nil {
		head, err = l.store.anchor(ctx, headKey())
	}
	var v *verification
	if err == nil {
		v, err = l.verify(ctx, begin, &head, known)
	}
	if err != nil {
		return nil, api.AuditHead{}, redisdb.Failed(err, "audit: verify the log")
	}
	if known.Seq == 0 {
		l.mu.Lock()
		l.broken = v.problems
		l.mu.Unlock()
	}
	return v, head.AuditHead, nil
}

// verify checks the entries from the checkpoint to the head. Entries that are appended while it runs are left
// alone.
func (l *Log) verify(ctx context.Context, begin anchor, head *anchor,
	known api.AuditHead) (*verification, error) {
	l.mu.Lock()
	own := l.known
	l.mu.Unlock()
	v := &verification{signer: l.signer, open: []int64{}, known: known}
	if known.Seq == 0 && own.Seq <= head.Seq {
		v.known = own
	}
	v.begin(begin)
	if known.Seq == 0 && own.Seq > head.Seq {
		now, err := l.store.anchor(ctx, headKey()) // it may have moved since it was read
		if err != nil {
			return nil, err
		}
		if now.Seq < own.Seq {
			v.problem(own.Seq, own.ID, "entries are gone: the log ends with entry %d, and had entry %d", now.Seq,
				own.Seq)
		}
	}
	for from, done := "-", false; !done; {
		page, err := l.store.after(ctx, from, chunk)
		if err != nil {
			return nil, err
		}
		if trimmed, err := l.trimmed(ctx, v, head); err != nil {
			return nil, err
		} else if trimmed {
			from = "(" + v.last.ID
			continue
		}
		for _, s := range page {
			if later(s.id, head.ID) {
				now, err := l.store.anchor(ctx, headKey())
				if err != nil {
					return nil, err
				}
				if done = now.Seq > head.Seq; done { // it was appended since
					break
				}
			}
			v.step(s)
			from = "(" + s.id
		}
		done = done || len(page) < chunk
	}
	v.end(head.AuditHead)
	if len(v.problems) == 0 && known.Seq == 0 {
		l.mu.Lock()
		if v.last.Seq > l.known.Seq {
			l.known = v.last
		}
		l.mu.Unlock()
	}
	return v, nil
}

// trimmed reports whether the log was trimmed beyond what w has seen. Then w starts again at the new
// checkpoint, and head is read again if it is gone.
func (l *Log) trimmed(ctx context.Context, v *verification, head *anchor) (bool, error) {
	now, err := l.store.anchor(ctx, checkpointKey())
	if err != nil || now.Seq <= v.last.Seq {
		return false, err
	}
	*v = verification{signer: v.signer, open: []int64{}, known: v.known, problems: v.problems}
	v.begin(now)
	if now.Seq > head.Seq {
		*head, err = l.store.anchor(ctx, headKey())
	}
	return true, err
}

// later reports whether a position is after another.
func later(a, b string) bool {
	ams, an := splitID(a)
	bms, bn := splitID(b)
	return ams > bms || ams == bms && an > bn
}

// Trim deletes entries beyond Options.Retention and Options.Max, the oldest first.
func (l *Log) Trim(ctx context.Context) error {
	total, err := l.store.client.XLen(ctx, streamKey()).Result()
	if err != nil {
		return redisdb.Failed(err, "audit: count the entries")
	}
	return l.trim(ctx, int(total)-l.opts.Max, l.opts.Now().Add(-l.opts.Retention).UnixMilli())
}

// trim deletes the oldest entries: a number of them, and entries older than a time. It checks them before,
// and stops at the first that isn't as it was written.
func (l *Log) trim(ctx context.Context, over int, old int64) error {
	begin, err := l.store.anchor(ctx, checkpointKey())
	if err != nil {
		return redisdb.Failed(err, "audit: trim the log")
	}
	v := &verification{signer: l.signer}
	for v.begin(begin); over > 0 || old > 0; {
		n := chunk
		if over > 0 {
			n = min(n, over)
		}
		page, err := l.store.after(ctx, "("+cmp.Or(v.last.ID, "0-0"), n)
		if err != nil {
			return redisdb.Failed(err, "audit: trim the log")
		}
		before := v.last
		for _, s := range page {
			if ms, _ := splitID(s.id); over <= 0 && ms >= old {
				break
			}
			v.step(s)
			over--
		}
		if len(v.problems) > 0 {
			if now, err := l.store.anchor(ctx, checkpointKey()); err == nil && now != begin {
				return nil // another process trims
			}
			return fmt.Errorf("audit: trim the log: entry %d: %s", v.problems[0].Seq, v.problems[0].Text)
		}
		if v.last == before {
			return nil
		}
		if err := l.trimTo(ctx, v.last); err != nil {
			return err
		}
		begin = anchor{AuditHead: v.last}
	}
	return nil
}

func (l *Log) trimTo(ctx context.Context, last api.AuditHead) error {
	n, err := l.store.trim(ctx, l.signer.checkpoint(last))
	if err != nil {
		return redisdb.Failed(err, "audit: trim the log")
	}
	l.log.InfoContext(ctx, "audit log trimmed", "entries", n, "checkpoint_seq", last.Seq, "checkpoint_hash",
		last.Hash)
	return nil
}

// Reseal vouches for the entries of older secrets, so that these can be removed: it verifies the log, signs
// the checkpoint under the current secret, and writes an entry. It returns the number of entries that it
// vouches for, or an error if the log is not intact.
func (l *Log) Reseal(ctx context.Context) (int, error) {
	w, _, err := l.check(ctx, api.AuditHead{})
	switch {
	case err != nil:
		return 0, err
	case len(w.problems) > 0:
		return 0, fmt.Errorf("audit: the log is not intact, so its entries are not vouched for: entry %d: %s",
			w.problems[0].Seq, w.problems[0].Text)
	}
	begin, err := l.store.anchor(ctx, checkpointKey())
	if err == nil && begin.Seq > 0 && begin.key != l.signer.now {
		_, err = l.store.trim(ctx, l.signer.checkpoint(begin.AuditHead))
	}
	if err != nil {
		return 0, redisdb.Failed(err, "audit: sign the checkpoint")
	}
	if w.older == 0 {
		return 0, nil
	}
	_, err = l.Append(ctx, api.AuditEntry{Result: api.AuditDone, Action: Rotated,
		Who:     api.AuditActor{Kind: System},
		Changes: []api.AuditChange{{Field: "entries", After: strconv.Itoa(w.older)}}})
	return w.older, err
}
