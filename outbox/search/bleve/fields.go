package bleve

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// The engine's fields, in addition to package query's fields.
const (
	fieldAt     = "at"     // when the message was accepted: one term
	fieldSource = "source" // the document itself, stored and not indexed
)

// The options of fields. Only words need positions, for phrases, and frequencies, for relevance.
const (
	asWords  = index.IndexField | index.IncludeTermVectors
	asValues = index.IndexField | index.SkipFreqNorm
	asSource = index.StoreField
)

// separator separates the values of a field. No value contains it.
const separator = "\x00"

// engineDocument returns a document with the engine's fields.
func engineDocument(d *search.Document) (*document.Document, error) {
	source, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write document %s: %w", d.QueueID, err)
	}
	out := document.NewDocument(d.QueueID)
	add := func(name string, value []byte, options index.FieldIndexingOptions, a analysis.Analyzer) {
		out.AddField(document.NewTextFieldCustom(name, nil, value, options, a))
	}
	add(string(query.Subject), []byte(d.Subject), asWords, wordAnalyzer{})
	if d.Text != "" {
		add(string(query.Text), []byte(d.Text), asWords, wordAnalyzer{})
	}
	for _, field := range search.ValueFields() {
		if joined := join(d.Values(field)); joined != "" {
			add(string(field), []byte(joined), asValues, valueAnalyzer{})
		}
	}
	add(fieldAt, []byte(atTerm(d.Created.UnixMilli())), asValues, nil)
	add(fieldSource, source, asSource, nil)
	return out, nil
}

// join joins values into one text.
func join(values []string) string {
	clean := make([]string, 0, len(values))
	for _, v := range values {
		if v = clear(v); v != "" {
			clean = append(clean, v)
		}
	}
	return strings.Join(clean, separator)
}

// clear removes separators from a value.
func clear(value string) string { return strings.ReplaceAll(value, separator, "") }

// atTerm formats Unix milliseconds so that terms sort as times do.
func atTerm(millis int64) string { return fmt.Sprintf("%011x", max(millis, 0)) }

// wordAnalyzer splits a text into words.
type wordAnalyzer struct{}

// Analyze implements analysis.Analyzer.
func (wordAnalyzer) Analyze(text []byte) analysis.TokenStream {
	words := query.Words(string(text))
	tokens, stream := make([]analysis.Token, len(words)), make(analysis.TokenStream, len(words))
	for i, w := range words {
		tokens[i] = analysis.Token{Term: []byte(w.Text), Position: i + 1, Start: w.Start, End: w.End}
		stream[i] = &tokens[i]
	}
	return stream
}

// valueAnalyzer splits joined values.
type valueAnalyzer struct{}

// Analyze implements analysis.Analyzer.
func (valueAnalyzer) Analyze(joined []byte) analysis.TokenStream {
	values := strings.Split(string(joined), separator)
	tokens, stream := make([]analysis.Token, len(values)), make(analysis.TokenStream, len(values))
	for i, v := range values {
		tokens[i] = analysis.Token{Term: []byte(v), Position: i + 1}
		stream[i] = &tokens[i]
	}
	return stream
}
