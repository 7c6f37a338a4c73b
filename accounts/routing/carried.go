package routing

import (
	"slices"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// OnlyAPIs returns the relays for mail of a lane if all of them are APIs of providers, which can't carry every
// message. Otherwise it returns nil.
func OnlyAPIs(relays []gateways.Relay, lane api.Lane) []gateways.Relay {
	for i := range relays {
		if apisend.Known(relays[i].Type) {
			relays = Serving(relays, lane)
			if slices.ContainsFunc(relays, func(r gateways.Relay) bool { return !apisend.Known(r.Type) }) {
				return nil
			}
			return relays
		}
	}
	return nil
}

// Carried returns why relays can't carry a message with this content: one reason for each relay that can't.
// Any relay but an API carries every message. m.Body isn't read.
func Carried(relays []gateways.Relay, m smtpsend.Message, content []byte) []*apisend.Lack {
	var lacks []*apisend.Lack
	for i := range relays {
		if r := &relays[i]; apisend.Known(r.Type) {
			if lack := apisend.Carries(r.API, m, content); lack != nil {
				lacks = append(lacks, lack)
			}
		}
	}
	return lacks
}
