// Package people keeps the users of the pages and the API who have a name and a password. It stores their
// roles, their second factors, and the one-time links that set their passwords. Package access opens their
// sessions.
//
// # Persons
//
// A person has a name (in small letters, which is also the id), a role, and perhaps accounts. Without
// accounts a person may see the whole instance. With accounts a session acts for one of them at a time.
//
//   - viewer: may read whatever the scope api may read, and change nothing but the own password.
//   - operator: the scope api.
//   - admin: everything. An admin has no accounts.
//
// # Promises
//
//   - No password is typed by anybody but its owner. An admin who creates a person gets a one-time link,
//     which works once, for a day, until the password changes. Only a hash of it is in Redis.
//   - Passwords are stored as argon2id (64 MiB, 3 passes, 4 lanes). Two are computed together; others wait,
//     up to 16 of them and 5 s, then the answer is Unavailable. So logins take at most 128 MiB.
//   - There is one refusal for an unknown name, a wrong password, a wrong or missing code, and a person who
//     is disabled, has no password, or logs in elsewhere. Each takes the time of one password.
//   - A TOTP code (RFC 6238: SHA-1, 6 digits, 30 s, one step early or late) works once, and so does a
//     recovery code. After 10 wrong codes an hour with the right password, only recovery codes work until it
//     is over.
//   - After 100 failures an hour, a name is refused from networks that its person has not logged in from
//     before. So guessing is slow, and others can't lock a person out of their usual network.
//   - A record is sealed as a whole ([seal.Ring.Seal]). Someone who reads Redis gets no hash to guess at, and
//     someone who writes to it can't make a person, widen a role or remove a second factor. A copy of an
//     older record can be put back: with it, a former password or role.
//   - A person's epoch changes with role, accounts, disabled, password and second factor. A session holds the
//     epoch at which it was opened. So sessions end within a second of each of these changes, and with the
//     person.
//
// There is always a way in: the token of the configuration works whatever happens to people. So the last
// admin may be demoted or deleted.
//
// # Redis
//
// All keys are in partition 0:
//
//   - person:<name>: string, the sealed record.
//   - people: sorted set of names, all of score 0. people:version: number, raised by each change.
//   - people:link:<hash>: string, a sealed link, until it is used or has ended.
//   - people:failures:<hash of the name>, people:codes:<hash of the name>: counters that expire with their
//     hour.
//
// If Redis is unreachable, everything returns Unavailable.
package people
