package gateways

import (
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// Check reports everything that is wrong with a gateway.
func (s *Store) Check(g api.Gateway) error {
	var f Faults
	f.ID("gateway", g.Gateway)
	f.Text("name", g.Name, 256)
	settings := ofGateway(g)
	most := settings.Limits()
	f.warmup(g.Warmup, &most)
	return fault.InvalidFields(slices.Concat(f.Fields, settings.Check(), s.Destinations(settings)))
}

// patched lays the fields that a patch has over a gateway. A login that the patch names replaces one of the
// other kind.
func patched(g api.Gateway, p api.GatewayPatch) api.Gateway {
	api.Patch(&g, p)
	byPassword := p.User != nil && *p.User != "" || p.Pass != nil && *p.Pass != ""
	switch {
	case g.OAuth2 == nil: // one login, or none
	case byPassword && p.OAuth2 == nil:
		g.OAuth2 = nil
	case !byPassword && p.OAuth2 != nil:
		g.User, g.Pass = "", ""
	}
	return g
}
