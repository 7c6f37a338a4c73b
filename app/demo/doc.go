// Package demo shows a newcomer Postroom at work in a minute: it runs a whole one, with an embedded Redis in
// a temporary directory, beside a mail catcher that takes the place of a relay and a receiver that takes its
// webhooks, and drives messages through every state.
//
// What is told on the terminal is not scripted. Each step prints the curl command of the very request it
// makes, and each line after it is a mail that the catcher got or a webhook whose signature was verified, in
// the order of their arrival. A step that does not end as it should within a minute fails the demo.
//
// Package demo never reads settings: a config.yaml in the working directory may name the Redis of a
// production. It never talks to anything but itself, and leaves nothing behind: the temporary directory is
// removed when it ends.
package demo
