package api

import "time"

// SuppressionScope limits a suppression to messages of an account or list. The zero scope is the whole
// instance.
type SuppressionScope struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account whose messages are stopped. Without it, the suppression applies to the whole instance"`
	List    string `json:"list,omitempty" maxLength:"256" doc:"listId of the account's list whose messages are stopped"`
}

// Suppression is a reason not to send to an address or a domain.
type Suppression struct {
	Email  string `json:"email,omitempty" doc:"Address in its normalized form. Absent if domain is set"`
	Domain string `json:"domain,omitempty" doc:"Domain whose addresses are suppressed, without its subdomains"`
	Reason string `json:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual,erased"`
	SuppressionScope
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty" doc:"When the suppression expires. Absent if it never does"`
	Expired   bool       `json:"expired,omitempty" doc:"Whether it has expired. Postroom will delete it"`
	Source    string     `json:"source,omitempty" doc:"Source: api, csv, page, smtp, bounce, unsubscribe, a provider, …"`
	MessageID string     `json:"queueId,omitempty" doc:"Evidence: the message that caused it"`
	Response  string     `json:"response,omitempty" doc:"Evidence: reply of a server, or the text of the request that added it"`

	RemoteAddress string `json:"remoteAddress,omitempty" doc:"IP address of the client that made the request, shortened as tracking.storeAddress requires"`
	UserAgent     string `json:"userAgent,omitempty" doc:"User agent of the client that made the request"`
}

// SuppressionQuery selects suppressions. The zero value selects the first page of all.
type SuppressionQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Filter by account"`
	List    string `query:"list" maxLength:"256" doc:"Filter by list of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Filter by reason"`
	Scope   string `query:"scope" enum:"instance" doc:"Set to instance to get only suppressions for the whole instance"`
	Address string `query:"address" maxLength:"512" doc:"Filter by exact address"`
	Domain  string `query:"domain" maxLength:"256" doc:"Filter by domain, including its addresses. This reads all entries, so pages can be short or empty: see cursor" help:"Filter by domain, including its addresses. This reads all entries"`
	CursorQuery
}

// SuppressionPage is a page of suppressions.
type SuppressionPage struct {
	Total        int           `json:"total" doc:"Number of entries with this scope and reason, for any address, including recently expired ones"`
	Cursor       string        `json:"cursor,omitempty" doc:"Cursor for the next rows. Absent on the last page. A page can have fewer rows than requested, or none, although more follow"`
	Suppressions []Suppression `json:"suppressions"`
}

func (p SuppressionPage) rows() ([]Suppression, string, int) { return p.Suppressions, p.Cursor, 0 }

// SuppressionCheck asks for all suppressions of an address.
type SuppressionCheck struct {
	Email string `query:"email" maxLength:"512" doc:"Address to check"`
}

// SuppressionFound lists all suppressions of an address, in any scope.
type SuppressionFound struct {
	Email        string        `json:"email" doc:"Address in its normalized form. Absent if domain is set"`
	Suppressions []Suppression `json:"suppressions" doc:"Suppressions of the address and its domain, strongest reason first"`
}

// ProviderImportStart starts importing the suppression list of a gateway's provider.
type ProviderImportStart struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account whose messages the entries stop. Defaults to all accounts"`
}

// ProviderImport is the progress of importing a provider's suppression list.
type ProviderImport struct {
	Gateway string     `json:"gateway"`
	Account string     `json:"account,omitempty" doc:"Account whose messages the entries stop. Absent for all accounts"`
	State   string     `json:"state" enum:"running,done,failed"`
	Read    int        `json:"read" doc:"Entries read from the provider's list"`
	Added   int        `json:"added" doc:"New suppressions"`
	Updated int        `json:"updated" doc:"Addresses that were already suppressed. The import can only extend their expiry"`
	Skipped int        `json:"skipped" doc:"Entries that stop only some messages at the provider, for example those with one tag"`
	Failed  int        `json:"failed" doc:"Entries that aren't addresses"`
	Left    int        `json:"left" doc:"Addresses that were on the list in the previous import and no longer are. Their suppressions stay"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Error   string     `json:"error,omitempty" doc:"Why it failed and what to do. While it is running, why it waits"`
	Note    string     `json:"note,omitempty" doc:"Limitations of the provider's list"`
}

// NewSuppression is a suppression to add.
type NewSuppression struct {
	Email  string `json:"email,omitempty" maxLength:"512" doc:"Address. Set either this or domain"`
	Domain string `json:"domain,omitempty" maxLength:"256" doc:"Domain whose addresses are suppressed, without its subdomains"`
	Reason string `json:"reason,omitempty" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Reason. Defaults to manual. An unsubscribe stops bulk messages and messages of lists; the other reasons stop all messages"`
	SuppressionScope
	Expires   *time.Time `json:"expires,omitempty" doc:"When the suppression expires. Absent if it never does"`
	Source    string     `json:"source,omitempty" maxLength:"20" doc:"Source: letters, digits, - and _. Defaults to api"`
	MessageID string     `json:"queueId,omitempty" maxLength:"200" doc:"Evidence: the message that caused it"`
	Response  string     `json:"response,omitempty" maxLength:"2000" doc:"Evidence: any text, cut to 500 bytes"`
}

// SuppressionRequest adds one suppression, given in its own fields, or up to 1,000.
type SuppressionRequest struct {
	NewSuppression
	Suppressions []NewSuppression `json:"suppressions,omitempty" minItems:"1" maxItems:"1000" doc:"Several suppressions, instead of the other fields"`
}

// SuppressionsAdded is the result of adding suppressions.
type SuppressionsAdded struct {
	Success bool `json:"success"`
	Added   int  `json:"added" doc:"New suppressions"`
	Known   int  `json:"known" doc:"Existing suppressions. They expire at the later of both times"`
}

// SuppressionRemoval selects the suppressions of an address or a domain in one scope.
type SuppressionRemoval struct {
	Account string `query:"account" maxLength:"256" doc:"Account whose suppressions to remove. Defaults to the token's account, or to the whole instance"`
	List    string `query:"list" maxLength:"256" doc:"List of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Remove only suppressions with this reason"`
	Email   string `query:"email" maxLength:"512" doc:"Address. Set either this or domain"`
	Domain  string `query:"domain" maxLength:"256" doc:"Domain. This removes the domain's own entry, not the entries of its addresses"`
}

// SuppressionRemoved reports whether a suppression was removed.
type SuppressionRemoved struct {
	Deleted   bool                   `json:"deleted"`
	Elsewhere []SuppressionElsewhere `json:"elsewhere,omitempty" doc:"If nothing was deleted: other suppressions that match, as in GET /v1/suppressions/check. Absent for a token bound to an account"`
}

// SuppressionElsewhere is a suppression in another scope than the requested one.
type SuppressionElsewhere struct {
	SuppressionScope
	Query string `json:"query" doc:"Query string for the DELETE request that deletes it"`
}

// SuppressionImportOptions are the options of an import.
type SuppressionImportOptions struct {
	Account string `query:"account" maxLength:"256" doc:"Account for which to import suppressions. Defaults to the token's account, or to the whole instance"`
	List    string `query:"list" maxLength:"256" doc:"List of the account"`
	Reason  string `query:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual" doc:"Reason of lines without one"`
	ID      string `query:"id" pattern:"^[A-Za-z0-9_-]{8,64}$" doc:"ID that you choose, so that you can read the progress during the upload"`
	Source  string `query:"source" maxLength:"20" doc:"Source of lines without one. Defaults to csv"`
	Size    int64  // bytes of the file, if the server knows them; it sets this
}

// SuppressionImport is the progress of an import.
type SuppressionImport struct {
	ID      string    `json:"id"`
	State   string    `json:"state" enum:"running,done,interrupted" doc:"State of the import. It is interrupted if the upload, Redis or this process failed. Lines read until then are stored. Import the file again for the rest; repeated lines do no harm"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Bytes   int64     `json:"bytes" doc:"Bytes read so far"`
	Lines   int       `json:"lines" doc:"Lines read so far, without empty lines and headings"`
	Added   int       `json:"added" doc:"New entries"`
	Known   int       `json:"known" doc:"Existing entries. They expire at the later of both times"`
	Bad     int       `json:"bad" doc:"Invalid lines"`
	Errors  []BadLine `json:"errors" doc:"Errors in the first 100 invalid lines"`
	Error   string    `json:"error,omitempty" doc:"Why it was interrupted"`
}

// BadLine is a skipped line of a file.
type BadLine struct {
	Line   int    `json:"line" doc:"Number of the line, starting at 1"`
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
	Account string `json:"account" doc:"Account of the list. Lists of several accounts can have the same ID"`
	Count   int    `json:"count"`
}

// BlocklistQuery is a PageQuery for an account's list, or for all accounts' lists with the same ID.
type BlocklistQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Account of the list. Defaults to any account. An entry isn't removed if a second account has a list with this ID and recipient"`
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
	Account   string `query:"account" maxLength:"256" doc:"Account of the list. Defaults to any account. An entry isn't removed if a second account has a list with this ID and recipient"`
	Recipient string `query:"recipient" maxLength:"512" doc:"The address, or @ and the name of a domain"`
}

// BlocklistAddress is an address that gets no messages of a list.
type BlocklistAddress struct {
	Recipient string     `json:"recipient" doc:"The address, or @ and the name of a domain"`
	Source    string     `json:"source,omitempty"`
	Reason    string     `json:"reason" doc:"Reason: unsubscribe, hard_bounce, spam_report, or the text given when it was added"`
	MessageID string     `json:"queueId,omitempty" doc:"The message that caused it"`
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty"`

	Account       string `json:"account" doc:"Account of the list. Lists of several accounts can have the same ID"`
	RemoteAddress string `json:"remoteAddress,omitempty" doc:"IP address of the client that made the request, shortened as tracking.storeAddress requires"`
	UserAgent     string `json:"userAgent,omitempty" doc:"User agent of the client that made the request"`
}

// BlocklistRequest adds an address to a list's suppressions.
type BlocklistRequest struct {
	Account   string `json:"account,omitempty" maxLength:"256" doc:"Account of the list. Required, unless the token is bound to an account"`
	Recipient string `json:"recipient" maxLength:"512" doc:"Address"`
	Reason    string `json:"reason,omitempty" maxLength:"500" doc:"Reason: unsubscribe, hard_bounce or spam_report. Any other text stops all messages of the list. Defaults to block"`
}

// BlocklistAdded reports whether the address is new on the list.
type BlocklistAdded struct {
	Success bool `json:"success"`
	Added   bool `json:"added"`
}
