// Package handlebars renders Handlebars templates that strangers wrote, for whoever composes mail from them.
//
// [Parse] reads a template once, with the partials it may use; [Template.Execute] fills it with data as often as wanted, from any number of
// goroutines. The language is that of Handlebars 4.7 (and of the Mustache specification, when [Options.Mustache] asks for it), with a fixed
// set of helpers; docs/templates.md describes it and lists the few differences.
//
// It promises:
//
//   - A template can't hang, crash or exhaust the process, whatever it says and whatever data it meets. Source, nesting, partials within
//     partials, steps, time and output are bounded by [Limits]; who goes beyond gets an error that says which bound it was.
//   - Data is maps, slices and scalars, as encoding/json decodes them into an any. No method of a value is ever called, no field of a struct
//     read.
//   - Each error names the template, the line and the column ([Error]).
//   - What is printed is escaped for where it goes ([Escaping]): for html exactly as Handlebars does, for a header so that it can't start
//     another one.
//   - A variable that the data lacks prints nothing and is reported by name ([Result.Missing]); in strict mode it is an error.
//
// It reads no file, no network and no clock but the deadline of its context, and owns no Redis keys. It doesn't judge the html around a
// value: that a link must not begin with "javascript:" is for package render to see to.
package handlebars
