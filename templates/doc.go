// Package templates keeps the templates that mail is made of, for the doors, where people write them, and for the outbox, which asks for one
// with every message that names it. A record is a template, a partial, which others include by its name, or a layout, which stands around
// the html of others. The language and the rendering are those of package render.
//
// It promises:
//   - What is stored can be read. A template is refused while it has a fault of syntax, names a partial or layout that isn't there, or
//     includes itself, in any of its variants by locale; all faults are told at once, each with the path of its field.
//   - It stays so. A change or deletion that would break others is refused, naming them, whoever else changes something at that moment:
//     each change holds only while no template was changed since it was checked.
//   - Each change of content is a new version. The last 20 are kept, fewer where they are large (4 MB together), and any can be restored.
//   - [Templates.Template] finds a template with all that it can reach and nothing else, without asking Redis: a change is seen by the
//     process that made it at once and by the others within about a second, a new template by all of them at once.
//   - An account's own partials come before everybody's. Templates that every account may use find only partials that every account may
//     use, so that no account can change what another one sends.
//   - A caller confined to an account sees its templates and everybody's, changes only its own, and doesn't learn whether others exist.
//   - Previews are bounded in time and size as all rendering is, whatever a template says.
//
// It never logs what templates or their data say, and sends nothing.
//
// # Redis
//
// All keys are in partition 0 and kept by package records; none of them expires: template:<id> (hash: record, revision), template:<id>:state
// (hash: the versions that are kept, by number, as JSON), templates (sorted set of ids), templates:version (raised by each change).
//
// When Redis is away, every call answers Unavailable; Template too, once what it remembers is older than a second.
package templates
