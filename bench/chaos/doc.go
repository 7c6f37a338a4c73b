// Command chaos runs Postroom as it is run in earnest, several processes of each role on one Redis, and
// breaks all of it at random for a while. Then it counts whether the promises held: nothing lost, nothing
// sent twice without being marked in doubt, one last word for every recipient, every event at every webhook
// endpoint, every digest event in one email. docs/testing.md says how to run it and how to read its table.
//
// With -cluster that Redis is a Cluster of three masters and three replicas. Masters die, and processes are
// cut off from all nodes.
//
// The processes (this program, started again as Postroom), redis-server with appendfsync always, TCP, SIGKILL
// and SIGSTOP are real. The clients, the relays and the webhook receivers are simulated; they keep a ledger
// of the answers they got and the data they accepted. Everything runs on the loopback interface, and ends
// with the program, however that ends.
//
// The same seed makes the same plan: the messages, when which fault begins and how long it lasts, and how the
// relays and receivers behave towards each message. When which process gets to run is the machine's own
// choice, so a run is never repeated exactly.
//
// It exits with 1 when a promise was broken, and tells the whole story of each message concerned.
package main
