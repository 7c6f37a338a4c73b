package opensearch

import (
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// The fields in addition to package query's fields.
const (
	fieldSource = "source" // the document itself
	fieldAt     = "at"     // when the message was accepted, Unix milliseconds
	fieldOrder  = "order"  // the queue id, which orders documents of the same time
)

// body returns a document for the cluster.
func body(d *search.Document) map[string]any {
	fields := map[string]any{
		fieldSource: d, fieldAt: d.Created.UnixMilli(), fieldOrder: d.QueueID,
		string(query.Subject): words(d.Subject), string(query.Text): words(d.Text),
	}
	for _, field := range search.ValueFields() {
		if values := d.Values(field); len(values) > 0 {
			fields[string(field)] = values
		}
	}
	return fields
}

// words returns a text's words, separated by spaces.
func words(text string) string { return strings.Join(query.Texts(text), " ") }

// dsl translates a query for the cluster.
func dsl(n query.Node) map[string]any {
	switch n := n.(type) {
	case query.Term:
		return map[string]any{"term": map[string]any{string(n.Field): map[string]any{"value": n.Value,
			"boost": weight(n.Field)}}}
	case query.Prefix:
		return map[string]any{"prefix": map[string]any{string(n.Field): map[string]any{"value": n.Value}}}
	case query.Phrase:
		phrase := map[string]any{"query": strings.Join(n.Words, " "), "boost": weight(n.Field)}
		if n.Prefix {
			phrase["max_expansions"] = 1000 // words that begin so; 50 would miss some
			return map[string]any{"match_phrase_prefix": map[string]any{string(n.Field): phrase}}
		}
		return map[string]any{"match_phrase": map[string]any{string(n.Field): phrase}}
	case query.Created:
		bounds := map[string]any{}
		if !n.From.IsZero() {
			bounds["gte"] = n.From.UnixMilli()
		}
		if !n.Until.IsZero() {
			bounds["lt"] = n.Until.UnixMilli()
		}
		return map[string]any{"range": map[string]any{fieldAt: bounds}}
	case query.Not:
		return boolean("must_not", n.Part)
	case query.And:
		return boolean("must", n...)
	case query.Or:
		either := boolean("should", n...)
		either["bool"].(map[string]any)["minimum_should_match"] = 1
		return either
	case query.None:
		return map[string]any{"match_none": map[string]any{}}
	}
	return map[string]any{"match_all": map[string]any{}}
}

func boolean(kind string, parts ...query.Node) map[string]any {
	clauses := make([]any, len(parts))
	for i, part := range parts {
		clauses[i] = dsl(part)
	}
	return map[string]any{"bool": map[string]any{kind: clauses}}
}

// weight is the weight of a word in a field.
func weight(field query.Field) float64 {
	switch field {
	case query.Subject:
		return 3
	case query.To, query.From, query.ID:
		return 2
	}
	return 1
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
