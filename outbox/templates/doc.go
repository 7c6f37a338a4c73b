// Package templates stores the templates of mail, for the API, where clients write them, and for the outbox,
// which looks one up for each message that names it. A record is a template; a partial, which others include
// by its name; or a layout, which stands around the html of others. Package render defines the language and
// renders.
//
// It promises:
//   - A stored template can be rendered. It is refused if it has a syntax error, names a missing partial or
//     layout, or includes itself, in any of its variants by locale. All errors are returned together, each
//     with the path of its field.
//   - It stays so. A change or deletion that would break other records is refused and names them. That
//     includes concurrent changes: a change is stored only if no template was changed since it was checked.
//   - Each change of content is a new version. The last 20 are kept, fewer if they are large (4 MB together),
//     and any can be restored.
//   - [Templates.Template] returns a template with all that it can reach and nothing else, without asking
//     Redis. This process sees a change immediately, the others within about a second; all see a new template
//     immediately.
//   - An account's own partials come before common ones. Common templates find only common partials, so no
//     account can change the mail of another.
//   - A caller bound to an account sees its own and the common templates, changes only its own, and does not
//     learn whether others exist.
//   - An account has no more templates than its quota allows ([Options].Room).
//   - Previews are bounded in time and size, like all rendering.
//
// It never logs the content of templates or their data, and sends nothing.
//
// # Redis
//
// All keys are in partition 0 and kept by package records. None of them expires: template:<id> (hash: record,
// revision), template:<id>:state (hash: the kept versions, by number, as JSON), templates (sorted set of
// ids), templates:version (raised by each change).
//
// While Redis is unreachable, every call returns Unavailable; Template too, once its cache is older than a
// second.
package templates
