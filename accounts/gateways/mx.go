package gateways

import (
	"net/netip"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// direct returns the settings of an mx gateway ready to use.
func (s *Settings) direct(id string, l api.Limits) mxsend.Target {
	t := mxsend.Target{ID: id, Connections: l.Connections, MessagesPerConnection: l.PerConnection}
	if s.mx == nil {
		return t
	}
	if s.mx.TLS == mxsend.TLSRequired {
		t.TLS = mxsend.TLSRequired
	}
	var sources []mxsend.Source
	for _, a := range s.mx.Addresses {
		address, err := netip.ParseAddr(a.Address)
		if err != nil {
			continue // Check refuses it
		}
		sources = append(sources, mxsend.Source{Address: address, Name: a.Name, Weight: a.Weight})
	}
	t.Addresses = mxsend.EncodeSources(sources)
	return t
}

// checkMX checks the fields of a gateway of type mx.
func (s *Settings) checkMX(f *Faults) {
	if s.api != (api.GatewayAPI{}) {
		f.Add("api", "must be absent with type mx")
	}
	if s.proxy != "" {
		f.Add("proxy", "must be absent with type mx")
	}
	s.checkAbsent(f)
	if s.mx == nil {
		return
	}
	if s.mx.TLS != "" && s.mx.TLS != "opportunistic" && s.mx.TLS != mxsend.TLSRequired {
		f.Add("mx.tls", "must be opportunistic or required")
	}
	for _, a := range s.mx.Addresses {
		address, err := netip.ParseAddr(a.Address)
		switch {
		case err != nil || address.Zone() != "":
			f.Add("mx.addresses", "must contain IP addresses; %q isn't one", a.Address)
		case !smtpsend.ValidHost(a.Name):
			f.Add("mx.addresses", "must have a host name for %s, as in its PTR record", a.Address)
		case a.Weight < 0 || a.Weight > 1000:
			f.Add("mx.addresses", "must have weights of 1 to 1000")
		}
	}
	if len(s.mx.Addresses) > 64 {
		f.Add("mx.addresses", "must not be more than 64")
	}
}
