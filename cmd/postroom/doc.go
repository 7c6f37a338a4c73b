// Command postroom runs Postroom and operates it from a terminal.
//
// `postroom serve` is the service; `postroom demo` shows it in a minute; every other command asks a running
// Postroom over the same HTTP API that programs use, through package api, so that nothing can be done here
// that a program could not do. Only `config`, `doctor` and `secret` look at this machine as well.
//
// Commands print tables, or with --json what the API answered. Results go to standard output, everything else
// to standard error. A failure is one line that says what was tried and what to do about it. Exit codes: 0 it
// is done; 1 it is not; 2 the command line or the settings are wrong, and nothing was tried; 130 it was
// interrupted.
//
// Untrusted text, such as subjects and replies of relays, is stripped of control characters before it is
// printed.
package main
