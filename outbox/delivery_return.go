package outbox

import (
	"github.com/postroom/postroom/internal/signedtoken"
)

// returnPaths returns the address for bounces from each recipient. It names message, account and recipient.
// It is nil if the sender gave another address, and if all recipients share one: then From is used.
func (d *Delivery) returnPaths(c *claim) func(to string) string {
	if !d.returns(c) || d.sharesPath(c) {
		return nil
	}
	return func(to string) string { return d.returnPath(c, to) }
}

// reversePath is the reverse path of a message whose recipients share it.
func (d *Delivery) reversePath(c *claim) string {
	if !d.returns(c) || !d.sharesPath(c) {
		return c.envelope.From
	}
	return d.returnPath(c, "")
}

// returns reports whether bounces of a message come to Postroom.
func (d *Delivery) returns(c *claim) bool {
	return c.envelope.Returns && d.Tokens != nil && d.opts.BounceDomain != ""
}

// sharesPath reports whether the recipients of a message share a return path. A bounce to it may have been
// written by any of them.
func (d *Delivery) sharesPath(c *claim) bool {
	return len(c.envelope.To) > max(1, d.opts.OwnReturnPaths)
}

// returnPath is the address for bounces of a message from a recipient, or from any if to is empty.
func (d *Delivery) returnPath(c *claim, to string) string {
	path, err := d.Tokens.ReturnPath(signedtoken.Token{
		MessageID: c.id, Account: c.envelope.Account, Address: to,
	}, d.opts.BounceDomain)
	if err != nil {
		d.log.Error("return path not made; the sender's is used", "message_id", c.id, "error", err)
		return c.envelope.From
	}
	return path
}
