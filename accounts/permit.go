package accounts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// permit sets what an account may send as: its address, its own domain unless addressOnly, and the senders on
// record that are not pending.
func (s *Sender) permit(account api.Account, addressOnly bool) {
	s.permitOne(account.Email)
	if !addressOnly {
		for _, own := range s.Addresses {
			s.permitOne(domainOf(own))
		}
	}
	for _, right := range account.Senders {
		if right.Status != api.SenderPending {
			s.permitOne(right.Sender)
		}
	}
}

// permitOne adds an address or a domain.
func (s *Sender) permitOne(sender string) {
	if !strings.Contains(sender, "@") {
		s.Domains = append(s.Domains, strings.ToLower(sender))
	} else if normal, err := message.NormalizeAddress(sender); err == nil {
		s.Addresses = append(s.Addresses, strings.ToLower(normal))
	}
}

// domainOf returns the part of an address behind its last @.
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// MaySendAs reports whether an address is among the senders of the account, or its domain is.
func (s Sender) MaySendAs(address string) bool {
	normal, err := message.NormalizeAddress(address)
	if err != nil {
		return false
	}
	normal = strings.ToLower(normal)
	return slices.Contains(s.Addresses, normal) || s.Owns(domainOf(normal))
}

// Owns reports whether a whole domain is among the senders of the account.
func (s Sender) Owns(domain string) bool {
	return slices.Contains(s.Domains, strings.ToLower(domain))
}

// CheckSender returns Forbidden, code SenderNotAllowed, unless the account may send as an address. key is the
// request field that names the address, what describes it in the error.
func (s Sender) CheckSender(key, what, address string) error {
	if s.MaySendAs(address) {
		return nil
	}
	domain := cmp.Or(domainOf(address), "which can't be read")
	f := fault.New(fault.Forbidden, "SenderNotAllowed",
		"Account %q may not send as the address in %s (%s). Use one of its senders, or add this one with "+
			"POST /v1/account/%s/senders", s.ID, what, domain, s.ID)
	f.Fields = []fault.Field{{Key: key, Message: "isn't a sender of account " + s.ID}}
	return f
}

// CheckGateway returns Forbidden, code GatewayNotAllowed, unless a gateway is in the account's list. An empty
// gateway is allowed.
func (s Sender) CheckGateway(gateway string) error {
	if gateway == "" || slices.ContainsFunc(s.Gateways, func(r api.Route) bool { return r.Gateway == gateway }) {
		return nil
	}
	f := fault.New(fault.Forbidden, "GatewayNotAllowed",
		"Account %q may not use this gateway. Use one in its list, leave it out, or add it to the list "+
			"with PUT /v1/account/%s", s.ID, s.ID)
	f.Fields = []fault.Field{{Key: "gateway", Message: "isn't a gateway of account " + s.ID}}
	return f
}
