package gateways

import (
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// validate reports everything wrong with a gateway at once.
func validate(g api.Gateway) error {
	var f Faults
	f.ID("gateway", g.Gateway)
	f.Text("name", g.Name, 256)
	settings := ofGateway(g)
	most := settings.Limits()
	f.warmup(g.Warmup, &most)
	return fault.InvalidFields(append(f, settings.Check()...))
}

// patched lays the fields that a patch has over a gateway. A login that the patch names replaces one of the other kind.
func patched(g api.Gateway, p api.GatewayPatch) api.Gateway {
	set(&g.Name, p.Name)
	set(&g.Preset, p.Preset)
	set(&g.Host, p.Host)
	set(&g.Port, p.Port)
	set(&g.Secure, p.Secure)
	set(&g.User, p.User)
	set(&g.Pass, p.Pass)
	set(&g.Proxy, p.Proxy)
	set(&g.LocalAddress, p.LocalAddress)
	set(&g.SMTPEhloName, p.SMTPEhloName)
	set(&g.TLS, p.TLS)
	set(&g.OAuth2, p.OAuth2)
	set(&g.Limits, p.Limits)
	set(&g.Warmup, p.Warmup)
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

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
