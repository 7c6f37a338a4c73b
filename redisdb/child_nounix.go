//go:build !unix

package redisdb

import (
	"context"
	"errors"
)

const childSupported = false

// startChild needs unix sockets and signals.
func startChild(context.Context, string, Options) (home, error) {
	return nil, errors.New("not supported on this system")
}
