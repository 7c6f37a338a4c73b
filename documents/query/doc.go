// Package query parses queries of the search box, for package documents: words, "phrases", -negation, OR,
// prefix*, and fields such as to:example.com or before:7d. It also splits text into words, for indexing and
// for searching, so that every index uses the same words.
//
// [Parse] answers a tree of a few plain steps ([Term], [Phrase], [Prefix], [Created], [And], [Or], [Not],
// [All]), which an index need only translate. What a word or a field means is decided here.
//
// It promises that any input ends in an answer or in an [Error] that names the place, soon: a query has at
// most [MaxLength] characters, [MaxTerms] terms and [MaxDepth] levels of parentheses, and a prefix at least
// [MinPrefix] letters.
//
// It does no I/O and keeps nothing.
package query
