// Package handlebars renders Handlebars templates from untrusted authors, for package render.
//
// [Parse] reads a template once, with the partials it may use. [Template.Execute] renders it with data, from
// any number of goroutines. The language is Handlebars 4.7 (or the Mustache specification, with
// [Options.Mustache]) with a fixed set of helpers. docs/templates.md describes it and lists the differences.
//
// It promises:
//
//   - No template and no data can hang, crash or exhaust the process. [Limits] bound source, nesting, nested
//     partials, steps, time and output. An error names the exceeded bound.
//   - Data is maps, slices and scalars, as encoding/json decodes them into an any. No method of a value is
//     ever called, no field of a struct read.
//   - Each error names the template, the line and the column ([Error]).
//   - Values are escaped for their place ([Escaping]): for html as in Handlebars, for a header so that they
//     cannot begin another one. In Markdown a mark stands for each, and package render escapes it.
//   - A missing variable prints nothing and is reported by name ([Result.Missing]); in strict mode it is an
//     error.
//
// It reads no file, no network and no clock but the deadline of its context, and owns no Redis keys. It does
// not check the html around a value: package render removes links that begin with "javascript:".
package handlebars
