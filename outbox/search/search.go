package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/search/query"
)

// defaultPageSize is the same as in other lists.
const defaultPageSize = 20

// Search finds messages. It returns Invalid with the position for an invalid query, and Unavailable if
// another process has the index, or if the index fails.
func (d *Documents) Search(ctx context.Context, q api.DocumentQuery) (page api.DocumentPage, err error) {
	began := time.Now()
	defer func() {
		outcome := searchAnswered
		switch {
		case fault.Is(err, fault.Invalid):
			outcome = searchRefused
		case err != nil:
			outcome = searchFailed
		}
		d.metrics.searches.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
	}()
	s, err := d.question(q)
	if err != nil {
		return page, err
	}
	if err := d.Reachable(ctx); err != nil {
		return page, err
	}
	d.catchUp(ctx)
	found, err := d.ask(ctx, s)
	if err != nil {
		return page, err
	}
	return answer(q, s, found), nil
}

// question returns the search of a query. It asks for one document more than the page, to know whether there
// is a next page.
func (d *Documents) question(q api.DocumentQuery) (Query, error) {
	s := Query{Account: q.Account, Size: q.PageSize, Relevance: q.Sort == api.SortRelevance, Facets: true}
	s.Size = cmp.Or(s.Size, defaultPageSize)
	wrong := func(key, format string, args ...any) error {
		return fault.InvalidField(key, format, args...)
	}
	switch {
	case s.Size < 1 || s.Size > MaxPageSize:
		return s, wrong("pageSize", "must be between 1 and %d", MaxPageSize)
	case q.Sort != "" && q.Sort != api.SortNewest && q.Sort != api.SortRelevance:
		return s, wrong("sort", "must be %s or %s", api.SortNewest, api.SortRelevance)
	case q.Page < 0 || q.Page > MaxReach || (q.Page+1)*s.Size > MaxReach:
		return s, wrong("page", "pages end at %d messages; continue with the last page's cursor", MaxReach)
	case q.Cursor != "":
		at, err := readCursor(q.Cursor)
		if err != nil {
			return s, wrong("cursor", "isn't a cursor from a response")
		}
		s.After = &at
	default:
		s.Skip = q.Page * s.Size
	}
	s.Size++
	var err error
	if s.Where, err = query.Parse(q.Q, d.opts.Now()); err != nil {
		return s, wrong("q", "%s", err)
	}
	return s, nil
}

// Reachable returns nil if this process can search and change the index. Unavailable: another one has it.
// NotFound: there is no index.
func (d *Documents) Reachable(ctx context.Context) error {
	switch {
	case d.opts.Kind == kindNone:
		return errOff()
	case d.Store != nil && (!d.opts.Exclusive || d.keeping.Load()):
		return nil
	}
	indexer, err := d.keys.indexer(ctx)
	if err != nil {
		return err
	}
	indexer = cmp.Or(indexer, "another process, or none")
	f := fault.New(fault.Unavailable, "SearchElsewhere",
		"The embedded search index belongs to another process (%s). Set documents.store to opensearch to "+
			"search in every process", indexer)
	f.RetryAfter = claimEvery
	return f
}

// catchUpFor is how long the first search after a while waits for what the reader has gathered.
const catchUpFor = 2 * time.Second

// catchUp hurries the reader. If no one searched in the last minute, it waits briefly until the index has
// what happened until now.
func (d *Documents) catchUp(ctx context.Context) {
	if before, err := d.keys.ask(ctx); err != nil || before {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpFor)
	defer cancel()
	for !d.caughtUp(ctx) && redisdb.Pause(ctx, 50*time.Millisecond) {
	}
}

// caughtUp reports whether the index has all that happened, or will not have it soon.
func (d *Documents) caughtUp(ctx context.Context) bool {
	for p := range d.DB.Partitions() {
		if unread, err := d.keys.unread(ctx, p); err != nil || unread {
			return err != nil
		}
	}
	waiting, err := d.waiting(ctx)
	return err != nil || waiting.paused || waiting.tasks == 0
}

// ask searches the index, with a timeout and limited concurrency.
func (d *Documents) ask(ctx context.Context, s Query) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.SearchTimeout)
	defer cancel()
	select {
	case d.searches <- struct{}{}:
		defer func() { <-d.searches }()
	case <-ctx.Done():
		return Found{}, slow(ctx.Err())
	}
	found, err := d.Store.Search(ctx, s)
	switch {
	case err == nil || fault.KindOf(err) != fault.Internal:
		return found, err
	case errors.Is(err, context.DeadlineExceeded):
		return found, slow(err)
	case ctx.Err() != nil:
		return found, err
	}
	f := fault.Wrap(err, fault.Unavailable, "SearchFailed",
		"The search index doesn't respond. Try again shortly")
	f.RetryAfter = time.Second
	return found, f
}

func slow(err error) error {
	return fault.Wrap(err, fault.Unavailable, "SearchTooSlow",
		"The search took too long. Search a shorter time (after:7d) or use longer prefixes")
}

// answer returns the API page of a search.
func answer(q api.DocumentQuery, s Query, found Found) api.DocumentPage {
	hits, size := found.Hits, s.Size-1
	page := api.DocumentPage{Total: found.Total, Page: q.Page, Pages: (found.Total + size - 1) / size,
		Documents: []api.FoundMessage{}}
	if len(hits) > size {
		hits = hits[:size]
		page.Cursor = cursor(hits[size-1].Position())
	}
	inSubject, inText := query.Marks(s.Where, query.Subject), query.Marks(s.Where, query.Text)
	for _, h := range hits {
		page.Documents = append(page.Documents, api.FoundMessage{
			QueueID: h.QueueID, Account: h.Account, MessageID: h.MessageID, Subject: h.Subject, From: h.From, To: h.To,
			Status: h.Status, Outcome: h.Outcome,
			Lane: h.Lane, Tags: h.Tags, Gateway: h.Gateway, Code: h.Code, SMTPCode: h.SMTPCode, Created: h.Created,
			Ended:      h.Ended,
			Highlights: api.Highlights{Subject: mark(h.Subject, inSubject), Text: passage(h.Text, inText)},
		})
	}
	page.Facets = api.DocumentFacets{
		Status: counts(found, query.Status), Account: counts(found, query.Account), Tag: counts(found, query.Tag),
		Lane: counts(found, query.Lane),
	}
	return page
}

func counts(found Found, field query.Field) []api.FacetCount {
	out := make([]api.FacetCount, len(found.Facets[field]))
	for i, c := range found.Facets[field] {
		out[i] = api.FacetCount(c)
	}
	return out
}

// cursor encodes a position for a URL.
func cursor(at Position) string {
	raw, _ := json.Marshal([]any{at.Score, at.Created, at.ID}) // finite numbers and a string: cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func readCursor(text string) (Position, error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return Position{}, err
	}
	var at Position
	parts := []any{&at.Score, &at.Created, &at.ID}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return Position{}, err
	}
	if len(parts) != 3 || at.ID == "" {
		return Position{}, errors.New("not a position")
	}
	return at, nil
}

// State returns the state of the index. It works in any process.
func (d *Documents) State(ctx context.Context) (api.DocumentsState, error) {
	s := api.DocumentsState{Store: d.opts.Kind}
	if d.opts.Kind == kindNone {
		return s, nil
	}
	k, err := d.keys.read(ctx)
	if err != nil {
		return s, err
	}
	waiting, err := d.waiting(ctx)
	if err != nil {
		return s, err
	}
	s.Documents, s.Bytes, s.Indexer, s.Rebuild = k.size.Documents, k.size.Bytes, k.indexer, k.build
	s.Waiting, s.Paused, s.Lag = waiting.tasks, waiting.paused, waiting.age.Seconds()
	if !k.behind.IsZero() {
		s.Behind = &k.behind
	}
	if !k.size.At.IsZero() {
		s.Seen = &k.size.At
	}
	return s, nil
}

// Leave removes the index's group from the event stream, which otherwise keeps every event for it. It is for
// an instance without index.
func Leave(ctx context.Context, db *redisdb.DB) error { return db.Unfollow(ctx, stream, group) }
