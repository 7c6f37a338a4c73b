package gateways

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// TestDirectDelivery: an mx gateway's settings become a target, and errors are named.
func TestDirectDelivery(t *testing.T) {
	t.Parallel()
	g := api.Gateway{Gateway: "mx", Name: "mx", Type: api.GatewayMX, MX: &api.GatewayDirect{TLS: "required",
		Addresses: []api.GatewaySource{{Address: "192.0.2.2", Name: "b.example.com", Weight: 3},
			{Address: "2001:db8::1", Name: "a.example.com"}}}}
	relay, err := Described(g)
	if err != nil || relay.IsSMTP() || relay.MX.TLS != mxsend.TLSRequired || relay.MX.Check() != nil {
		t.Fatalf("%+v, %v", relay, err)
	}
	sources, err := mxsend.DecodeSources(relay.MX.Addresses)
	if err != nil || len(sources) != 2 {
		t.Errorf("%v, %v", sources, err)
	}
	for name, row := range map[string]struct {
		change func(*api.Gateway)
		field  string
	}{
		"no address":   {func(g *api.Gateway) { g.MX.Addresses[0].Address = "mx.example.com" }, "mx.addresses"},
		"no name":      {func(g *api.Gateway) { g.MX.Addresses[0].Name = "" }, "mx.addresses"},
		"a line break": {func(g *api.Gateway) { g.MX.Addresses[0].Name = "a\r\nb" }, "mx.addresses"},
		"a TLS word":   {func(g *api.Gateway) { g.MX.TLS = "maybe" }, "mx.tls"},
		"a host":       {func(g *api.Gateway) { g.Host = "smtp.example.com" }, "host"},
		"a key":        {func(g *api.Gateway) { g.API = &api.GatewayAPI{Key: "k"} }, "api"},
		"a proxy":      {func(g *api.Gateway) { g.Proxy = "socks5://192.0.2.9:1080" }, "proxy"},
		"type smtp":    {func(g *api.Gateway) { g.Type, g.Host, g.Port = "", "h", 25 }, "mx"},
	} {
		wrong, direct := g, *g.MX
		direct.Addresses = append([]api.GatewaySource{}, g.MX.Addresses...)
		wrong.MX = &direct
		row.change(&wrong)
		if _, err := Described(wrong); err == nil || !strings.Contains(err.Error(), row.field) {
			t.Errorf("%s: %v, want the field %s", name, err, row.field)
		}
	}
}
