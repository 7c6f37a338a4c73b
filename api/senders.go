package api

import "time"

// The statuses of a sender on the record of an account.
const (
	SenderOwn      = "own"      // the account's address, or the domain of it
	SenderSet      = "set"      // by who may change accounts
	SenderVerified = "verified" // by a DNS record
	SenderPending  = "pending"  // it may not be used yet
)

// SenderRight is an address or a domain that an account may send as.
type SenderRight struct {
	Sender string     `json:"sender" minLength:"1" maxLength:"320" doc:"An address, or a domain with all its addresses. Subdomains are domains of their own"`
	Status string     `json:"status,omitempty" enum:"set,verified,pending" doc:"How it came to be the account's: set when absent. A pending one may not be used yet"`
	Since  *time.Time `json:"since,omitempty" doc:"When it got this status"`
}

// NewSender adds a sender to the record of an account.
type NewSender struct {
	Sender string `json:"sender" minLength:"1" maxLength:"320" doc:"An address, or a domain with all its addresses"`
	Verify bool   `json:"verify,omitempty" doc:"It may not be used until it is verified; so it is with a token that is bound to the account"`
}

// SenderDNS is the TXT record that verifies a domain.
type SenderDNS struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SenderInfo is a sender of an account, as in responses.
type SenderInfo struct {
	Sender string     `json:"sender"`
	Status string     `json:"status" enum:"own,set,verified,pending" doc:"own: it follows from the account's address. A pending one may not be used yet"`
	Since  *time.Time `json:"since,omitempty" doc:"When it got this status"`
	DNS    *SenderDNS `json:"dns,omitempty" doc:"The TXT record that verifies a pending one"`
}

// Senders are the addresses and domains that an account may send as.
type Senders struct {
	Account string       `json:"account"`
	Senders []SenderInfo `json:"senders"`
}
