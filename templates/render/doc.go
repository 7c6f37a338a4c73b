// Package render renders subject, html and text of a mail from a stored template and data, for package
// templates and the outbox.
//
// [Parse] reads a template. Its parts are html or Markdown in the language of package handlebars
// (docs/templates.md). It returns all faults at once, as fault.Unprocessable with a field for each part.
// [Template.Render] renders it: html is escaped and checked, CSS inlined if wanted, a missing text made from
// the html.
//
// Pages that differ in their values only are read as html once, to make the text, to check links and
// to inline CSS. A template keeps up to 8 such pages of at most 128 KB with room for values. A value
// that could change more than its own place takes the long way, so nobody sees which way a mail took.
//
// It promises that rendering ends within [Options.Time] for any template and data; that a subject is one
// line; that no link of the html runs a script; and that the same input gives the same output. Goroutines may
// share a Template.
//
// It reads no file, no network and no clock but that of its deadline, and owns no Redis keys.
package render
