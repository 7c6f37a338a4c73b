package apisend

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// DefaultConnections is how many requests a process has under way at a target that names no number.
const DefaultConnections = 20

// Target is one account at a provider. It is comparable: one with a corrected key is another one. It holds
// secrets in clear.
type Target struct {
	Type        api.GatewayType
	ID          string // of the gateway, for logs and metrics
	Shared      string // all processes count requests together under this name; empty: each its own
	Connections int    // requests under way; 0: DefaultConnections
	Proxy       string // URL of a proxy; empty: none

	// as in api.GatewayAPI
	URL, Key, Secret, Region, Domain, Stream, Pool, Subaccount string
	Sandbox                                                    bool
	Batch                                                      int
}

// Known reports whether there is an adapter for a type.
func Known(t api.GatewayType) bool { return adapters[t] != nil }

// Types returns the types that have an adapter, in alphabetical order.
func Types() []api.GatewayType {
	var all []api.GatewayType
	for t := range adapters {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// MostOfList returns how many messages one request to a type may have; 1: its API takes them one by one.
func MostOfList(t api.GatewayType) int { return 1 }

// Base returns the URL that the paths of the API follow.
func (t Target) Base() string {
	base := t.URL
	if a := adapters[t.Type]; base == "" && a != nil && a.base != nil {
		base = a.base(t)
	}
	return strings.TrimSuffix(base, "/")
}

// Host returns the host of the API, with a port that its URL names.
func (t Target) Host() string {
	u, err := url.Parse(t.Base())
	if err != nil {
		return ""
	}
	return u.Host
}

// Most returns how many requests the target may have under way.
func (t Target) Most() int { return cmp.Or(t.Connections, DefaultConnections) }

// String returns the target without its secrets.
func (t Target) String() string { return fmt.Sprintf("%s (%s, %s)", t.ID, t.Type, t.Host()) }

// GoString is String, for %#v.
func (t Target) GoString() string { return t.String() }
