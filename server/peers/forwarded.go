package peers

import (
	"net/http"
	"net/netip"
	"strings"
)

const (
	forwardedFor   = "X-Forwarded-For"
	forwardedProto = "X-Forwarded-Proto"
	forwardedBoth  = "Forwarded" // RFC 7239
)

func isForwarded(h http.Header) bool {
	return len(h[forwardedFor]) > 0 || len(h[forwardedProto]) > 0 || len(h[forwardedBoth]) > 0
}

// forwarded returns the client that the headers of a trusted proxy name. The two kinds of chain are not
// mixed: a proxy that writes one passes the other on as the client sent it. X-Forwarded-For goes first,
// because nearly all proxies write it.
func (p *Proxies) forwarded(h http.Header, c Client) Client {
	chain, standard := elements(h[forwardedFor]), false
	if len(chain) == 0 {
		chain, standard = elements(h[forwardedBoth]), true
	}
	for i := len(chain) - 1; i >= 0 && p.trusts(c.Addr); i-- { // each element was written by the proxy c
		if !standard {
			c.Addr = parseNode(chain[i])
			continue
		}
		c.Addr = parseNode(parameter(chain[i], "for"))
		if proto := parameter(chain[i], "proto"); proto != "" {
			c.TLS = isHTTPS(proto)
		}
	}
	if proto := elements(h[forwardedProto]); len(proto) > 0 {
		c.TLS = isHTTPS(proto[len(proto)-1]) // the nearest proxy's
	}
	return c
}

// elements returns the elements of a header, which may be in several lines. It cuts at each comma, including
// commas in quotes: trusted proxies write none there, and a quote that a client leaves open must not swallow
// what they append. Empty elements count for nothing (RFC 9110 section 5.6.1).
func elements(lines []string) (out []string) {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if element = strings.TrimSpace(element); element != "" {
				out = append(out, element)
			}
		}
	}
	return out
}

// parameter returns a parameter of an element of Forwarded; empty if there is none.
func parameter(element, name string) string {
	for pair := range strings.SplitSeq(element, ";") {
		key, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// parseNode returns the address of a node: an IP address, perhaps in quotes, IPv6 perhaps in brackets,
// perhaps with a port. Names such as "unknown" and "_hidden", and anything else, are invalid.
func parseNode(node string) netip.Addr {
	node = strings.Trim(node, `"`)
	if inside, ok := strings.CutPrefix(node, "["); ok {
		node, _, _ = strings.Cut(inside, "]")
	} else if strings.Count(node, ":") == 1 {
		node, _, _ = strings.Cut(node, ":")
	}
	addr, _ := netip.ParseAddr(node)
	return addr.Unmap().WithZone("")
}

func isHTTPS(proto string) bool { return strings.EqualFold(strings.Trim(proto, `"`), "https") }
