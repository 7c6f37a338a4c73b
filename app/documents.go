package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/bleve"
	"github.com/postroom/postroom/outbox/search/opensearch"
)

// buildDocuments builds the search index. Its failures don't keep Postroom from starting: mail has priority.
func (a *App) buildDocuments(ctx context.Context) error {
	c := a.cfg.Documents
	parts := search.Parts{DB: a.db, Tasks: a.tasks, Queues: a.control, Outbox: a.outbox.Reader,
		Pace: (&pace{count: a.outbox.Handled}).perSecond}
	o := search.Options{
		Kind: c.Store, MaxText: int(c.Text), Retention: orForever(c.Retention), Read: a.delivers &&
			c.Store != "none",
		NoLog: a.cfg.Messages.Retention == 0, Logger: a.log, Registry: a.metrics,
	}
	if c.Text == 0 {
		o.MaxText = -1
	}
	switch c.Store {
	case "none":
		if err := search.Leave(ctx, a.db); err != nil {
			a.log.Warn("the event stream is still kept for a search index that there is none of", "error", err)
		}
	case "embedded":
		a.openEmbedded(&parts, &o)
	case "opensearch":
		if err := a.openShared(&parts, &o); err != nil {
			return err
		}
	}
	var err error
	if a.documents, err = search.New(parts, o); err != nil {
		return err
	}
	a.life.onFollow("search index", a.documents.Run)
	return nil
}

// pace measures the growth rate of a count.
type pace struct {
	count func() int64

	mu   sync.Mutex
	at   time.Time
	last int64
	rate float64
}

// paceOver is the shortest interval to measure over.
const paceOver = 200 * time.Millisecond

// perSecond returns the growth of the count per second since the last call.
func (p *pace) perSecond() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if since := now.Sub(p.at); since >= paceOver {
		count := p.count()
		p.rate = float64(count-p.last) / since.Seconds()
		p.at, p.last = now, count
	}
	return p.rate
}

// openEmbedded prepares the index in the data directory, in a process that serves the API: only the process
// that has the index can search it. The index opens once no other process has it. The other may be an earlier
// one that is slow to stop.
func (a *App) openEmbedded(parts *search.Parts, o *search.Options) {
	if !a.serves {
		return
	}
	dir := filepath.Join(a.cfg.Data, "documents")
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	index := bleve.New(dir, bleve.Options{Logger: a.log})
	a.life.onStop("search index", index.Close)
	parts.Store, parts.Work = index, a.workDocuments
	o.Exclusive, o.TakeOver, o.Place = true, true, place(dir)
}

// openShared prepares the index in a cluster. Every process can search it; processes that deliver index. The
// cluster need not be available yet.
func (a *App) openShared(parts *search.Parts, o *search.Options) error {
	c := a.cfg.Documents
	index, err := opensearch.Open(opensearch.Options{URL: c.URL.Reveal(), Index: c.Index, Logger: a.log})
	if err != nil {
		return err
	}
	a.life.onStop("search index", index.Close)
	parts.Store, o.Place = index, place(fmt.Sprint(os.Getpid()))
	if a.delivers {
		parts.Work = a.workDocuments
	}
	return nil
}

// place returns the location of an index: the host, and the directory or process on it.
func place(of string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + of
}

// workDocuments runs the workers of the queue documents, which start and stop with the index.
func (a *App) workDocuments(ctx context.Context, handle queue.Handler) error {
	s, err := queue.NewServer(a.db.Client(), map[string]queue.Handler{search.TaskType: handle},
		queue.ServerOptions{
			Pools: []queue.Pool{{Name: queue.Documents, Queues: map[string]int{queue.Documents: 1},
				Workers: a.cfg.Workers.Documents}},
			Keep: a.queueKeep, Grace: a.cfg.Shutdown.Grace, Logger: a.log,
		})
	if err != nil {
		return fmt.Errorf("make the workers of the search index: %w", err)
	}
	return s.Run(ctx)
}

// orForever returns d, or -1 for 0. A documents.retention of 0 keeps documents forever; package search
// expects -1 for that.
func orForever(d time.Duration) time.Duration { return cmp.Or(d, -1) }

// keepText returns how much text of ended messages the outbox keeps for the index.
func keepText(c config.Documents) int {
	if c.Store == "none" {
		return 0
	}
	return int(c.Text)
}
