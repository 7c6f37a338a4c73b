// Package mail writes the mail of a digest for package digest: its subject, its html and its text, in the
// language of its recipient.
//
// [Write] returns the built-in mail. Its parts are Handlebars sources that are the same bytes for everybody,
// so that the outbox stores them once. The differences are in the params. [Params] returns these alone, for
// stored templates. They have one member, digest:
//
//   - groups: category, entityType, entityId, kind, title, url, count, first, last, actors {id, name, url},
//     others, priority, payload; and, in the language of the mail, who ("Ann, Bo and 3 others"), updates
//     ("5 updates"; empty for a single event), when, and line, which is the group's line in the text;
//   - total, rest {groups, events, line}, schedule, period, from, to, feedUrl;
//   - subject, preview, heading, span, single, lang, dir, and words, which the built-in mail prints.
//
// The link to the recipient's preferences is not in the params. Every template has it as
// {{rcpt.preferencesUrl}}, and {{rcpt.unsubscribeUrl}} beside it.
//
// It promises that each group is on exactly one line of the text and nowhere else in it. A subject is one
// line of at most 150 characters. Only http and https URLs become links. No data is executed as a template or
// becomes html. The same digest gives the same bytes. It loads no pictures and tracks no one. Styles are in
// the elements, because the outbox moves CSS into them only for stored templates; the style element has what
// can't be there.
//
// It is pure and owns no Redis keys. It fails only if the payload of a group is not JSON.
package mail
