// Package render makes the subject, html and text of a mail from a stored template and somebody's data, for whoever accepts or
// delivers messages made of templates.
//
// [Parse] reads a template, whose parts are written in the language of package handlebars (docs/templates.md), html or Markdown; it
// reports all faults at once, as fault.Unprocessable with a field for each part. [Template.Render] fills it: html is escaped and checked,
// CSS inlined where asked for, a missing text made from the html.
//
// It promises that rendering ends within [Options.Time], whatever template and data are; that a subject is one line; that no link of the
// html runs a script; and that rendering the same with the same gives the same. A template that was read may be shared by goroutines.
//
// It reads no file, no network and no clock but that of its deadline, and owns no Redis keys.
package render
