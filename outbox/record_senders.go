package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/internal/message"
)

// The values of Options.Senders.
const (
	SendersBound = "bound"
	SendersAll   = "all"
	SendersOff   = "off"
)

// confined reports whether a message may only name senders and gateways of its account. bound is true if it
// was submitted, or is changed, with a token that is bound to the account.
func (s *store) confined(bound bool) bool {
	return s.opts.Senders == SendersAll || bound && s.opts.Senders != SendersOff
}

// checkSenders returns Forbidden unless an account may send as everyone whom its envelope and header name.
// from is the return path; if empty, it is the null sender, which every account may use.
func (s *store) checkSenders(account accounts.Sender, from string, composed []byte) error {
	for _, named := range message.Senders(composed) {
		err := account.CheckSender(senderKeys[named.Field], named.Field, named.Address)
		if err := s.metrics.refused(named.Field, err); err != nil {
			return err
		}
	}
	if from == "" {
		return nil
	}
	return s.metrics.refused("envelope", account.CheckSender("envelope.from", "the envelope", from))
}

// named returns the authors and senders that a header names, each once, without from.
func named(from string, composed []byte) []string {
	var all []string
	for _, one := range message.Senders(composed) {
		if one.Address != from && !slices.Contains(all, one.Address) {
			all = append(all, one.Address)
		}
	}
	return all
}

// senderKeys are the request fields for header fields.
var senderKeys = map[string]string{
	"From": "from", "Sender": "headers.Sender", "Resent-From": "headers.Resent-From",
	"Resent-Sender": "headers.Resent-Sender",
}

// checkGateway returns Forbidden unless an account may send through a gateway. An empty gateway is allowed.
func (s *store) checkGateway(account accounts.Sender, gateway string) error {
	return s.metrics.refused("gateway", account.CheckGateway(gateway))
}

// owner returns the owner that a message's signature is for.
func (s *store) owner(account accounts.Sender, bound bool) dkim.Owner {
	return dkim.Owner{Account: account.ID, Key: account.DKIM, Owns: account.Owns, Trusted: !s.confined(bound)}
}

// ownerOf is owner for a message that was accepted. It is empty if nothing is signed.
func (s *store) ownerOf(ctx context.Context, e envelope) (dkim.Owner, error) {
	if s.Signer == nil {
		return dkim.Owner{}, nil
	}
	account, err := s.Accounts.Resolve(ctx, e.Account)
	return s.owner(account, e.Bound), err
}
