// Package app builds Postroom from its parts, runs them, and stops them in order.
//
// It is the only package that depends on every part. Parts that need each other across layers do so through
// small interfaces, which adapters here implement. Besides the command line it is the only reader of package
// config.
//
// [New] opens Redis, creates the secrets at a first start, builds the parts and begins to listen. So errors
// in the settings show before anything runs. [App.Run] starts the long-running parts and waits. When its
// context ends it stops in two steps. First it accepts nothing new: the listener closes, submits on open
// connections get 503, and no further tasks are taken. Then work in flight may finish for shutdown.grace.
// Each part registers a named stop where it is opened. Stops run in reverse order of opening.
//
// If a part fails while running, Run stops the others in the same order and returns the error.
package app
