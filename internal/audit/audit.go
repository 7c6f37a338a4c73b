package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Options are the settings of a log. The zero value works.
type Options struct {
	Retention time.Duration // how long entries are kept; defaults to a year
	Max       int           // entries that are kept at most; defaults to 100,000

	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
}

const (
	defaultRetention = 365 * 24 * time.Hour
	defaultMax       = 100_000
	// tendEvery is long because all entries are read.
	tendEvery = time.Hour
	foldEvery = time.Minute
	// lostAfter is longer than a change takes, except for changes of the whole outbox. They have two entries.
	lostAfter = 10 * time.Minute
)

// Log is the audit log of an instance. It is safe for concurrent use, by any number of processes.
type Log struct {
	store   store
	signer  signer
	opts    Options
	log     *slog.Logger
	metrics *metrics

	turn redisdb.Turn // held while this process appends

	mu     sync.Mutex
	head   api.AuditHead // the chain's, as this process knows it
	known  api.AuditHead // the newest entry that this process wrote or verified
	broken []api.AuditProblem

	folds folds
}

// New returns a log. It does no I/O.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Log, error) {
	if db == nil || ring == nil {
		return nil, errors.New("audit: a database and the secrets of the instance are needed")
	}
	o.Retention = cmp.Or(o.Retention, defaultRetention)
	o.Max = cmp.Or(o.Max, defaultMax)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	sign, err := newSigner(ring)
	if err != nil {
		return nil, err
	}
	l := &Log{store: store{db.Client()}, signer: sign, opts: o, log: o.Logger, turn: make(redisdb.Turn, 1)}
	l.metrics = newMetrics(o.Registry, l)
	return l, nil
}

// Run writes folded entries, verifies and trims, until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	fold, tend := time.NewTicker(foldEvery), time.NewTicker(tendEvery)
	defer fold.Stop()
	defer tend.Stop()
	l.tend(ctx)
	for {
		select {
		case <-fold.C:
			l.Flush(ctx)
			l.recover(ctx)
		case <-tend.C:
			l.tend(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), resultTimeout)
			defer cancel()
			l.Flush(last)
			return nil
		}
	}
}

// tend verifies the log, and trims it if it is intact.
func (l *Log) tend(ctx context.Context) {
	v, err := l.Verify(ctx, api.AuditHead{})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.log.WarnContext(ctx, "audit log not verified", "error", err)
	case !v.Intact:
		l.log.ErrorContext(ctx, "the audit log was tampered with", "problems", len(v.Problems), "seq",
			v.Problems[0].Seq, "first", v.Problems[0].Text)
	default:
		l.log.InfoContext(ctx, "audit log verified", "entries", v.Entries, "head_seq", v.Head.Seq, "head_hash",
			v.Head.Hash)
		if err := l.Trim(ctx); err != nil {
			l.log.WarnContext(ctx, "audit log not trimmed", "error", err)
		}
	}
}

// appendTries is how often an entry is remade for a new head, when another process was first.
const appendTries = 100

// recover writes the entries of intents whose process died before it wrote their result.
func (l *Log) recover(ctx context.Context) {
	all, err := l.store.client.HGetAll(ctx, intentsKey()).Result()
	for intent, text := range all {
		var e api.AuditEntry
		if json.Unmarshal([]byte(text), &e) != nil || l.opts.Now().Sub(e.Time) < lostAfter {
			continue
		}
		e.Since = new(e.Time)
		if _, failed := l.append(ctx, e, intent); failed != nil {
			err = failed
		}
	}
	if err != nil {
		l.log.WarnContext(ctx, "changes without a result not written to the audit log", "error", err)
	}
}

// Append writes an entry, and returns it as it was written.
func (l *Log) Append(ctx context.Context, e api.AuditEntry) (api.AuditEntry, error) {
	return l.append(ctx, e, "")
}

// append writes an entry, which replaces its intent, if it names one. Then it trims the log if that became
// too long.
func (l *Log) append(ctx context.Context, e api.AuditEntry, intent string) (api.AuditEntry, error) {
	if err := l.turn.Take(ctx); err != nil {
		return e, err
	}
	defer l.turn.Give()
	for range appendTries {
		l.mu.Lock()
		head := l.head
		l.mu.Unlock()
		now, length, err := l.tryAppend(ctx, head, &e, intent)
		done := length != 0
		if err != nil {
			l.metrics.failed.Inc()
			return e, err
		}
		if length == gone {
			return e, nil
		}
		l.mu.Lock()
		l.head = now
		if done && e.Seq > l.known.Seq {
			l.known = now
		}
		l.mu.Unlock()
		if done {
			l.metrics.entries.WithLabelValues(string(e.Result)).Inc()
			l.shorten(ctx, length)
			return e, nil
		}
	}
	l.metrics.failed.Inc()
	return e, errors.New("audit: write an entry: other processes were always first")
}

// shorten trims a log that has a hundredth more entries than it may have.
func (l *Log) shorten(ctx context.Context, length int) {
	if ok, _ := l.Intact(); !ok || length <= l.opts.Max+l.opts.Max/100 {
		return
	}
	if err := l.trim(ctx, length-l.opts.Max, 0); err != nil {
		l.log.WarnContext(ctx, "audit log not trimmed", "error", err)
	}
}

// gone is the length that tryAppend returns if the intent has its entry already.
const gone = -1

// tryAppend writes an entry after head, and returns the length of the log. The length is 0 if another entry
// is the head now, which it returns.
func (l *Log) tryAppend(ctx context.Context, head api.AuditHead, e *api.AuditEntry, intent string) (
	api.AuditHead, int, error) {
	text, err := link(head, e, l.opts.Now())
	if err != nil {
		return head, 0, fmt.Errorf("audit: encode an entry: %w", err)
	}
	e.Hash, e.Key = hashOf(string(text)), l.signer.now
	e.MAC = l.signer.sign(e.Key, e.Hash)
	got, err := l.store.append(ctx, appendArgs{Expected: head.Hash, ID: e.ID, Seq: e.Seq, Text: text,
		Hash: e.Hash, Key: e.Key, MAC: e.MAC, Ends: intent,
		Once: e.Result == api.AuditBegun})
	if err != nil && strings.Contains(err.Error(), "equal or smaller than the target stream") {
		// somebody else wrote to the stream, which Verify reports; changes must be possible nevertheless
		last, again := l.store.lastID(ctx)
		if again == nil {
			head.ID = last
			return head, 0, nil
		}
	}
	switch {
	case err != nil:
		return head, 0, redisdb.Failed(err, "audit: write an entry")
	case got.Word == "OK":
		return api.AuditHead{Seq: e.Seq, ID: e.ID, Hash: e.Hash}, got.Length, nil
	case got.Word == "GONE": // its result was written, or another process wrote it
		return head, gone, nil
	}
	return api.AuditHead{Seq: got.HeadSeq, ID: got.HeadID, Hash: got.HeadHash}, 0, nil
}

// Intact reports whether the last verification by this process found nothing wrong, and its first problem.
func (l *Log) Intact() (bool, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.broken) == 0 {
		return true, ""
	}
	return false, l.broken[0].Text
}
