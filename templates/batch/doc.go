// Package batch renders messages that share most of their content: those of a mail merge, and those of a
// stored template. Package outbox uses it.
//
// The shared part is the [Content]: the unrendered words, the sender, the attachments. It is stored once for
// all messages under a name made of its bytes. The part of one message is its [Personalization]: the
// recipient, and the params that fill in the words. A [Renderer], made once for a content, combines the two
// whenever the message is needed: at each attempt, and when a user wants to see it.
//
// It promises:
//   - Equal content, personalization and identity give equal bytes, so a retry repeats what the first attempt
//     sent. The date is part of the personalization; MIME boundaries are derived from the Message-ID.
//   - [Renderer.Check] finds every fault of a personalization without the cost of a full rendering. A message
//     that passed Check can fail later only by its size or by the limits of CSS.
//   - Equal contents have equal names; different contents have different names.
//
// It never looks anything up: a template that is changed later does not change contents made from it.
//
// It owns no Redis keys; the outbox stores what [Content.Pack] returns. A Renderer is safe for concurrent
// use. A [Cache] keeps the renderers that were used last.
package batch
