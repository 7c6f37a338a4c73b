package gateways

import "errors"

// via is an error with the gateway it was met at. Its text is the error's own.
type via struct {
	error
	gateway string
}

// Unwrap gives the error.
func (v via) Unwrap() error { return v.error }

// Via notes with an error at which gateway it was met, for [GatewayOf]. Without an error, or for an account's
// own relay (empty), it gives back what it got.
func Via(gateway string, err error) error {
	if err == nil || gateway == "" {
		return err
	}
	return via{error: err, gateway: gateway}
}

// GatewayOf says at which gateway an error was met; empty: at the account's own relay, or nobody noted it.
func GatewayOf(err error) string {
	if v, ok := errors.AsType[via](err); ok {
		return v.gateway
	}
	return ""
}
