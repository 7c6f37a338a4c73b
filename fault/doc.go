// Package fault names the kinds of error that cross Postroom's packages, so that whoever answers a person or a program can tell "your
// request is wrong" from "come back later" without knowing which package failed.
//
// It promises that a Kind survives wrapping: [KindOf] finds it behind any number of fmt.Errorf("…: %w"). An error without a Kind is
// Internal, and its text is for the log, never for a client. Package fault knows nothing about HTTP; api.StatusOf turns a Kind
// into a status code.
package fault
