// Package event says what can happen to a message, as data: the events that Postroom writes to its stream in the same atomic step as the
// change itself, and that webhooks, the search index, counters and pages read from there.
//
// An event is written once and never changed. Its ID is unique for ever, so a reader that sees it twice can tell. The JSON of an event
// is the body of a webhook, less serviceUrl, which the sender of the webhook adds. Field names are EmailEngine's.
//
// Version is raised when a field changes its meaning; new fields do not raise it. Package event holds no behaviour and does no I/O.
package event
