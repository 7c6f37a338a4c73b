//go:build !unix

package redisdb

import (
	"context"
	"errors"
)

const childSupported = false

// startChild needs unix sockets and signals.
func startChild(context.Context, string, Options) (target, func() error, error) {
	return target{}, nil, errors.New("not supported on this system")
}
