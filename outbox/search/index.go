package search

import (
	"context"
	"time"

	"github.com/postroom/postroom/outbox/search/query"
)

// Writer writes documents.
type Writer interface {
	// Put writes documents. Each replaces the one with its queue id, unless that has a higher revision. If the
	// text of a document is not known, the earlier text stays. After nil the documents are durable and soon
	// found. After an error any of them may be written, and they may be put again.
	Put(ctx context.Context, docs []Document) error
}

// Index stores and finds documents. Packages outbox/search/bleve and outbox/search/opensearch implement it;
// outbox/search/searchtest is their common test. It is safe for concurrent use.
type Index interface {
	Writer
	// Search finds documents.
	Search(ctx context.Context, s Query) (Found, error)
	// Walk passes every document to fn, in batches of any order, as of the call or later.
	Walk(ctx context.Context, fn func([]Document) error) error
	// Forget deletes documents of messages accepted before a time, max at most, and returns their number.
	Forget(ctx context.Context, before time.Time, max int) (int, error)
	// Delete deletes documents by their queue ids, whatever their revision. Unknown ids are ignored.
	Delete(ctx context.Context, ids []string) error
	// Reclaim rewrites the index files that have bytes of deleted or replaced documents, as far as the index
	// lets its caller. It may take long.
	Reclaim(ctx context.Context) error
	// Size returns the size of the index.
	Size(ctx context.Context) (Size, error)
}

// Store is an Index that can be rebuilt while the old one stays in use.
type Store interface {
	Index
	// Ready creates the missing parts of the index and returns its name, which stays the same until its
	// documents are lost.
	Ready(ctx context.Context) (name string, err error)
	// Build begins an empty second index, and drops one begun before. From then on Put and Forget change both.
	// The returned Writer writes only to the new one.
	Build(ctx context.Context) (Writer, error)
	// Swap replaces the index in use by the one begun by Build, and deletes the old one.
	Swap(ctx context.Context) error
	// Drop deletes the index begun by Build. Without one it does nothing.
	Drop(ctx context.Context) error
}

// Size is the size of an index.
type Size struct {
	Documents int
	Bytes     int64 // on disk; zero if not known
}

// Limits of a search.
const (
	MaxReach    = 10_000 // the last document that a page can show; use Query.After beyond it
	MaxPageSize = 500
	MaxFacets   = 50 // values of each facet, the most frequent ones
)

// Query is a search request to an Index.
type Query struct {
	Where     query.Node // which documents; nil means all
	Account   string     // only documents of this account, facets too; empty means all
	Relevance bool       // best first, instead of newest first
	Skip      int        // Skip + Size is MaxReach at most
	Size      int        // documents to return; zero for only counts
	After     *Position  // documents after this one, with Skip zero; nil for the beginning
	Facets    bool       // whether facets are counted
}

// Position is a document's place in the order of an answer: best or newest first, then by the highest queue
// id.
type Position struct {
	Score   float64 // zero where the newest are first
	Created int64   // Unix milliseconds
	ID      string
}

// Found is the result of a search.
type Found struct {
	Total int
	Hits  []Hit
	// by status, account, tag and lane: the most frequent first, then by name
	Facets map[query.Field][]Count
}

// Hit is a document that was found.
type Hit struct {
	Document
	Score float64 // zero where the newest are first
}

// Position is where the hit stands.
func (h Hit) Position() Position {
	return Position{Score: h.Score, Created: h.Created.UnixMilli(), ID: h.QueueID}
}

// Count is the number of documents with a value.
type Count struct {
	Value string
	Count int
}

// FacetFields are the fields that are counted.
func FacetFields() []query.Field {
	return []query.Field{query.Status, query.Account, query.Tag, query.Lane}
}

// Values returns the whole values of a document in a field. Subject and Text consist of words and have none.
func (d *Document) Values(field query.Field) []string {
	switch field {
	case query.To:
		var terms []string
		for _, address := range d.To {
			terms = append(terms, query.AddressTerms(address)...)
		}
		return terms
	case query.From:
		return query.AddressTerms(d.From)
	case query.Status:
		return some(string(d.Status), string(d.Outcome))
	case query.Lane:
		return some(string(d.Lane))
	case query.Account:
		return some(d.Account)
	case query.Gateway:
		return some(d.Gateway)
	case query.Tag:
		return d.Tags
	case query.Code:
		return d.codes()
	case query.ID:
		return d.ids()
	}
	return nil
}
