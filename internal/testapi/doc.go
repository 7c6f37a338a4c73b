// Package testapi provides a fake of each mail provider's send API, for tests of senders.
//
// [Start] runs the API of one provider on the loopback interface, under the provider's own paths. It is
// written from the providers' documents, not from a client. It checks the key or the signature, the form of
// the request, required fields, types, sizes and addresses. Then it answers as the provider does, with the
// provider's error codes. A request that repeats an idempotency key gets the provider's answer to that.
//
// If an API takes messages in parts, the fake joins the parts to a MIME message. It keeps every accepted
// message, once for each recipient, until it is closed. [Server.Delivered] lists these deliveries, and
// [Server.Count] counts what a recipient really got: messages of a sandbox or a test mode don't count.
//
// [Server.Fail] makes the next requests go wrong. A [Fault] cuts the connection or waits at a chosen [Point]
// of the exchange, replaces the answer, or makes it lie. Every wait is for a channel. Only
// [Options].Latency takes time.
//
// Some limits and messages are not documented by the providers. There the fake is strict rather than lenient.
//
// The package is never part of the product.
package testapi
