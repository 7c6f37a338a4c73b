// Package provider verifies and reads the webhooks in which mail providers report about mail, for package
// feedback.
//
// [New] makes a [Verifier] from the secrets of a provider. Its Verify comes first, with the request as it
// came in and the time. [Read] then turns the body into [Event] values. It needs no secret and no clock, so a
// stored body can be read later, or again.
//
// It promises:
//
//   - A signature is checked over the received bytes before any content is used. Secrets and codes are
//     compared in constant time. Several secrets may be valid together, so that one can be changed without
//     losing a request.
//   - If the provider signs a time, a request outside of the window is refused. If the signature does not
//     cover the body (Mailgun), a token that was used with another event is refused. If the provider signs
//     nothing (Postmark, Mailjet, SparkPost, Brevo), a shared secret is required.
//   - A broken element does not affect the others of its batch: it is listed in [Batch].Broken. A well-formed
//     element without use is listed in [Batch].Ignored, under a name of words.tsv, which a metric may use as
//     a label. A body of another format is an error.
//   - An element about several recipients becomes one event for each. If the provider names several without
//     saying which one it means, Recipient is empty and Candidates lists them: no one is suppressed by a
//     guess.
//   - Each event has a Key that is the same each time the provider repeats the fact, to detect duplicates. An
//     event of the provider's events API (package apiadmin) has the key that it has in a webhook.
//   - Sizes, depth, counts and lengths are bounded. JSON with a duplicate key is refused: two readers could
//     read two values. No body causes a panic.
//
// It answers no requests, stores nothing, suppresses no address, and owns no Redis keys. Its only connections
// fetch the signing certificate of Amazon SNS from hosts of SNS, and keep it in memory. It never visits the
// address that confirms an SNS subscription: Read returns that address after checking its host. The caller
// must verify the request before visiting it.
//
// Failures: a request without valid proof is Unauthorized, a wrong body Invalid or TooLarge. A certificate or
// token store out of reach is Unavailable, so that the provider retries. The text of an error never contains
// a secret.
package provider
