// Package app builds Postroom from its parts, runs them, and stops them in order.
//
// It is the one place that knows every package: parts that need each other across a floor meet through
// small interfaces, which adapters here join. Besides the command line it is the only reader of package
// config.
//
// [New] opens Redis, makes the secrets of a first start, builds the parts and begins to listen, so that
// whatever is wrong with the settings shows before anything runs. [App.Run] starts what lives long and
// waits. When its context ends it stops in two steps: first nothing new is taken in (the listener closes,
// submits on open connections get 503, no further tasks are taken), then what is in flight may finish for
// shutdown.grace. What is closed, and in which order, stands beside what is opened, as a stop with a name;
// the last opened is closed first.
//
// When a part fails while running, the others are stopped in the same order and Run returns the error.
package app
