package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	stream   = "events"     // outbox owns it
	auditLog = audit.Stream // internal/audit owns it
	field    = "e"          // in both
	group    = "archive"

	batch = 4000
	// gather is how long events are collected before they are written: each batch waits for the disk once.
	gather = 500 * time.Millisecond
	// defaultSpool is some three million events.
	defaultSpool = 1 << 30
)

// Options are the settings of an archive. Dir is needed.
type Options struct {
	Dir      string // directory of the files; made if it does not exist
	URL      string // address that takes lines by POST; if empty, the files of Dir are the archive
	MaxSpool int64  // bytes stored on disk while URL takes nothing; defaults to 1 GiB

	Client   *http.Client          // for URL; defaults to one with a time-out of 30 seconds, see package dialing
	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
}

// Archive writes events. Any number of processes share the work; each writes to its own disk.
type Archive struct {
	db      *redisdb.DB
	opts    Options
	log     *slog.Logger
	metrics *metrics

	mu   sync.Mutex // held while a file is written
	more chan struct{}
}

// New returns an archive. It makes the directory, and fails if that is not possible.
func New(db *redisdb.DB, o Options) (*Archive, error) {
	if o.Dir == "" {
		return nil, errors.New("archive: no directory")
	}
	if o.URL != "" {
		if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, errors.New("archive: archive.url isn't an HTTP or HTTPS URL")
		}
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("archive: make its directory: %w", err)
	}
	o.MaxSpool = cmp.Or(o.MaxSpool, defaultSpool)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Client == nil { // the operator named the store
		o.Client = dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}).Client(dialing.HTTP{
			Timeout: 30 * time.Second, PerHost: 1, Environment: true})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Archive{db: db, opts: o, log: o.Logger, more: make(chan struct{}, 1)}
	a.metrics = newMetrics(o.Registry, a)
	return a, nil
}

// Run writes events until ctx ends.
func (a *Archive) Run(ctx context.Context) error {
	defer a.opts.Client.CloseIdleConnections()
	var wg sync.WaitGroup
	if a.opts.URL != "" {
		wg.Go(func() { a.ship(ctx) })
	}
	follow := func(f redisdb.Follow, read func(string) (line, error)) error {
		return a.db.Follow(ctx, f, func(work context.Context, entries []redisdb.Entry) error {
			if err := a.take(entries, read); err != nil {
				return err
			}
			if len(entries) < batch {
				redisdb.Pause(ctx, gather)
			}
			return nil
		})
	}
	var audited error
	wg.Go(func() {
		audited = follow(redisdb.Follow{Stream: auditLog, Group: group, Batch: batch, Partitions: 1}, auditLine)
	})
	err := follow(redisdb.Follow{Stream: stream, Group: group, Batch: batch}, eventLine)
	wg.Wait()
	return errors.Join(err, audited)
}

// take writes events or entries to disk.
func (a *Archive) take(entries []redisdb.Entry, read func(string) (line, error)) error {
	lines, n := a.lines(entries, read)
	if n == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.opts.URL == "" {
		err = a.appendToDay(lines)
	} else {
		err = a.putAside(lines)
	}
	if err != nil {
		return fmt.Errorf("archive events: %w", err)
	}
	a.metrics.written.Add(float64(n))
	return nil
}

// Leave removes the groups of the archive from the streams.
func Leave(ctx context.Context, db *redisdb.DB) error {
	return errors.Join(db.Unfollow(ctx, stream, group), db.Unfollow(ctx, auditLog, group))
}
