// Package query parses queries of the search box, for package search: words, "phrases", -negation, OR,
// prefix*, and fields such as to:example.com or before:7d. It also splits text into words, for indexing and
// for searching, so that every index uses the same words.
//
// [Parse] returns a tree of a few plain steps ([Term], [Phrase], [Prefix], [Created], [And], [Or], [Not],
// [All]), which an index translates. The meaning of words and fields is decided here.
//
// For any input it promises a fast answer, or an [Error] with the position: a query has at most [MaxLength]
// characters, [MaxTerms] terms and [MaxDepth] levels of parentheses, and a prefix at least [MinPrefix]
// letters.
//
// It does no I/O and keeps nothing.
package query
