// Command bench measures Postroom against what it is built on, side by side in one run, and prints ratios:
// figures of one machine mean little on another, ratios a lot. docs/performance.md says how each is measured.
//
// With -campaign it measures a campaign instead: its rate, and what each mail costs.
//
// It needs a redis-server on the machine, sends only to a sink of its own on the loopback interface, and
// stops by itself.
package main
