// Package event defines the events of messages as data. Postroom writes an event to its stream in the same
// atomic step as the change. Webhooks, the search index, counters and pages read the stream.
//
// An event is written once and never changed. Its ID is unique forever, so a reader can detect duplicates.
// The JSON of an event is the body of a webhook without serviceUrl, which package webhooks adds. Field
// names are EmailEngine's.
//
// Version is raised when a field changes its meaning; new fields do not raise it. Package event has no
// behaviour and does no I/O.
package event
