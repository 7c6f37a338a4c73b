// Package batch writes messages of which many have much in common: those of a mail merge, and those made from a stored template. For outbox.
//
// What they have in common is the [Letter]: the words before they are filled in, who they are from, and the files that travel with them. It is
// stored once for all of them, under a name that follows from what is in it. What a message has of its own is its [Slip]: whom it is for,
// and the params that fill in the words. A [Writer], made once for a letter, puts the two together whenever the message itself is needed:
// when it is sent, at each attempt, and when somebody wants to see it.
//
// It promises:
//   - The same letter, slip and name give the same bytes, so that an attempt repeats what the one before it sent: the time is in the slip,
//     and what else looks like chance follows from the message's name.
//   - [Writer.Check] finds whatever is wrong with a slip, without the cost of writing the message in full: a message that was checked fails
//     later only by its size or by the limits of CSS.
//   - Equal letters have equal names, whoever wrote them; different ones never do.
//
// It never looks anything up: a template that is changed later changes nothing about the letters that were made from it.
//
// It owns no Redis keys; the outbox stores what [Letter.Pack] gives. A Writer may be used by any number of goroutines, and a [Cache] keeps
// those that were used last.
package batch
