// Package apisend hands one message to the HTTP API of a mail provider and returns the result of each
// recipient, with the vocabulary of package smtpsend. Its caller is routing, which chooses the gateway. A
// provider is one file with an adapter: what a request looks like, and what its answers mean.
//
// It promises:
//   - Each recipient has its own result. A recipient that an answer leaves out is in doubt. So are all of
//     them if the answer is not of the API's form, is cut, too long, or too late. A recipient that an answer
//     names and the message did not have is ignored and counted.
//   - The last byte of a request is its final dot: it leaves when Message.BeforeDot and Message.AtDot have
//     returned nil. Until then the request is incomplete, and nothing can be delivered. A request that broke
//     before is never in doubt.
//   - No request is repeated, with two exceptions. A request over a kept connection that had ended goes out
//     once more, because the provider has seen nothing. A request in doubt goes out again with the same key
//     and the same bytes, if the provider remembers keys.
//   - Messages for one target that come at the same time share a request where the API takes lists. Their
//     callers see single messages. A message whose marks fail is left out before the last byte leaves. A list
//     that is refused for one of them is asked again in halves. A wrong count in an answer puts all in doubt.
//   - An error that only the gateway is to blame for, such as a revoked key, is one of the account; a message
//     that the gateway can't carry is smtpsend.Uncarried. Another gateway may be tried after either.
//   - Content is sent as MIME, byte for byte, where the API takes it. Elsewhere the parts of the message are
//     mapped to fields, and a message that would be changed is not carried.
//   - Keys are never in errors and logs, nor are contents and headers. Destinations pass Options.Guard when
//     they are dialed. No redirect is followed.
//   - An answer is read up to 1 MiB, that to a list up to 8 MiB, a header up to 64 KiB; it is never unpacked.
//
// It stores nothing and owns no Redis keys. The envelope sender and DSN requests do not reach a provider: it
// reports bounces by webhooks.
//
// When a provider can't be reached, Send returns an *smtpsend.Error of PhaseDNS, PhaseConnect or PhaseTLS.
package apisend
