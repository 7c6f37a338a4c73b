// Package config reads the settings of a process for cmd and app into one struct. It applies defaults, a
// file, the environment and flags, in that order, and checks the result before anything starts.
//
// Only the struct Config describes the settings: its tags hold the name, default, limits and meaning of each.
// The names of the environment variables, the checks and the output of `postroom config` follow from it. So
// do docs/configuration.md and deploy/config.example.yaml, which go generate writes.
//
// Load reports all errors together, each with the key, the value, its source and what to write instead. An
// unknown key in the file is an error, because you would otherwise notice a misspelt setting only in
// production. An unknown POSTROOM_ variable is only a warning, because orchestrators inject some of their
// own. Values of secrets are never shown: not in errors, not in the table, and not if a Config is printed or
// logged by mistake.
//
// Package config doesn't watch for changes, doesn't use the network and opens only the files that it is
// given. Only Bootstrap writes: the first start's secret and admin token, into the data directory.
package config

//go:generate go run ./gendocs ..
