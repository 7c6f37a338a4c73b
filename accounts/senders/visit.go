package senders

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
)

// Visit is somebody who followed the link of an email.
type Visit struct {
	Account string // id of the account that asked
	Name    string // its name and id, to show
	Address string // that it wants to send as
	Asked   time.Time
}

// Read returns the visit of a link. It changes nothing. NotFound, code UnknownLink: it is forged or cut.
// NotFound, code LinkOver: it is too old, or the account does not ask any more.
func (p *Proofs) Read(ctx context.Context, token string) (Visit, error) {
	t, err := p.Tokens.Read(signedtoken.Sender, token)
	if err != nil {
		p.metrics.links.WithLabelValues("forged").Inc()
		return Visit{}, fault.Wrap(err, fault.NotFound, "UnknownLink", "This link is invalid. Copy the "+
			"whole link from the email")
	}
	v := Visit{Account: t.Account, Address: t.Address, Asked: t.Time()}
	if p.now().After(v.Asked.Add(Lifetime)) {
		return v, p.over()
	}
	found, err := p.Accounts.Get(ctx, v.Account)
	switch {
	case fault.Is(err, fault.NotFound):
		return v, p.over()
	case err != nil:
		return v, err
	}
	v.Name = named(found.Account)
	for _, right := range found.Senders {
		if right.Sender == v.Address && (right.Since == nil || !v.Asked.Before(*right.Since) ||
			right.Status != api.SenderPending) {
			return v, nil
		}
	}
	return v, p.over()
}

// Prove makes the address of a visit a sender of its account. A repetition changes nothing. NotFound, code
// LinkOver: the account does not ask any more.
func (p *Proofs) Prove(ctx context.Context, v Visit) (api.SenderInfo, error) {
	info, changed, err := p.Accounts.ProveSender(ctx, v.Account, v.Address, v.Asked)
	switch {
	case fault.Is(err, fault.NotFound):
		return info, p.over()
	case err != nil:
		return info, err
	case changed:
		p.metrics.links.WithLabelValues("verified").Inc()
		p.log.InfoContext(ctx, "sender verified by mail", "account", v.Account)
	default:
		p.metrics.links.WithLabelValues("repeated").Inc()
	}
	return info, nil
}

func (p *Proofs) over() error {
	p.metrics.links.WithLabelValues("old").Inc()
	return fault.New(fault.NotFound, "LinkOver", "This link has expired, or the account withdrew its request")
}
