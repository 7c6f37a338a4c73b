// Command bench measures Postroom beside what it is built on, in turns within one run, and prints one table
// of medians, ranges and ratios: figures of one machine mean little on another, ratios a lot.
// docs/performance.md says how each row is measured.
//
// Each row of Postroom begins with an empty redis-server, a Postroom in a process of its own, and a sink for
// its mail in this one, so that the processor time of each is known apart. With -before, another build of
// this program runs its own Postroom in turns with this one. With -profile, Postroom runs in this process and
// each row leaves its profiles.
//
// It needs a redis-server on the machine, sends only to sinks of its own on the loopback interface, and stops
// by itself. A row that loses mail, or whose numbers differ from the sink's, ends it with an error.
package main
