// Package searchtest says in tests what a search index has to do, whichever it is: the implementations of
// search.Store all run [Conform].
package searchtest
