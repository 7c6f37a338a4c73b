// Command backlog measures a Postroom in which mail piles up: it accepts a million messages that nobody
// delivers, looks at them, takes half of them back, and has the other half delivered. It prints how much
// memory a waiting message takes, what becomes slower as they grow in number, and what kept Redis from
// answering others in the meantime. docs/performance.md has what it said.
//
//	go run ./bench/backlog -messages 1000000
//
// It starts its own redis-server, and Postroom as processes of its own (this program, started again): one
// with the role api, and later one with the role worker. It sends only to a sink of its own on the loopback
// interface. A million messages need 5 GB of memory and as much disk, and a quarter of an hour.
package main
