// Package demo shows Postroom in action in a minute. It runs a whole Postroom with an embedded Redis in a
// temporary directory, a mail catcher instead of a relay, and a receiver for its webhooks. The tour drives
// messages through every state.
//
// The output is not scripted. Each step prints the curl command of the request it makes. Each line after it
// is an email that the catcher got, or a webhook whose signature was verified, in order of arrival. A step
// that does not end as expected within a minute fails the demo.
//
// Package demo never reads settings: a config.yaml in the working directory may name a production Redis. It
// connects only to itself, and removes its temporary directory when it ends.
package demo
