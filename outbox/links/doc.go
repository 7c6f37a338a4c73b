// Package links rewrites the links of a mail's html so that clicks can be counted, and adds the pixel that
// counts opens. The outbox calls it.
//
// [Page.Rewrite] changes the values of href in a and area elements, and no other byte. Conditional comments,
// unusual tags, entities and white space stay as they are. It does not change:
//   - hrefs that are not web links: mailto:, tel:, sms:, cid:, data:, javascript:, fragments, relative links
//     without a base element;
//   - links that are not safe to follow: with user names, control characters, backslashes, invalid hosts, or
//     more than 2,000 octets;
//   - unfinished links, with the placeholders of a template language;
//   - links that must not be counted: prefixes of [Options].Keep, and elements with data-track="off", which
//     keep that attribute;
//   - links in comments, including the ones that only Outlook sees ([if mso]);
//   - the 501st different link and all after it.
//
// A rewritten link leads to the same address as before. Entities are read as browsers read them, relative
// links are resolved with the base element, and characters outside ASCII are encoded as browsers encode them.
// Html without links is unchanged, except for the pixel.
//
// The package never panics, does no I/O, and owns no Redis keys. It reads html once, whatever its form. If a
// link cannot be made, it returns an error and the unchanged html.
package links
