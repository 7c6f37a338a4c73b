// Package testredis gives tests a real redis-server: one for each test package, on a unix socket. Each test
// has its own database, so that tests run in parallel and share nothing.
//
// A package's TestMain reads os.Exit(testredis.Main(m)); Main stops the server at the end and fails the run
// when goroutines are left. A test that wants to kill, freeze or fill its Redis starts one of its own with
// [Server]; several servers at work together are [Replicated], [Sentinel] and [Cluster]. Where redis-server
// isn't installed these tests fail, and say how to install it; they are never skipped.
package testredis
