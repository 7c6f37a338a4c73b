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
	ScopeAPI       Scope = "api"       // everything but tokens and settings
	ScopeSend      Scope = "send"      // submit messages
	ScopeSMTP      Scope = "smtp"      // submit messages over SMTP only
	ScopeOutbox    Scope = "outbox"    // read and change the outbox
	ScopeLists     Scope = "lists"     // lists and their subscribers
	ScopeCampaigns Scope = "campaigns" // campaigns; read lists and segments
	ScopeDigests   Scope = "digests"   // digests; who has send may hand in their events, too
	ScopeMetrics   Scope = "metrics"   // read metrics and stats
	ScopeAdmin     Scope = "admin"     // everything
	ScopeAll       Scope = "*"
)

// RateLimit limits the requests of a token.
type RateLimit struct {
	MaxRequests int `json:"maxRequests" minimum:"1" maximum:"1000000"`
	TimeWindow  int `json:"timeWindow" minimum:"1" maximum:"86400" doc:"Seconds"`
}

// Restrictions limit where and how often a token may be used, and how much may be handed in with it.
type Restrictions struct {
	Addresses           []string    `json:"addresses,omitempty" maxItems:"100" doc:"CIDR ranges or addresses it may be used from"`
	RateLimit           *RateLimit  `json:"rateLimit,omitempty"`
	IdempotencyRequired bool        `json:"idempotencyRequired,omitempty" doc:"A submit without an idempotency key is refused"`
	Quota               *TokenQuota `json:"quota,omitempty" doc:"How much may be handed in with it"`
}

// TokenRequest asks for a new access token.
type TokenRequest struct {
	Account      string        `json:"account,omitempty" maxLength:"256" doc:"Binds the token to this account"`
	Description  string        `json:"description" minLength:"1" maxLength:"1024"`
	Scopes       []Scope       `json:"scopes,omitempty" enum:"api,send,smtp,outbox,lists,campaigns,digests,metrics,admin,*" doc:"api when absent"`
	Expires      *time.Time    `json:"expires,omitempty"`
	Restrictions *Restrictions `json:"restrictions,omitempty"`
}

// TokenCreated contains a new token. No other response does.
type TokenCreated struct {
	Token string `json:"token"`
	ID    string `json:"id"`
}

// TokenRotation asks for a token in place of another.
type TokenRotation struct {
	Overlap *int       `json:"overlap,omitempty" minimum:"0" maximum:"2592000" doc:"Seconds for which the old token still works; 86400 when absent"`
	Expires *time.Time `json:"expires,omitempty" doc:"When the new token ends. When absent, it lives as long as the old one was made for"`
}

// TokenInfo is a token in lists, without the token itself.
type TokenInfo struct {
	ID           string        `json:"id"`
	Account      OrNull        `json:"account" doc:"The account that it is bound to, or null"`
	Description  string        `json:"description"`
	Scopes       []Scope       `json:"scopes"`
	Created      time.Time     `json:"created"`
	Expires      *time.Time    `json:"expires,omitempty"`
	LastUsed     *time.Time    `json:"lastUsed,omitempty" doc:"To the minute"`
	LastUsedFrom string        `json:"lastUsedFrom,omitempty" doc:"Address from which it was first used in that minute"`
	Access       *TokenAccess  `json:"access,omitempty" doc:"lastUsed and lastUsedFrom, as EmailEngine names them; absent until it is used"`
	Replaces     string        `json:"replaces,omitempty" doc:"Id of the token that this one replaced"`
	ReplacedBy   string        `json:"replacedBy,omitempty" doc:"Id of the token that replaced this one, which works until expires"`
	Restrictions *Restrictions `json:"restrictions,omitempty"`
	CountedAs    string        `json:"countedAs,omitempty" doc:"Id of the token whose count of the quota this one continues: the first that was replaced"`
	Refused      string        `json:"refused,omitempty" doc:"Why it does not work: its record in Redis is not as Postroom wrote it. The other fields are what that record claims"`
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
	Account string `query:"account" maxLength:"256" doc:"Only tokens that are bound to this account"`
}

// TokenPage is a page of tokens.
type TokenPage struct {
	Account OrNull `json:"account" doc:"The account that was asked for, or null"`
	PageNumbers
	Tokens []TokenInfo `json:"tokens"`
}

// QuotaID returns the id by which the quota of a token is counted.
func (t TokenInfo) QuotaID() string { return cmp.Or(t.CountedAs, t.ID) }

func (p TokenPage) rows() ([]TokenInfo, string, int) { return p.Tokens, "", p.Pages }
