package api

import (
	"cmp"
	"encoding/json"
	"time"
)

// Scope is a permission of an access token.
type Scope string

// The scopes. Admin includes all; "*" is its other name.
const (
	ScopeAPI       Scope = "api"       // everything except tokens and settings
	ScopeSend      Scope = "send"      // submit messages
	ScopeSMTP      Scope = "smtp"      // submit messages over SMTP only
	ScopeOutbox    Scope = "outbox"    // read and change the outbox
	ScopeLists     Scope = "lists"     // lists and their subscribers
	ScopeCampaigns Scope = "campaigns" // campaigns; read lists and segments
	ScopeDigests   Scope = "digests"   // digests; the scope send is enough to submit events
	ScopeMetrics   Scope = "metrics"   // read metrics and stats
	ScopeAdmin     Scope = "admin"     // everything
	ScopeAll       Scope = "*"
)

// RateLimit limits the requests of a token.
type RateLimit struct {
	MaxRequests int `json:"maxRequests" minimum:"1" maximum:"1000000"`
	TimeWindow  int `json:"timeWindow" minimum:"1" maximum:"86400" doc:"Length of the window in seconds"`
}

// Restrictions limit where and how often a token may be used, and how much may be submitted with it.
type Restrictions struct {
	Addresses           []string    `json:"addresses,omitempty" maxItems:"100" doc:"IP addresses or CIDR ranges from which the token may be used"`
	RateLimit           *RateLimit  `json:"rateLimit,omitempty"`
	IdempotencyRequired bool        `json:"idempotencyRequired,omitempty" doc:"Whether to refuse a submit without an idempotency key"`
	Quota               *TokenQuota `json:"quota,omitempty" doc:"Limits for messages submitted with the token"`
}

// TokenRequest asks for a new access token.
type TokenRequest struct {
	Account      string        `json:"account,omitempty" maxLength:"256" doc:"Account to bind the token to"`
	Description  string        `json:"description" minLength:"1" maxLength:"1024"`
	Scopes       []Scope       `json:"scopes,omitempty" enum:"api,send,smtp,outbox,lists,campaigns,digests,metrics,admin,*" doc:"Scopes. Defaults to api"`
	Expires      *time.Time    `json:"expires,omitempty"`
	Restrictions *Restrictions `json:"restrictions,omitempty"`
}

// TokenCreated contains a new token. No other response does.
type TokenCreated struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}

// TokenRotation replaces a token.
type TokenRotation struct {
	Overlap *int       `json:"overlap,omitempty" minimum:"0" maximum:"2592000" doc:"Seconds for which the old token still works. Defaults to 86400"`
	Expires *time.Time `json:"expires,omitempty" doc:"When the new token expires. Defaults to the old token's original lifetime"`
}

// TokenInfo is a token in lists, without the token itself.
type TokenInfo struct {
	ID           string        `json:"id"`
	Account      OrNull        `json:"account" doc:"Account that it is bound to, or null"`
	Description  string        `json:"description"`
	Scopes       []Scope       `json:"scopes"`
	Created      time.Time     `json:"created"`
	Expires      *time.Time    `json:"expires,omitempty"`
	LastUsed     *time.Time    `json:"lastUsed,omitempty" doc:"Time of the last use, to the minute"`
	LastUsedFrom string        `json:"lastUsedFrom,omitempty" doc:"Address of the first use in that minute"`
	Access       *TokenAccess  `json:"access,omitempty" doc:"lastUsed and lastUsedFrom under EmailEngine's names. Absent until the token is used"`
	Replaces     string        `json:"replaces,omitempty" doc:"ID of the token that this one replaced"`
	ReplacedBy   string        `json:"replacedBy,omitempty" doc:"ID of the token that replaced this one. This one works until expires"`
	Restrictions *Restrictions `json:"restrictions,omitempty"`
	CountedAs    string        `json:"countedAs,omitempty" doc:"ID of the first token in a series of replacements, whose quota count this one continues"`
	Refused      string        `json:"refused,omitempty" doc:"Why it doesn't work: its record in Redis was modified outside Postroom. The other fields show that record"`
}

// TokenAccess is the last use of a token.
type TokenAccess struct {
	Time time.Time `json:"time"`
	IP   string    `json:"ip"`
}

// OrNull is a text that is null in JSON if it is empty.
type OrNull string

// MarshalJSON returns the text, or null.
func (o OrNull) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(o))
}

// TokenQuery selects tokens.
type TokenQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Filter by account that the token is bound to"`
}

// TokenPage is a page of tokens.
type TokenPage struct {
	Account OrNull `json:"account" doc:"The requested account, or null"`
	PageNumbers
	Tokens []TokenInfo `json:"tokens"`
}

// QuotaID returns the ID that the token's quota counts by.
func (t TokenInfo) QuotaID() string { return cmp.Or(t.CountedAs, t.ID) }

func (p TokenPage) rows() ([]TokenInfo, string, int) { return p.Tokens, "", p.Pages }
