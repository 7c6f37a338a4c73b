package api

import "time"

// SubscriberImportOptions are the options of an import of subscribers.
type SubscriberImportOptions struct {
	Account string   `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
	ID      string   `query:"id" maxLength:"63" doc:"An id that you choose, for reading the progress during the upload. The same file with the same id goes on where an interrupted import was"`
	ListID  []string `query:"listId" maxLength:"63" doc:"A list to put all subscribers on. Repeat it for more"`
	State   string   `query:"state" enum:"subscribed,pending,left" doc:"On these lists; subscribed when absent, which needs consent. left also stops their mail"`
	Consent string   `query:"consent" maxLength:"500" doc:"The words that all of them agreed to"`
	Confirm bool     `query:"confirm" enum:"true,false" doc:"true: with state pending, a mail asks each of them for the confirmation"`

	Existing    string `query:"existing" enum:"merge,skip,replace" doc:"What happens to subscribers that are there already: merge (when absent) changes what a line has, replace also empties the rest, skip leaves them as they are, with their lists"`
	Columns     string `query:"columns" maxLength:"16384" doc:"Of CSV: what its columns are, such as Mail:email,Seats:attributes.seats:number. Types are string, number, bool, date and list. state, subscribed or unsubscribed: the column tells who has unsubscribed. When absent, the headings say it"`
	Delimiter   string `query:"delimiter" maxLength:"3" doc:"Of CSV: one of , ; | and tab. Guessed when absent"`
	Charset     string `query:"charset" enum:"utf-8,utf-16le,utf-16be,windows-1252" doc:"Guessed when absent"`
	Tag         string `query:"tag" maxLength:"64" doc:"A tag that all of them get"`
	Resubscribe bool   `query:"resubscribe" enum:"true,false" doc:"true: with consent, who left is subscribed again. After a bounce or a complaint not even then"`
	DryRun      bool   `query:"dryRun" enum:"true,false" doc:"true: nothing is changed; the answer is what would be"`

	JSONL bool  // the file has one JSON object a line, in the form of SubscriberRequest
	Size  int64 // bytes of the file; 0: unknown
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
	Format string `query:"format" enum:"csv,jsonl" doc:"csv when absent"`
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
