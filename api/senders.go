package api

import "time"

// The statuses of a sender on the record of an account.
const (
	SenderOwn      = "own"      // the account's address, or the domain of it
	SenderSet      = "set"      // set with a token that may change accounts
	SenderVerified = "verified" // by a DNS record or an email
	SenderPending  = "pending"  // it may not be used yet
)

// SenderRight is an address or a domain that an account may send as.
type SenderRight struct {
	Sender string     `json:"sender" minLength:"1" maxLength:"320" doc:"An address, or a domain with all its addresses. Subdomains are separate domains"`
	Status string     `json:"status,omitempty" enum:"set,verified,pending" doc:"Status. Defaults to set. The account can't send as a pending sender yet"`
	Since  *time.Time `json:"since,omitempty" doc:"When it got this status"`
	By     string     `json:"by,omitempty" enum:"dns,mail" doc:"How it was verified: with a DNS record, or with the link in an email to the address"`
}

// How a sender was verified.
const (
	SenderByDNS  = "dns"
	SenderByMail = "mail"
)

// NewSender adds a sender to the record of an account.
type NewSender struct {
	Sender string `json:"sender" minLength:"1" maxLength:"320" doc:"An address, or a domain with all its addresses"`
	Verify bool   `json:"verify,omitempty" doc:"Whether the sender must be verified first. Always true with a token that is bound to the account"`
}

// SenderDNS is the TXT record that verifies a domain.
type SenderDNS struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SenderInfo is a sender of an account, as in responses.
type SenderInfo struct {
	Sender string     `json:"sender"`
	Status string     `json:"status" enum:"own,set,verified,pending" doc:"Status. own follows from the account's address. The account can't send as a pending sender yet"`
	Since  *time.Time `json:"since,omitempty" doc:"When it got this status"`
	By     string     `json:"by,omitempty" enum:"dns,mail" doc:"How it was verified: with a DNS record, or with the link in an email to the address"`
	DNS    *SenderDNS `json:"dns,omitempty" doc:"TXT record that verifies a pending domain"`
	// only in the answer to a request for a mail
	Mail *SenderMail `json:"mail,omitempty" doc:"Verification email to a pending address. Absent if none was needed"`
}

// SenderMail is an email with a link that verifies an address.
type SenderMail struct {
	Asked   time.Time `json:"asked" doc:"When it was requested"`
	Expires time.Time `json:"expires" doc:"When its link expires"`
}

// Senders are the addresses and domains that an account may send as.
type Senders struct {
	Account string       `json:"account"`
	Senders []SenderInfo `json:"senders"`
}
