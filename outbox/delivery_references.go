package outbox

import (
	"net"
	"slices"
	"strings"

	"github.com/postroom/postroom/provider"
)

// references returns the references of a message that a relay accepted (see Lookup), as finish.lua takes them.
func (d *Delivery) references(c *claim, dec decision) string {
	if d.opts.KeepReferences == 0 || len(dec.sent) == 0 {
		return ""
	}
	var names []string
	if _, ours := MessageOf(c.envelope.MessageID); !ours {
		names = append(names, referenceHash(c.envelope.MessageID))
	}
	host, _, err := net.SplitHostPort(dec.host)
	if err != nil {
		host = dec.host
	}
	if n, known := provider.OfRelay(host); known {
		for _, i := range dec.sent {
			reference := provider.Reference(n, provider.AnsweredID(n, dec.status.Recipients[i].Response))
			if hash := referenceHash(reference); reference != "" && !slices.Contains(names, hash) {
				names = append(names, hash)
			}
		}
	}
	return strings.Join(names, " ")
}
