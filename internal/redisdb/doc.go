// Package redisdb connects Postroom to its Redis and provides what every other package needs. That is the
// client, the names of keys, scripts, event streams, and a report of what an acknowledged write survives.
//
// It connects to a single server, a Sentinel set or a Cluster. With no address it starts its own: a
// redis-server or valkey-server as a child process, with an append-only file. It fails if neither is
// installed.
//
// # Addresses
//
//	redis://[user:password@]host[:6379][/database]                       one server; rediss:// for TLS
//	unix://[user:password@]/path/of/socket[?db=database]                 one server on this machine
//	redis+sentinel://[user:password@]host[:26379],host/master[/database] Sentinels; rediss+sentinel:// for TLS
//	redis+cluster://[user:password@]host[:6379],host                     a Cluster; rediss+cluster:// for TLS
//
// Sentinels with their own password take ?sentinel_user= and sentinel_password=. For TLS, ca= names a file
// with the only authority to trust, cert= and key= files that identify us, and insecure=true trusts anybody,
// which makes TLS pointless. Special characters in a password are written as in any URL: %2F for /, %40 for
// @.
//
// # Keys
//
// Every key of Postroom is made by [Key] and reads
//
//	postroom:{<partition>}:<kind>[:<part>…]      such as postroom:{0}:message:01J8…
//
// The braces are a Redis Cluster hash tag: all keys of one partition live in one slot, so one script can
// change them together. Keys of different partitions appear in one script only where [DB.Together] says
// that they may, and what such a script does must be done in another way elsewhere. The kinds are listed by
// the packages that own them; this package owns none, except that the consumer groups on streams are
// created and cleaned here, by [DB.Follow].
//
// # What it promises
//
//   - A connection that breaks is remade; commands are repeated for about a second until then. A command may
//     therefore run twice when its answer was lost, so every script must be harmless the second time.
//   - A server that restarted and forgot its scripts is sent them again, inside pipelines too.
//   - Scripts that go through [DB.Shared], and short pipelines of them, share round trips with other
//     goroutines' scripts (not in a Cluster, where a hanging node must not delay others). Each has its own
//     result. A script that was sent may still run after its deadline: as with a lost reply, that must be
//     harmless.
//   - The deadline of a context cuts a call short. Cancellation without a deadline does not interrupt a call
//     that is under way.
//   - The embedded server is restarted when it dies, and never runs twice on one data directory. When its
//     process is killed it loses nothing it acknowledged, except for writes that a slow disk deferred: two
//     seconds at most, and nothing with Options.Fsync "always".
//   - A write through [DB.ReplicatedPipeline] or [Script.RunReplicated] is on Options.WaitReplicas replicas
//     before it counts as written. Otherwise it fails, and the error states whether anything was written.
//   - Passwords in addresses appear in no error and no log.
//
// # When Redis is unavailable
//
// Calls fail with an error for which [Unavailable] returns true: within about 1.5 seconds if the connection
// is refused; at the context's deadline (or after some seconds, if it has none) if the server hangs. Callers
// that serve requests should set a deadline of a second or two. [DB.Follow] waits and continues on its own;
// [DB.Run] logs when the connection is lost and when it is back.
package redisdb
