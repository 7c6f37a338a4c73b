package outbox

import (
	"github.com/postroom/postroom/internal/signedtoken"
)

// returnPaths returns the reverse path of a message and, if each of its recipients has their own, a function
// that returns these; then the first is not used. A path of Postroom names message, account and recipient, so
// that bounces come to Postroom.
func (d *Delivery) returnPaths(c *claim) (from string, own func(to string) string) {
	if !c.envelope.Returns || d.Tokens == nil || d.opts.BounceDomain == "" {
		return c.envelope.From, nil
	}
	path := func(to string) string {
		path, err := d.Tokens.ReturnPath(signedtoken.Token{
			MessageID: c.id, Account: c.envelope.Account, Address: to,
		}, d.opts.BounceDomain)
		if err != nil {
			d.log.Error("return path not made; the sender's is used", "message_id", c.id, "error", err)
			return c.envelope.From
		}
		return path
	}
	if len(c.envelope.To) > max(1, d.opts.OwnReturnPaths) {
		return path(""), nil // a bounce to it may have been written by any of them
	}
	return c.envelope.From, path
}
