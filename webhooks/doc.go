// Package webhooks posts events to programs. It reads the event stream, posts each event, signed, to every
// endpoint that subscribes to it, and keeps a log of the responses.
//
// An endpoint is created through the API, or named by the settings or by an account ([Options].Implicit).
// The fan-out makes a delivery for each event and endpoint: a record, and a task in the queue notify. A
// worker makes one attempt of a delivery at a time ([Webhooks.Deliver]). One pure function, policy.decide,
// turns its outcome into a decision.
//
// # What it promises
//
//   - An event in the stream reaches every endpoint that subscribes to it at least once, or its delivery says
//     why not. Attempts, redeliveries and replays of one event to one endpoint carry the same webhook-id, so
//     that a receiver can drop repetitions.
//   - One slow, dead or limited endpoint delays no other. It gets a bounded number of workers, fewer the
//     slower it is. After failures in a row one request at a time asks whether it is back, and the others
//     wait in the queue, where they cost no attempt.
//   - An endpoint that answers 410, or fails for DisableAfter with no success, is switched off, with a
//     webhookDisabled event written in the same step. Events of the meantime can be replayed for as long as
//     the stream has them.
//   - Link-local and metadata addresses are never dialed, private ones only when allowed, whatever DNS says;
//     redirects are not followed; the proxy settings of the environment are not used.
//   - Endpoint secrets and header values are sealed in Redis, masked in answers and absent from logs. So are
//     URLs, in logs.
//   - Memory is bounded: per endpoint by MaxPending waiting deliveries and LogSize finished ones, kept for
//     LogAge. Events beyond MaxPending are counted and left to a replay.
//
// Deliveries have no guaranteed order, as in every queue that retries.
//
// # Redis
//
// All keys are in partition 0, because a delivery changes together with its endpoint and endpoints are few.
//
//	postroom:{0}:webhook:endpoints                      hash    endpoint → JSON, secrets sealed
//	postroom:{0}:webhook:version                        string  counts changes of endpoints; every process compares it once a second
//	postroom:{0}:webhook:off                            hash    endpoint → why it was switched off, and at which URL
//	postroom:{0}:webhook:failing                        hash    endpoint → since when, until when, and at which URL
//	postroom:{0}:webhook:made                           hash    endpoint → how many deliveries were made for it
//	postroom:{0}:webhook:woken                          hash    endpoint → the last request to end its rest
//	postroom:{0}:webhook:rest:<endpoint>                string  until when it rests, and why, for those who ask
//	postroom:{0}:webhook:hours:<endpoint>:<date>        hash    requests by hour and result; 31 days
//	postroom:{0}:webhook:replaying:<endpoint>           hash    how far the last replay in the background is; 7 days
//	postroom:{0}:webhook:delivery:<endpoint>:<delivery> hash    one delivery: status, attempts, event, last answer; LogAge after its end
//	postroom:{0}:webhook:log:<endpoint>                 zset    deliveries by creation
//	postroom:{0}:webhook:done:<endpoint>                zset    those that are over, by their end
//	postroom:{0}:webhook:due                            zset    those that are not, by when something should happen
//	postroom:{0}:webhook:rate:<endpoint>                string  the rate limit's bucket
//	postroom:{0}:webhook:replay:<endpoint>              string  lock of a replay
//
// It reads postroom:{p}:events as the group "webhooks" and appends webhookDisabled events to
// postroom:{0}:events.
//
// # When it fails
//
// A worker is killed between the request and the record: the task runs again and the request is repeated
// with the same webhook-id.
// A record has no task: after some seconds it gets a new one. Its task is in the archive: an operator put it
// there, and the delivery is skipped. So is one whose task is deleted in the dashboard
// ([Webhooks.TaskDeleted]).
// Redis is unavailable: workers keep the attempt in hand for some seconds, then retry it later; the fan-out
// waits; endpoints stay in memory.
// A secret cannot be opened: the endpoint's deliveries wait, and the log names the endpoint.
package webhooks
