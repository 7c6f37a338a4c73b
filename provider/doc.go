// Package provider reads what mail providers tell by webhook about the mail that was handed to them: whether a request is really theirs,
// and what it says, in one vocabulary for all of them. It works for feedback, which writes down what was told and acts on it.
//
// There are two doors. [New] makes a [Verifier] from the secrets that an operator was given by the provider; its Verify is asked first,
// with the request as it came in and the time. [Read] then turns the body into [Event] values; it needs no secret and no clock, so a body
// that was written down can be read later, or again.
//
// It promises:
//
//   - A signature is checked over the bytes that came in, before anything in them is believed. Secrets and codes are compared in constant
//     time. Several secrets may be valid at once, so that one can be changed without losing a request.
//   - Where the provider signs a time, a request outside of the window is refused. Where the signature doesn't cover the body (Mailgun), a
//     token that came before with another event is refused. Where the provider signs nothing at all (Postmark, Mailjet, SparkPost, Brevo), a
//     shared secret is asked for, and what is told is worth as much as that secret.
//   - One element that can't be read doesn't cost the others of its batch: it is listed in [Batch].Broken. Something well formed that this
//     package has no use for is listed in [Batch].Ignored, under one of [IgnoredNames], fit for a metric. A body that is not the
//     provider's at all is an error.
//   - An element that tells of several recipients becomes one event for each. Where a provider names several and doesn't say which one it
//     means, Recipient stays empty and Candidates has them: nobody is suppressed by a guess.
//   - Each event has a Key that is the same each time the provider repeats the fact, for absorbing duplicates.
//   - Sizes, depth, counts and lengths are bounded; JSON with a key written twice is refused, for two readers could see two things in it.
//     No body makes it panic.
//
// It never answers a request, writes nothing down, suppresses nobody, and owns no Redis keys. It opens no connection but one: the signing
// certificate of Amazon SNS is fetched through [Certificates], from hosts of SNS only, and kept. It never visits the address that confirms
// an SNS subscription: Read hands that out, and only after having checked whose it is; Verify must have accepted the request before anybody
// follows it.
//
// When something fails: a request that isn't proven is a fault of kind Unauthorized, a wrong body Invalid or TooLarge, and a certificate or
// a token store that can't be reached Unavailable, so that the provider is told to come back. The text of an error never has a secret in it.
package provider
