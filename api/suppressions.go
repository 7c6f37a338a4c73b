package api

import "time"

// SuppressionScope is the mail that a suppression stops. With neither field it is that of the whole instance.
type SuppressionScope struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Mail of this account only"`
	List    string `json:"list,omitempty" maxLength:"256" doc:"Mail of this list of the account only (its listId). Each account has its own lists"`
}

// Suppression is a reason not to mail an address, or all addresses of a domain.
type Suppression struct {
	Email  string `json:"email,omitempty" doc:"The address, in the form it is compared by; absent: see domain"`
	Domain string `json:"domain,omitempty" doc:"All addresses of this domain, not those of its subdomains"`
	Reason string `json:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual,erased"`
	SuppressionScope
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty" doc:"From when on it no longer holds; absent: never"`
	Expired   bool       `json:"expired,omitempty" doc:"It no longer holds, and will be swept away"`
	Source    string     `json:"source,omitempty" doc:"Source: api, csv, page, smtp, bounce, unsubscribe, a provider, …"`
	MessageID string     `json:"queueId,omitempty" doc:"Evidence: the message that brought it about"`
	Response  string     `json:"response,omitempty" doc:"Evidence: the reply, or words of whoever added it"`

	RemoteAddress string `json:"remoteAddress,omitempty" doc:"Of whoever asked, as far as tracking.storeAddress keeps it"`
	UserAgent     string `json:"userAgent,omitempty" doc:"Of whoever asked"`
}

// SuppressionQuery selects suppressions. The zero value selects the first page of all.
type SuppressionQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Of this account"`
	List    string `query:"list" maxLength:"256" doc:"Of this list of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Only those with this reason"`
	Scope   string `query:"scope" enum:"instance" doc:"instance: only those of the whole instance, without those of accounts and lists"`
	Address string `query:"address" maxLength:"512" doc:"Only those of exactly this address"`
	Domain  string `query:"domain" maxLength:"256" doc:"Only those of this domain and of its addresses. All entries are read for it: see cursor" help:"Only those of this domain and of its addresses. All entries are read for it"`
	CursorQuery
}

// SuppressionPage is a page of suppressions.
type SuppressionPage struct {
	Total        int           `json:"total" doc:"Entries of the scope and the reason, with any address, including those that expired lately"`
	Cursor       string        `json:"cursor,omitempty" doc:"Requests the next rows; absent on the last page. A page may have fewer rows than requested, even none, although more follow"`
	Suppressions []Suppression `json:"suppressions"`
}

func (p SuppressionPage) rows() ([]Suppression, string, int) { return p.Suppressions, p.Cursor, 0 }

// SuppressionCheck asks for all suppressions of an address.
type SuppressionCheck struct {
	Email string `query:"email" maxLength:"512" doc:"The address"`
}

// SuppressionFound is all suppressions that stop mail to an address, or might, in any scope.
type SuppressionFound struct {
	Email        string        `json:"email" doc:"The address, in the form it is compared by"`
	Suppressions []Suppression `json:"suppressions" doc:"Its own and those of its domain, the strongest reason first"`
}

// ProviderImportStart starts an import of the suppression list of a gateway's provider.
type ProviderImportStart struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account whose mail the entries stop. Defaults to all accounts"`
}

// ProviderImport is the progress of an import of a provider's suppression list.
type ProviderImport struct {
	Gateway string     `json:"gateway"`
	Account string     `json:"account,omitempty" doc:"Account whose mail the entries stop; absent: all accounts"`
	State   string     `json:"state" enum:"running,done,failed"`
	Read    int        `json:"read" doc:"Entries read from the provider's list"`
	Added   int        `json:"added" doc:"Suppressions that are new"`
	Updated int        `json:"updated" doc:"Addresses that were suppressed already; such an entry may only last longer"`
	Skipped int        `json:"skipped" doc:"Entries that stop only some mail at the provider, such as that of one tag"`
	Failed  int        `json:"failed" doc:"Entries that aren't addresses"`
	Left    int        `json:"left" doc:"Addresses that the last import found on the list and this one didn't. Their suppressions stay"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Error   string     `json:"error,omitempty" doc:"Why it failed and what to do, or why it waits while it is running"`
	Note    string     `json:"note,omitempty" doc:"What the provider's list lacks"`
}

// NewSuppression is a suppression to add.
type NewSuppression struct {
	Email  string `json:"email,omitempty" maxLength:"512" doc:"An address; either this or domain"`
	Domain string `json:"domain,omitempty" maxLength:"256" doc:"All addresses of this domain, not those of its subdomains"`
	Reason string `json:"reason,omitempty" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"manual when absent. An unsubscribe stops bulk mail, and mail of lists; the others stop every mail"`
	SuppressionScope
	Expires   *time.Time `json:"expires,omitempty" doc:"From when on it no longer holds; absent: never"`
	Source    string     `json:"source,omitempty" maxLength:"20" doc:"Your source; api when absent. Letters, digits, - and _"`
	MessageID string     `json:"queueId,omitempty" maxLength:"200" doc:"Evidence: the message that brought it about"`
	Response  string     `json:"response,omitempty" maxLength:"2000" doc:"Evidence: any words; cut to 500 bytes"`
}

// SuppressionRequest adds one suppression, given in its own fields, or up to 1,000.
type SuppressionRequest struct {
	NewSuppression
	Suppressions []NewSuppression `json:"suppressions,omitempty" minItems:"1" maxItems:"1000" doc:"Several, in place of the other fields"`
}

// SuppressionsAdded is the result of adding suppressions.
type SuppressionsAdded struct {
	Success bool `json:"success"`
	Added   int  `json:"added" doc:"Those that did not hold before"`
	Known   int  `json:"known" doc:"Those that did; they last for the longer of both times"`
}

// SuppressionRemoval selects the suppressions of an address or a domain in one scope.
type SuppressionRemoval struct {
	Account string `query:"account" maxLength:"256" doc:"Of this account"`
	List    string `query:"list" maxLength:"256" doc:"Of this list of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Only those with this reason"`
	Email   string `query:"email" maxLength:"512" doc:"The address; either this or domain"`
	Domain  string `query:"domain" maxLength:"256" doc:"The domain: its own entry, not those of its addresses"`
}

// SuppressionRemoved reports whether a suppression was removed.
type SuppressionRemoved struct {
	Deleted   bool                   `json:"deleted"`
	Elsewhere []SuppressionElsewhere `json:"elsewhere,omitempty" doc:"If none was deleted with a token that isn't bound to an account: where there are others that GET /v1/suppressions/check shows"`
}

// SuppressionElsewhere is a suppression in another scope than the one asked for.
type SuppressionElsewhere struct {
	SuppressionScope
	Query string `json:"query" doc:"The query of DELETE that deletes it"`
}

// SuppressionImportOptions are the options of an import.
type SuppressionImportOptions struct {
	Account string `query:"account" maxLength:"256" doc:"Of this account"`
	List    string `query:"list" maxLength:"256" doc:"Of this list of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Only those with this reason"`
	ID      string `query:"id" pattern:"^[A-Za-z0-9_-]{8,64}$" doc:"An id that you choose, for reading the progress during the upload"`
	Source  string `query:"source" maxLength:"20" doc:"Source of lines without one; csv when absent"`
	Size    int64  // bytes of the file, if the server knows them; it sets this
}

// SuppressionImport is the progress of an import.
type SuppressionImport struct {
	ID      string    `json:"id"`
	State   string    `json:"state" enum:"running,done,interrupted" doc:"interrupted: the file, Redis or this process broke off. What was read by then is in place; import the file again for the rest, what is there already does no harm"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Bytes   int64     `json:"bytes" doc:"Read so far"`
	Lines   int       `json:"lines" doc:"Read so far, empty ones and the headings left out"`
	Added   int       `json:"added" doc:"Entries that did not hold before"`
	Known   int       `json:"known" doc:"Entries that did; they last for the longer of both times"`
	Bad     int       `json:"bad" doc:"Lines that could not be read"`
	Errors  []BadLine `json:"errors" doc:"The first 100 of them"`
	Error   string    `json:"error,omitempty" doc:"Why it was interrupted"`
}

// BadLine is a skipped line of a file.
type BadLine struct {
	Line   int    `json:"line" doc:"Its number, from 1"`
	Reason string `json:"reason"`
}

// Blocklists are the lists that have suppressions.
type Blocklists struct {
	PageNumbers
	Blocklists []Blocklist `json:"blocklists"`
}

func (b Blocklists) rows() ([]Blocklist, string, int) { return b.Blocklists, "", b.Pages }

// Blocklist counts the suppressions of a list.
type Blocklist struct {
	ListID  string `json:"listId"`
	Account string `json:"account" doc:"Whose list it is. Lists of several accounts may have one id"`
	Count   int    `json:"count"`
}

// BlocklistQuery is a PageQuery of one account's list; without an account, of the lists of this id of all.
type BlocklistQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Whose list it is. Without it, that of any account; an entry is removed only if no second account has such a list with this recipient"`
	PageQuery
}

// BlocklistPage is a page of the suppressions of a list.
type BlocklistPage struct {
	ListID string `json:"listId"`
	PageNumbers
	Addresses []BlocklistAddress `json:"addresses"`
}

func (p BlocklistPage) rows() ([]BlocklistAddress, string, int) { return p.Addresses, "", p.Pages }

// BlocklistRemoval removes an address from a list's suppressions.
type BlocklistRemoval struct {
	Account   string `query:"account" maxLength:"256" doc:"Whose list it is. Without it, that of any account; an entry is removed only if no second account has such a list with this recipient"`
	Recipient string `query:"recipient" maxLength:"512" doc:"The address; for a domain, @ and its name"`
}

// BlocklistAddress is an address that gets no mail of a list.
type BlocklistAddress struct {
	Recipient string     `json:"recipient" doc:"The address; of a domain, @ and its name"`
	Source    string     `json:"source,omitempty"`
	Reason    string     `json:"reason" doc:"unsubscribe, hard_bounce, spam_report, or what was given as the reason"`
	MessageID string     `json:"queueId,omitempty" doc:"The message that brought it about"`
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty"`

	Account       string `json:"account" doc:"Whose list it is"`
	RemoteAddress string `json:"remoteAddress,omitempty" doc:"Of whoever asked, as far as tracking.storeAddress keeps it"`
	UserAgent     string `json:"userAgent,omitempty" doc:"Of whoever asked"`
}

// BlocklistRequest adds an address to a list's suppressions.
type BlocklistRequest struct {
	Account   string `json:"account,omitempty" maxLength:"256" doc:"Whose list it is: required, unless the token is bound to an account"`
	Recipient string `json:"recipient" maxLength:"512" doc:"The address"`
	Reason    string `json:"reason,omitempty" maxLength:"500" doc:"unsubscribe, hard_bounce, spam_report, or any other words, which stop every mail of the list; block when absent"`
}

// BlocklistAdded reports whether the address is new on the list.
type BlocklistAdded struct {
	Success bool `json:"success"`
	Added   bool `json:"added"`
}
