package api

import "time"

// SubscriberImportOptions are the options of an import of subscribers.
type SubscriberImportOptions struct {
	ID      string   `query:"id"` // for reading the progress and for going on; empty: one is made
	Account string   // empty: that of the token, else default
	ListID  []string `query:"listId"` // lists to put all of them on
	State   string   // on these lists: subscribed (with Consent), pending or left; empty: subscribed
	Consent string   // the words that all of them agreed to
	Confirm bool     // with State pending: a mail asks each of them for the confirmation

	Existing    string // what happens to those that are there already: merge, skip or replace; empty: merge
	Columns     string // of CSV: Mail:email,Seats:attributes.seats:number; empty: by the headings
	Delimiter   string // of CSV: one of , ; | and tab; empty: guessed
	Charset     string // utf-8, utf-16le, utf-16be or windows-1252; empty: guessed
	Tag         string // that all of them get
	Resubscribe bool   // with Consent: who left is subscribed again
	DryRun      bool   // nothing is changed

	JSONL bool  `query:"-"` // the file has one JSON object a line, in the form of SubscriberRequest
	Size  int64 `query:"-"` // bytes of the file; 0: unknown
}

// SubscriberImport is the progress of an import of subscribers. Lines is Added + Changed + Known + Repeated +
// Bad; Skipped is beside it.
type SubscriberImport struct {
	ID       string         `json:"id"`
	State    string         `json:"state" enum:"running,done,interrupted" doc:"interrupted: the same file with the same id goes on behind the last line that was applied"`
	DryRun   bool           `json:"dryRun,omitempty"`
	Bytes    int64          `json:"bytes" doc:"Read of the file"`
	Lines    int            `json:"lines" doc:"With data: added + changed + known + repeated + bad"`
	Added    int            `json:"added" doc:"New subscribers"`
	Changed  int            `json:"changed" doc:"Subscribers that were there and are different now"`
	Known    int            `json:"known" doc:"Subscribers that were there and stay as they were"`
	Repeated int            `json:"repeated" doc:"Lines whose address was in an earlier line, which counts"`
	Bad      int            `json:"bad" doc:"Lines left out for a fault"`
	Skipped  map[string]int `json:"skipped" doc:"Subscriptions that were not made, by reason: left, unsubscribe, hard_bounce, spam_report, manual"`

	Unsubscribed int `json:"unsubscribed" doc:"Lines that a column of the file marks as unsubscribed. They count above as well"`
	Pending      int `json:"pending" doc:"Lines that a column of the file marks as pending. They count above as well"`

	Delimiter string    `json:"delimiter,omitempty" doc:"Of the CSV file: one of , ; | and tab"`
	Charset   string    `json:"charset,omitempty" doc:"Of the file"`
	Ignored   []string  `json:"ignored,omitempty" doc:"Headings of columns that were not imported, and lists:ID for lists that do not exist, at most 100"`
	Error     string    `json:"error,omitempty" doc:"What interrupted it"`
	Started   time.Time `json:"started"`
	Updated   time.Time `json:"updated"`
	Errors    []BadLine `json:"errors" doc:"The faults of the first 100 bad lines"`
}

// SubscriberImports are the imports of an account in the last week, the latest first.
type SubscriberImports struct {
	Imports []SubscriberImport `json:"imports"`
}

// SubscriberExportQuery selects the subscribers of an export.
type SubscriberExportQuery struct {
	SubscriberQuery
	Format string // csv or jsonl; empty: csv
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
