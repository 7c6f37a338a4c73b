package documents

import (
	"context"
	"time"

	"github.com/postroom/postroom/documents/query"
)

// Writer takes documents.
type Writer interface {
	// Put writes documents, each in the place of the one with its queue id, unless that has a higher revision. Where a document's text is
	// not known, the text that was there stays. When it returns nil, the documents are durable and soon found; after an error any of
	// them may have been written, and putting them again does no harm.
	Put(ctx context.Context, docs []Document) error
}

// Index keeps documents and finds them. Packages documents/bleve and documents/opensearch implement it; internal/testdocuments says in
// tests what it must do. It is safe for concurrent use.
type Index interface {
	Writer
	// Search finds documents.
	Search(ctx context.Context, s Search) (Found, error)
	// Walk hands every document to fn, in batches and no particular order, as they were when it was called or later.
	Walk(ctx context.Context, fn func([]Document) error) error
	// Forget deletes documents of messages accepted before a moment, max at most, and answers how many.
	Forget(ctx context.Context, before time.Time, max int) (int, error)
	// Size counts.
	Size(ctx context.Context) (Size, error)
}

// Store is an Index that can be built anew beside the one in use.
type Store interface {
	Index
	// Ready makes what is missing of the index, and names it: the same name for as long as its documents are not lost.
	Ready(ctx context.Context) (name string, err error)
	// Build begins an empty index beside the one in use, and drops one begun before. From then on Put and Forget reach both. What is put
	// through the answered Writer reaches only the one being built.
	Build(ctx context.Context) (Writer, error)
	// Swap puts the index begun by Build in the place of the one in use, which it deletes.
	Swap(ctx context.Context) error
	// Drop deletes the index begun by Build. Without one it does nothing.
	Drop(ctx context.Context) error
}

// Size is how big an index is.
type Size struct {
	Documents int
	Bytes     int64 // on disk; zero: not known
}

// Limits of a search.
const (
	MaxReach    = 10_000 // the last document that a page can show; beyond it: Search.After
	MaxPageSize = 500
	MaxFacets   = 50 // values of each facet, the most frequent ones
)

// Search is a question to an Index.
type Search struct {
	Query     query.Node
	Account   string    // only documents of this account, facets too; empty: all
	Relevance bool      // best first; false: newest first
	Skip      int       // Skip + Size is MaxReach at most
	Size      int       // documents wanted; zero: none, only numbers
	After     *Position // documents after this one, with Skip zero; nil: from the beginning
	Facets    bool      // whether facets are counted
}

// Position is the place of a document in the order of an answer: best or newest first, of equal ones the highest queue id.
type Position struct {
	Score   float64 // zero where the newest are first
	Created int64   // Unix milliseconds
	ID      string
}

// Found is what a search found.
type Found struct {
	Total  int
	Hits   []Hit
	Facets map[query.Field][]Count // of status, account, tag and lane: the most frequent first, equal ones by name
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

// Count is how many documents have a value.
type Count struct {
	Value string
	Count int
}

// FacetFields are the fields that are counted.
func FacetFields() []query.Field {
	return []query.Field{query.Status, query.Account, query.Tag, query.Lane}
}

// Values are the whole values that a document is found by, in a field. For Subject and Text, which hold words, there are none.
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
		return some(string(d.Status))
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
