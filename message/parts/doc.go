// Package parts takes a mail apart for people who look at it: header fields, texts, html and files.
//
// It is pure. It never fails: of a mail that breaks the rules it returns what can be read. A mail may come
// from anybody, so everything is bounded: parts by Most, their depth by Deepest, header fields by mostFields,
// the text of a part by TextMost, the images of a Frame by imagesMost.
package parts
