// Package apisend sends one message through a provider's HTTP API.
package apisend
