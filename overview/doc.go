// Package overview gathers for operators what they have to know now: whether mail flows, what is wrong, and
// where it is mended. The page at /, GET /v1/overview and postroom overview show its answer.
//
// It promises that
//   - its cost does not grow with the email log: it reads counters by hour and day, the heads of indexes, the
//     newest 200 messages that were sent, and the newest 200 that failed;
//   - what it says of such a part of the log comes with the number of messages it was counted over;
//   - of an account it says nothing about other accounts and the instance;
//   - reasons of failures have no addresses in them.
//
// It changes nothing, decides nothing about messages, and owns no keys in Redis. If a source fails, so does
// the answer: all of them are in the same Redis. Only [Overview.Alerting] answers then, with what the process
// knows.
package overview
