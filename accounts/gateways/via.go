package gateways

import "errors"

// via is an error with its gateway. It has the error's text.
type via struct {
	error
	gateway string
}

// Unwrap returns the error.
func (v via) Unwrap() error { return v.error }

// Via adds the gateway of an error, for [GatewayOf]. Without an error, or for an account's own relay (empty),
// it returns err.
func Via(gateway string, err error) error {
	if err == nil || gateway == "" {
		return err
	}
	return via{error: err, gateway: gateway}
}

// GatewayOf returns an error's gateway, or "" for the account's own relay and unknown errors.
func GatewayOf(err error) string {
	if v, ok := errors.AsType[via](err); ok {
		return v.gateway
	}
	return ""
}
