// Package message composes emails for outbox and smtpd, and takes emails apart for people who look at them
// and for providers whose APIs take parts.
//
// # Composing
//
// [Compose] builds a whole message (RFC 5322, MIME) from a [Draft]; [FromRaw] takes a message that another
// program built, makes it safe to send and applies overrides. Both return a [Composed]: the bytes, the
// envelope, and what the relay must be able to do to carry it.
//
// It promises:
//
//   - Whatever the input was, every line ends in CRLF, and no NUL and no bare CR or LF is in the result, so
//     nothing can be smuggled past the end of a message. No field of a Draft can start a new header, part or
//     recipient: line breaks and control characters in header fields are refused, not repaired.
//   - Bcc never appears in the result.
//   - The result is 7bit, quoted-printable or base64, so any relay can carry it. Headers and parts of a raw
//     message and of an attached one that are 8bit or binary, or have lines over 998 octets, are encoded;
//     their meaning stays the same. [Composed.EightBit] and [Composed.SMTPUTF8] report the exceptions: signed
//     or encrypted content (DKIM-Signature, ARC, multipart/signed, S/MIME, PGP), addresses with a local part
//     beyond ASCII, and attached message/* parts that RFC 2046 section 5.2 forbids to encode.
//   - The result follows from the arguments alone: the time is in the Draft, randomness is a reader. The
//     package reads no clock, no file and no network.
//   - All errors in a Draft are reported together, as fault.InvalidFields with the paths of the HTTP contract
//     ("to[0].address", "headers.X-Foo", "attachments[1].filename").
//   - In FromRaw every header that any relay can carry, and was not overridden, stays as it came, byte for
//     byte. So does a body that any relay can carry or that is signed, except for bare CR and LF. So
//     signatures made elsewhere stay valid.
//
// It never guesses a recipient and never fetches a link. Its text arrives unchanged except for line ends;
// html may get a preview and lose the images written into it.
//
// Memory: Compose allocates one buffer for the result, sized beforehand, and streams each attachment into it.
// Besides the Draft itself the peak is that buffer, about 1.37 times the attachments (25 MB of files make 34
// MB), plus copies of text and html where they had to change. Images taken out of data: URLs are decoded once
// more. FromRaw needs the raw message and one result of the same size, and a copy for each level of parts
// around one that has to be encoded.
//
// It owns no Redis keys. When something other than the input fails, such as the source of randomness, the
// error is a plain one.
//
// # Reading
//
// [Parse] splits an email: header fields, texts, HTML and files. It is pure and never fails: if the email
// breaks the rules, it returns the readable parts. An email may come from anybody, so everything is bounded:
// parts by MostParts, their depth by DeepestPart, header fields by mostFields, the text of a part by
// MostPartText, the images of a Frame by imagesMost.
//
// [Open] takes a message apart for a program that joins it again, such as a provider's API. It reads all of
// every part and fails at whatever it would have to guess. Its bounds are mostNodes and deepestNode.
package message
