// Package testdocuments says in tests what a search index has to do, whichever it is: the implementations of
// documents.Store all run [Conform].
package testdocuments
