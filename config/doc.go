// Package config reads the settings of a process for cmd and app: one struct, filled from defaults, a file,
// the environment and flags, in that order, and checked before anything starts.
//
// The struct Config is the only place where a setting is described. Its tags hold name, default, limits and
// meaning; the names of the environment variables, the checks, the output of `postroom config`,
// docs/configuration.md and deploy/config.example.yaml all follow from it (go generate writes the last
// two).
//
// Load reports every fault at once, each with the key, the value, where the value came from and what to
// write instead. An unknown key in the file is a fault, because a silently ignored misspelt setting is only
// found in production. An unknown POSTROOM_ variable is only a warning, because orchestrators inject some
// of their own. Values of secrets are never shown: not in faults, not in the table, not if a Config is
// printed or logged by mistake.
//
// Package config does not watch for changes, does no network I/O and opens only the files it is given. Only
// Bootstrap writes: the secret and the admin token of a first start, into the data directory.
package config

//go:generate go run ./gendocs ..
