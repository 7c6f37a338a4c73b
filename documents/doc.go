// Package documents is the search index of mail.
package documents
