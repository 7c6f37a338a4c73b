// Command bench measures Postroom and the software that it is built on, in turns within one run. It prints
// one table of medians, ranges and ratios: figures from one machine mean little on another, ratios a lot.
// docs/performance.md says how each row is measured.
//
// Each Postroom row begins with an empty redis-server, a separate Postroom process, and a sink for its mail
// in this process, so that each one's processor time is known. With -before, another build of this program
// runs its Postroom in turns with this one. With -profile, Postroom runs in this process and each row leaves
// its profiles.
//
// It needs a redis-server on the machine, sends only to its own sinks on the loopback interface, and stops on
// its own. A row that loses mail, or whose numbers differ from the sink's, ends it with an error.
package main
