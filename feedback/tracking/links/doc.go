// Package links rewrites the links of a mail's html for the outbox, so that clicks can be counted, and adds the picture that counts opens.
//
// [Rewrite] changes the values of href in a and area elements, and nothing else by no byte: conditional comments, odd tags, entities and
// white space stay as they are. It leaves alone
//   - what is no link into the web: mailto:, tel:, sms:, cid:, data:, javascript:, fragments, relative links without a base element;
//   - what can't be followed safely: links with user names, control characters, backslashes, hosts that are none, or more than 2,000 octets;
//   - what is not finished: links with the marks of a template language;
//   - what is not to be counted: prefixes of [Options].Keep, elements with data-track="off", which keep that attribute;
//   - links in comments, so also those that only Outlook sees ([if mso]);
//   - the 501st different link and those behind it.
//
// It promises that a link leads where it led before: entities are read as browsers read them, relative links are completed by the base
// element, letters outside ASCII are encoded as browsers encode them. Html without links comes back as it was, but for the picture.
//
// It never panics, fetches nothing, and owns no Redis keys. It reads html once, whatever its form. When a link can't be made, it answers
// an error and the html as it was.
package links
