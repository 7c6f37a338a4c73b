// Package render renders the subject, HTML and text of emails from templates and data, for package templates
// and the outbox.
//
// # One email
//
// [Parse] reads a template. Its parts are html or Markdown in the language of package handlebars
// (docs/templates.md). It returns all errors together, as fault.Unprocessable with a field for each part.
// [Template.Render] renders it: html is escaped and checked, CSS inlined if wanted, a missing text made from
// the html.
//
// Pages that differ in their values only are read as html once, to make the text, to check links and to
// inline CSS. A template keeps up to 8 such pages of at most 128 KB with room for values. A value that could
// change more than its own place takes the long way. The result is the same either way.
//
// It promises that rendering ends within [Options.Time] for any template and data. A subject is one line, no
// link of the html runs a script, and the same input gives the same output. Goroutines may share a Template.
//
// It reads no file, no network and no clock except for its deadline, and owns no Redis keys.
//
// # Messages that share their content
//
// Messages of a mail merge share most of their content, and so do a stored template's.
//
// The shared part is the [Content]: the unrendered words, the sender, the attachments. It is stored once for
// all messages under a name made of its bytes. The part of one message is its [Personalization]: the
// recipient, and the params that fill in the words. A [Renderer], made once for a content, combines the two
// whenever the message is needed: at each attempt, and when a user wants to see it.
//
// It promises:
//   - Equal content, personalization and identity give equal bytes, so a retry repeats what the first attempt
//     sent. The date is part of the personalization; MIME boundaries are derived from the Message-ID.
//   - [Renderer.Check] finds every error in a personalization without the cost of a full rendering. A message
//     that passed Check can fail later only by its size or by the limits of CSS.
//   - Equal contents have equal names; different contents have different names.
//
// It never looks anything up: a template that is changed later does not change contents made from it.
//
// It owns no Redis keys; the outbox stores what [Content.Pack] returns. A Renderer is safe for concurrent
// use. A [Cache] keeps the renderers that were used last.
package render
