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
	ID          string // the gateway's, for logs and metrics
	Shared      string // all processes count requests together under this name; if empty, each counts its own
	Connections int    // requests under way; defaults to DefaultConnections
	Proxy       string // URL of a proxy; empty if none

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
func MostOfList(t api.GatewayType) int {
	if a := adapters[t]; a != nil && a.list != nil {
		return a.list.most
	}
	return 1
}

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

// mostUnderWay bounds the messages that a process has under way at a target in lists. Each of them has its
// content in memory.
const mostUnderWay = 1000

// Most returns how many messages the target may have under way: a list in each of its requests. For lists it
// is at most 1,000, but not less than a message for each request.
func (t Target) Most() int {
	return max(t.requests(), min(t.requests()*t.list(), mostUnderWay))
}

// requests returns how many requests the target may have under way.
func (t Target) requests() int { return cmp.Or(t.Connections, DefaultConnections) }

// list returns how many messages a request may have.
func (t Target) list() int {
	most := MostOfList(t.Type)
	if t.Batch > 0 {
		most = min(most, t.Batch)
	}
	return most
}

// String returns the target without its secrets.
func (t Target) String() string { return fmt.Sprintf("%s (%s, %s)", t.ID, t.Type, t.Host()) }

// GoString is String, for %#v.
func (t Target) GoString() string { return t.String() }
