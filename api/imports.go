package api

import "time"

// SubscriberImportOptions are the options of a subscriber import.
type SubscriberImportOptions struct {
	Account string   `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
	ID      string   `query:"id" maxLength:"63" doc:"ID that you choose, so that you can read the progress during the upload. To continue an interrupted import, send the same file with the same ID"`
	ListID  []string `query:"listId" maxLength:"63" doc:"ID of a list to put all subscribers on. Repeat it for more lists"`
	State   string   `query:"state" enum:"subscribed,pending,left" doc:"State on these lists. Defaults to subscribed, which requires consent. left also stops the lists' messages"`
	Consent string   `query:"consent" maxLength:"500" doc:"Consent text that all subscribers agreed to"`
	Confirm bool     `query:"confirm" enum:"true,false" doc:"Whether to send a confirmation email to each subscriber. Requires the state pending"`

	Existing    string `query:"existing" enum:"merge,skip,replace" doc:"What happens to existing subscribers. merge (the default) changes what a line contains, replace also clears everything else, and skip doesn't change them or their lists"`
	Columns     string `query:"columns" maxLength:"16384" doc:"For CSV: the meaning of columns, such as Mail:email,Seats:attributes.seats:number. Types are string, number, bool, date and list. Map a column to state, subscribed or unsubscribed if it shows who has unsubscribed. Defaults to the headings"`
	Delimiter   string `query:"delimiter" maxLength:"3" doc:"For CSV: the delimiter, one of , ; | and tab. Guessed by default"`
	Charset     string `query:"charset" enum:"utf-8,utf-16le,utf-16be,windows-1252" doc:"Character set of the file. Guessed by default"`
	Tag         string `query:"tag" maxLength:"64" doc:"Tag to add to all subscribers"`
	Resubscribe bool   `query:"resubscribe" enum:"true,false" doc:"With consent, whether to resubscribe people who unsubscribed. It doesn't resubscribe anyone after a bounce or a complaint"`
	DryRun      bool   `query:"dryRun" enum:"true,false" doc:"Whether to only report what the import would do"`

	JSONL bool  // the file has one JSON object a line, in the form of SubscriberRequest
	Size  int64 // bytes of the file; 0: unknown
}

// SubscriberImport is the progress of a subscriber import. Lines is Added + Changed + Known + Repeated +
// Bad; Skipped is beside it.
type SubscriberImport struct {
	ID       string         `json:"id"`
	State    string         `json:"state" enum:"running,done,interrupted" doc:"State of the import. If it was interrupted, send the same file with the same ID to continue after the last applied line"`
	DryRun   bool           `json:"dryRun,omitempty"`
	Bytes    int64          `json:"bytes" doc:"Bytes of the file read so far"`
	Lines    int            `json:"lines" doc:"Lines with data: added + changed + known + repeated + bad"`
	Added    int            `json:"added" doc:"New subscribers"`
	Changed  int            `json:"changed" doc:"Existing subscribers that changed"`
	Known    int            `json:"known" doc:"Existing subscribers that didn't change"`
	Repeated int            `json:"repeated" doc:"Lines with an address from an earlier line. The earlier line counts"`
	Bad      int            `json:"bad" doc:"Invalid lines, which were skipped"`
	Skipped  map[string]int `json:"skipped" doc:"Number of subscriptions that weren't made, by reason: left, unsubscribe, hard_bounce, spam_report or manual"`

	Unsubscribed int `json:"unsubscribed" doc:"Lines that a column of the file marks as unsubscribed. The other numbers include them"`
	Pending      int `json:"pending" doc:"Lines that a column of the file marks as pending. The other numbers include them"`

	Delimiter string    `json:"delimiter,omitempty" doc:"Delimiter of the CSV file: one of , ; | and tab"`
	Charset   string    `json:"charset,omitempty" doc:"Character set of the file"`
	Ignored   []string  `json:"ignored,omitempty" doc:"Headings of columns that weren't imported, and lists:ID for lists that don't exist. At most 100"`
	Error     string    `json:"error,omitempty" doc:"Error that interrupted the import"`
	Started   time.Time `json:"started"`
	Updated   time.Time `json:"updated"`
	Errors    []BadLine `json:"errors" doc:"Errors in the first 100 invalid lines"`
}

// SubscriberImports are the imports of an account in the last week, the latest first.
type SubscriberImports struct {
	Imports []SubscriberImport `json:"imports"`
}

// SubscriberExportQuery selects the subscribers of an export.
type SubscriberExportQuery struct {
	SubscriberQuery
	Format string `query:"format" enum:"csv,jsonl" doc:"File format. Defaults to csv"`
}

// ExportedSubscriber is a line of an export in JSONL, which an import reads.
type ExportedSubscriber struct {
	ID         string         `json:"id"`
	Email      string         `json:"email"`
	Name       string         `json:"name,omitempty"`
	Locale     string         `json:"locale,omitempty"`
	TZ         string         `json:"tz,omitempty"`
	Tags       []string       `json:"tags,omitempty"`
	Attributes any            `json:"attributes,omitempty"`
	Lists      []Subscription `json:"lists,omitempty"`
	// such as hard_bounce, or weekly:manual of a list
	Suppressions []string  `json:"suppressions,omitempty"`
	Created      time.Time `json:"created"`
}
