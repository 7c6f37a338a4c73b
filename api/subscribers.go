package api

import "time"

// Consent is the proof that somebody agreed to be mailed.
type Consent struct {
	Source string     `json:"source" minLength:"1" maxLength:"64" doc:"Where it was given, such as checkout"`
	Text   string     `json:"text,omitempty" maxLength:"500" doc:"The words that were agreed to"`
	Time   *time.Time `json:"time,omitempty" doc:"When; now when absent"`
	IP     string     `json:"ip,omitempty" maxLength:"64" doc:"From which address. Only its network is kept: 24 bits of IPv4, 48 of IPv6"`
}

// SubscriptionRequest puts a subscriber on a list.
type SubscriptionRequest struct {
	ListID string `json:"listId" minLength:"1" maxLength:"63"`
	State  string `json:"state,omitempty" enum:"subscribed,pending" doc:"When absent: pending on a list of double opt-in, and a mail asks for the confirmation; else subscribed. On such a list subscribed needs a consent"`
}

// SubscriberRequest creates a subscriber.
type SubscriberRequest struct {
	Account     string                `json:"account,omitempty" maxLength:"256" doc:"Whose subscriber; default when absent"`
	Email       string                `json:"email" minLength:"1" maxLength:"512" doc:"Unique in the account. Compared without regard to case"`
	Name        string                `json:"name,omitempty" maxLength:"256"`
	Locale      string                `json:"locale,omitempty" maxLength:"35" doc:"Language of the mail, such as de-AT"`
	TZ          string                `json:"tz,omitempty" maxLength:"64" doc:"Time zone, such as Europe/Vienna"`
	Tags        []string              `json:"tags,omitempty" maxItems:"50"`
	Attributes  map[string]any        `json:"attributes,omitempty" doc:"Values are strings, numbers, booleans or lists of strings; together at most 4,096 bytes of JSON. null removes one"`
	Lists       []SubscriptionRequest `json:"lists,omitempty" maxItems:"100"`
	Consent     *Consent              `json:"consent,omitempty"`
	Upsert      bool                  `json:"upsert,omitempty" doc:"Change the subscriber of this address, if there is one. Otherwise that is 409 SubscriberExists"`
	Resubscribe bool                  `json:"resubscribe,omitempty" doc:"With consent: who left is subscribed again. After a bounce or a complaint not even then"`
}

// SubscriberPatch changes the fields of a subscriber that it has.
type SubscriberPatch struct {
	Account    string         `json:"account,omitempty" maxLength:"256" doc:"Whose subscriber; default when absent"`
	Version    *int           `json:"version,omitempty" doc:"The version that the change is based on: if the subscriber was changed since, 409 SubscriberChanged"`
	Email      *string        `json:"email,omitempty" minLength:"1" maxLength:"512"`
	Name       *string        `json:"name,omitempty" maxLength:"256"`
	Locale     *string        `json:"locale,omitempty" maxLength:"35"`
	TZ         *string        `json:"tz,omitempty" maxLength:"64"`
	Tags       *[]string      `json:"tags,omitempty" maxItems:"50" doc:"Replaces all tags"`
	Attributes map[string]any `json:"attributes,omitempty" doc:"Merged with those that are there. null removes one"`
}

// SubscribeRequest puts a subscriber on lists.
type SubscribeRequest struct {
	Account     string                `json:"account,omitempty" maxLength:"256" doc:"Whose subscriber; default when absent"`
	Lists       []SubscriptionRequest `json:"lists" minItems:"1" maxItems:"100"`
	Consent     *Consent              `json:"consent,omitempty"`
	Resubscribe bool                  `json:"resubscribe,omitempty" doc:"With consent: who left is subscribed again. After a bounce or a complaint not even then"`
}

// Subscription is the state of a subscriber on a list.
type Subscription struct {
	ListID string    `json:"listId"`
	State  string    `json:"state" enum:"pending,subscribed,left"`
	Since  time.Time `json:"since"`
	Source string    `json:"source,omitempty" doc:"What brought it about: form, api, import, page, unsubscribe, or the source of the consent"`
}

// ConsentEntry is one step in the history of a subscription, with its proof.
type ConsentEntry struct {
	ListID  string     `json:"listId"`
	State   string     `json:"state" enum:"pending,subscribed,left"`
	Since   time.Time  `json:"since"`
	Source  string     `json:"source,omitempty"`
	Text    string     `json:"text,omitempty" doc:"The words that were agreed to"`
	Given   *time.Time `json:"given,omitempty" doc:"When consent was given, if that was not at since"`
	Network string     `json:"network,omitempty" doc:"The network that it came from"`
	Current bool       `json:"current,omitempty" doc:"It is the state of today"`
}

// ConsentHistory is the history of the subscriptions of a subscriber, the latest step first.
type ConsentHistory struct {
	Consents []ConsentEntry `json:"consents"`
}

// SkippedList is a list that a subscriber was not put on.
type SkippedList struct {
	ListID string `json:"listId"`
	Reason string `json:"reason" enum:"left,unsubscribe,hard_bounce,spam_report,manual"`
}

// Subscriber is a person of an account's audience.
type Subscriber struct {
	ID         string         `json:"id" doc:"Unique in the account"`
	Account    string         `json:"account"`
	Email      string         `json:"email"`
	Name       string         `json:"name,omitempty"`
	Locale     string         `json:"locale,omitempty"`
	TZ         string         `json:"tz,omitempty"`
	Tags       []string       `json:"tags"`
	Attributes map[string]any `json:"attributes"`
	Lists      []Subscription `json:"lists"`
	Version    int            `json:"version" doc:"Raised by each change"`
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
	Skipped    []SkippedList  `json:"skipped,omitempty" doc:"In the answer to a change: lists that this subscriber was not put on, and why. The rest was done"`
}

// SubscriberQuery selects subscribers.
type SubscriberQuery struct {
	Account       string    `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
	ListID        string    `query:"listId" maxLength:"63" doc:"Only those who are on this list, or left it"`
	State         string    `query:"state" enum:"pending,subscribed,left" doc:"Only those in this state on the list; needs listId" help:"Only those in this state on --list"`
	Segment       string    `query:"segment" maxLength:"63" doc:"Only those that this segment selects"`
	Tag           string    `query:"tag" maxLength:"64" doc:"Only those with this tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Only those with this in their address or name; case does not matter. A whole address is found without a search"`
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only those that came at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only those that came before this time"`
	CursorQuery
}

// SubscriberPage is a page of subscribers, in the order in which they came.
type SubscriberPage struct {
	Total       *int         `json:"total,omitempty" doc:"Those that match; absent where that would need a search"`
	Cursor      string       `json:"cursor,omitempty" doc:"Requests the next rows; absent on the last page. A page may have fewer rows than requested, even none, although more follow"`
	PageSize    int          `json:"pageSize"`
	Subscribers []Subscriber `json:"subscribers"`
}

func (p SubscriberPage) rows() ([]Subscriber, string, int) { return p.Subscribers, p.Cursor, 0 }

// SubscriberAccount names whose subscriber a request is about.
type SubscriberAccount = AccountQuery

// ConfirmationSent reports whether a mail asks for a confirmation again.
type ConfirmationSent struct {
	Sent    bool   `json:"sent" doc:"false: the subscriber confirmed already"`
	QueueID string `json:"queueId,omitempty" doc:"The message that asks"`
}

// ListLeft is the response to leaving a list.
type ListLeft struct {
	Deleted bool   `json:"deleted" doc:"false: the subscriber was not on the list. Its mail is stopped all the same"`
	ListID  string `json:"listId"`
}
