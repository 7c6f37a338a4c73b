// Package fault defines the kinds of error that cross Postroom's packages. They distinguish "the request is
// wrong" from "try again later" without naming the failed package.
//
// It promises that a Kind survives wrapping: [KindOf] finds it behind any number of fmt.Errorf("…: %w"). An
// error without a Kind is Internal, and its text is for the log, never for a client. Package fault knows
// nothing about HTTP; api.StatusOf maps a Kind to a status code.
package fault
