package api

import "time"

// Consent is the record that someone agreed to receive messages.
type Consent struct {
	Source string     `json:"source" minLength:"1" maxLength:"64" doc:"Where consent was given, such as checkout"`
	Text   string     `json:"text,omitempty" maxLength:"500" doc:"Consent text"`
	Time   *time.Time `json:"time,omitempty" doc:"When consent was given. Defaults to now"`
	IP     string     `json:"ip,omitempty" maxLength:"64" doc:"IP address from which consent was given. Only its network is stored: 24 bits of IPv4, 48 of IPv6"`
}

// SubscriptionRequest puts a subscriber on a list.
type SubscriptionRequest struct {
	ListID string `json:"listId" minLength:"1" maxLength:"63"`
	State  string `json:"state,omitempty" enum:"subscribed,pending" doc:"State. On a list with double opt-in, defaults to pending, which sends a confirmation email; subscribed requires consent there. On other lists, defaults to subscribed"`
}

// SubscriberRequest creates a subscriber.
type SubscriberRequest struct {
	Account     string                `json:"account,omitempty" maxLength:"256" doc:"Account. Defaults to default"`
	Email       string                `json:"email" minLength:"1" maxLength:"512" doc:"Address, unique in the account (case-insensitive)"`
	Name        string                `json:"name,omitempty" maxLength:"256"`
	Locale      string                `json:"locale,omitempty" maxLength:"35" doc:"Language of emails, such as de-AT"`
	TZ          string                `json:"tz,omitempty" maxLength:"64" doc:"Time zone, such as Europe/Vienna"`
	Tags        []string              `json:"tags,omitempty" maxItems:"50"`
	Attributes  map[string]any        `json:"attributes,omitempty" doc:"Attributes. Values are strings, numbers, booleans or lists of strings, together at most 4,096 bytes of JSON. null removes an attribute"`
	Lists       []SubscriptionRequest `json:"lists,omitempty" maxItems:"100"`
	Consent     *Consent              `json:"consent,omitempty"`
	Upsert      bool                  `json:"upsert,omitempty" doc:"Whether to update an existing subscriber with this address instead of returning 409 SubscriberExists"`
	Resubscribe bool                  `json:"resubscribe,omitempty" doc:"With consent, whether to resubscribe someone who unsubscribed. It doesn't resubscribe anyone after a bounce or a complaint"`
}

// SubscriberPatch changes the fields of a subscriber that it has.
type SubscriberPatch struct {
	Account    string         `json:"account,omitempty" maxLength:"256" doc:"Account. Defaults to default"`
	Version    *int           `json:"version,omitempty" doc:"Version that your change is based on. If the subscriber has changed since, the response is 409 SubscriberChanged"`
	Email      *string        `json:"email,omitempty" minLength:"1" maxLength:"512"`
	Name       *string        `json:"name,omitempty" maxLength:"256"`
	Locale     *string        `json:"locale,omitempty" maxLength:"35"`
	TZ         *string        `json:"tz,omitempty" maxLength:"64"`
	Tags       *[]string      `json:"tags,omitempty" maxItems:"50" doc:"Replaces all tags"`
	Attributes map[string]any `json:"attributes,omitempty" doc:"Attributes to merge into the existing ones. null removes an attribute"`
}

// SubscribeRequest puts a subscriber on lists.
type SubscribeRequest struct {
	Account     string                `json:"account,omitempty" maxLength:"256" doc:"Account. Defaults to default"`
	Lists       []SubscriptionRequest `json:"lists" minItems:"1" maxItems:"100"`
	Consent     *Consent              `json:"consent,omitempty"`
	Resubscribe bool                  `json:"resubscribe,omitempty" doc:"With consent, whether to resubscribe someone who unsubscribed. It doesn't resubscribe anyone after a bounce or a complaint"`
}

// Subscription is the state of a subscriber on a list.
type Subscription struct {
	ListID string    `json:"listId"`
	State  string    `json:"state" enum:"pending,subscribed,left"`
	Since  time.Time `json:"since"`
	Source string    `json:"source,omitempty" doc:"Cause of the state: form, api, import, page, unsubscribe, or the source of the consent"`
}

// ConsentEntry is one step in the history of a subscription, with the consent record.
type ConsentEntry struct {
	ListID  string     `json:"listId"`
	State   string     `json:"state" enum:"pending,subscribed,left"`
	Since   time.Time  `json:"since"`
	Source  string     `json:"source,omitempty"`
	Text    string     `json:"text,omitempty" doc:"Consent text"`
	Given   *time.Time `json:"given,omitempty" doc:"When consent was given, if it differs from since"`
	Network string     `json:"network,omitempty" doc:"Network from which consent was given"`
	Current bool       `json:"current,omitempty" doc:"Whether it is the current state"`
}

// ConsentHistory is the history of a subscriber's subscriptions, newest first.
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
	ID         string         `json:"id" doc:"ID, unique in the account"`
	Account    string         `json:"account"`
	Email      string         `json:"email"`
	Name       string         `json:"name,omitempty"`
	Locale     string         `json:"locale,omitempty"`
	TZ         string         `json:"tz,omitempty"`
	Tags       []string       `json:"tags"`
	Attributes map[string]any `json:"attributes"`
	Lists      []Subscription `json:"lists"`
	Version    int            `json:"version" doc:"Version number, raised by each change"`
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
	Skipped    []SkippedList  `json:"skipped,omitempty" doc:"In the response to a change: lists that the subscriber wasn't put on, and why. Everything else was done"`
}

// SubscriberQuery selects subscribers.
type SubscriberQuery struct {
	Account       string    `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
	ListID        string    `query:"listId" maxLength:"63" doc:"Filter by list, including subscribers who unsubscribed from it"`
	State         string    `query:"state" enum:"pending,subscribed,left" doc:"Filter by state on the list. Requires listId" help:"Filter by state on --list"`
	Segment       string    `query:"segment" maxLength:"63" doc:"Filter by segment"`
	Tag           string    `query:"tag" maxLength:"64" doc:"Filter by tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Filter by ID or address (case-insensitive)"`
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only subscribers created at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only subscribers created before this time"`
	CursorQuery
}

// SubscriberPage is a page of subscribers, oldest first.
type SubscriberPage struct {
	Total       *int         `json:"total,omitempty" doc:"Number of matching subscribers. Absent if counting would require a search"`
	Cursor      string       `json:"cursor,omitempty" doc:"Cursor for the next rows. Absent on the last page. A page can have fewer rows than requested, or none, although more follow"`
	PageSize    int          `json:"pageSize"`
	Subscribers []Subscriber `json:"subscribers"`
}

func (p SubscriberPage) rows() ([]Subscriber, string, int) { return p.Subscribers, p.Cursor, 0 }

// SubscriberAccount names the subscriber's account.
type SubscriberAccount = AccountQuery

// ConfirmationSent reports whether another confirmation email was sent.
type ConfirmationSent struct {
	Sent    bool   `json:"sent" doc:"false if the subscriber has already confirmed"`
	QueueID string `json:"queueId,omitempty" doc:"ID of the confirmation email"`
}

// ListLeft is the response to unsubscribing from a list.
type ListLeft struct {
	Deleted bool   `json:"deleted" doc:"false if the subscriber wasn't on the list. Its messages are stopped anyway"`
	ListID  string `json:"listId"`
}
