package api

import (
	"encoding/json"
	"time"
)

// DigestActor is who caused an event.
type DigestActor struct {
	ID   string `json:"id,omitempty" maxLength:"256"`
	Name string `json:"name,omitempty" maxLength:"256"`
	URL  string `json:"url,omitempty" maxLength:"2048" doc:"http or https"`
}

// DigestEvent is a notification for one recipient, to be mailed with others.
type DigestEvent struct {
	Recipient string `json:"recipient,omitempty" maxLength:"256" doc:"Your id of the reader, unique in the account; required"`
	Email     string `json:"email,omitempty" maxLength:"254" doc:"Address of the reader, if Postroom does not know one yet"`
	Name      string `json:"name,omitempty" maxLength:"256" doc:"As email"`
	Locale    string `json:"locale,omitempty" maxLength:"64" doc:"As email: language of the mail (BCP 47)"`
	TZ        string `json:"tz,omitempty" maxLength:"64" doc:"As email: time zone, such as Europe/Zurich"`

	Category       string          `json:"category,omitempty" maxLength:"64" doc:"What readers choose a cadence for, such as comment; required, at most 32 for each reader"`
	EntityType     string          `json:"entityType,omitempty" maxLength:"64" doc:"Type of what it is about, such as post; required"`
	EntityID       string          `json:"entityId,omitempty" maxLength:"256" doc:"Id of what it is about; required. Events of one category, type and id become one line"`
	Actor          *DigestActor    `json:"actor,omitempty"`
	Title          string          `json:"title,omitempty" maxLength:"512"`
	URL            string          `json:"url,omitempty" maxLength:"2048" doc:"http or https"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"An object of at most 4 KB, for templates"`
	Priority       string          `json:"priority,omitempty" enum:"low,normal,high,urgent" doc:"normal when absent; urgent is mailed at once, in quiet hours too"`
	OccurredAt     *time.Time      `json:"occurredAt,omitempty" doc:"At most 90 days ago and an hour ahead; now when absent"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty" maxLength:"256" doc:"One key of a reader, one event, for 2 days"`
}

// DigestEventsRequest is one event, or up to 1,000 in events.
type DigestEventsRequest struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account that mails the reader; default when absent"`
	DigestEvent
	Events []DigestEvent `json:"events,omitempty" maxItems:"1000" doc:"Events, in place of one; each has its own answer"`
}

// DigestEventResult is the answer to one event.
type DigestEventResult struct {
	Success     bool               `json:"success"`
	ID          string             `json:"id,omitempty"`
	State       string             `json:"state,omitempty" enum:"waiting,immediate,dropped" doc:"waiting: for the time of its schedule; immediate: it is mailed as soon as the gap allows, and neither quiet hours nor a pause put it off; dropped: nobody wants it"`
	Due         *time.Time         `json:"due,omitempty" doc:"When the mail with it is due; absent: the reader has no address yet, or it was dropped"`
	Reason      string             `json:"reason,omitempty" enum:"off,suppressed,left,erased,deleted,address" doc:"Why it was dropped; deleted: it was taken back before it was repeated; address: it waits for the address of the reader, for 24 hours"`
	Idempotency *IdempotencyStatus `json:"idempotency,omitempty"`
	StatusCode  int                `json:"statusCode,omitempty" doc:"The status that this event alone would have been answered with"`
	Code        string             `json:"code,omitempty"`
	Error       string             `json:"error,omitempty" doc:"Why it was refused"`
	Fields      []ProblemField     `json:"fields,omitempty" doc:"Every wrong field of the event"`
}

// DigestEventsAnswer is the answer to events: to several in events, to a single one beside.
type DigestEventsAnswer struct {
	*DigestEventResult
	Events []DigestEventResult `json:"events,omitempty"`
}

// DigestEventRemoval selects events that are not mailed yet: by key, or by category, type and id.
type DigestEventRemoval struct {
	Account    string   `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
	Recipients []string `query:"recipient" minLength:"1" maxLength:"256" doc:"Id of a reader. Repeat it for up to 100"`
	Key        string   `query:"key" maxLength:"256" doc:"The idempotencyKey of the event"`
	Category   string   `query:"category" maxLength:"64" doc:"In place of key, with entityType and entityId: all events about one thing"`
	EntityType string   `query:"entityType" maxLength:"64" doc:"As category"`
	EntityID   string   `query:"entityId" maxLength:"256" doc:"As category"`
}

// DigestEventsDeleted is the answer to a removal.
type DigestEventsDeleted struct {
	Deleted  int      `json:"deleted"`
	Warnings []string `json:"warnings,omitempty" doc:"Readers with events that a key can't reach, because more than digest.keep wait; take these back by category, entityType and entityId"`
}

// DigestPreference is when the events of a category are mailed.
type DigestPreference struct {
	Mode     string           `json:"mode" enum:"immediate,hourly,daily,weekly,monthly,custom,off"`
	Gap      string           `json:"gap,omitempty" doc:"immediate: least time between two mails, such as 5m; the setting digest.gap when absent"`
	Hour     *int             `json:"hour,omitempty" minimum:"0" maximum:"23" doc:"daily, weekly, monthly: hour by the clock of the reader; the setting digest.hour when absent"`
	Minute   *int             `json:"minute,omitempty" minimum:"0" maximum:"59" doc:"hourly to monthly; 0 when absent"`
	Weekdays []string         `json:"weekdays,omitempty" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"weekly; Monday when absent"`
	Day      int              `json:"day,omitempty" minimum:"1" maximum:"31" doc:"monthly: day of the month, or its last if it has fewer; 1 when absent"`
	Cron     string           `json:"cron,omitempty" maxLength:"256" doc:"custom: minute, hour, day of the month, month, day of the week"`
	Times    []DigestWeekTime `json:"times,omitempty" maxItems:"100" doc:"custom: times of the week, in place of cron"`
}

// DigestWeekTime is a time of the week.
type DigestWeekTime struct {
	Weekday string `json:"weekday" enum:"mon,tue,wed,thu,fri,sat,sun"`
	At      string `json:"at" doc:"Such as 08:30"`
}

// DigestQuiet are hours in which nothing but urgent mail is sent.
type DigestQuiet struct {
	Weekdays []string `json:"weekdays,omitempty" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"On which they begin; every day when absent"`
	From     string   `json:"from" doc:"Such as 22:00"`
	Until    string   `json:"until" doc:"Such as 07:00; not after from: on the next day"`
}

// DigestPreferences are the preferences of a reader by category; * stands for the rest.
type DigestPreferences map[string]DigestPreference

// DigestRecipientRequest is a reader. PUT replaces the preferences, PATCH those of the categories it names.
type DigestRecipientRequest struct {
	Account     string                       `json:"account,omitempty" maxLength:"256"`
	Version     *int                         `json:"version,omitempty" doc:"The version that the change is based on: if the reader was changed since, 409 DigestRecipientChanged"`
	Email       *string                      `json:"email,omitempty" maxLength:"254"`
	Name        *string                      `json:"name,omitempty" maxLength:"256"`
	Locale      *string                      `json:"locale,omitempty" maxLength:"64" doc:"Language of the mail (BCP 47); the account's when empty"`
	TZ          *string                      `json:"tz,omitempty" maxLength:"64" doc:"Time zone; UTC when empty"`
	Preferences map[string]*DigestPreference `json:"preferences,omitempty" doc:"By category, * for the rest; PATCH removes one by null"`
	Quiet       *[]DigestQuiet               `json:"quiet,omitempty" maxItems:"20"`
	PausedUntil *time.Time                   `json:"pausedUntil,omitempty" doc:"Nothing is mailed before; then everything in one mail. A past time ends the pause"`
}

// DigestNext is a mail to come.
type DigestNext struct {
	Schedule   string    `json:"schedule"`
	Categories []string  `json:"categories" doc:"* stands for those without a preference of their own"`
	At         time.Time `json:"at"`
	Words      string    `json:"words" doc:"Such as: every day at 08:00 (Europe/Zurich)"`
}

// DigestRecipient is a reader.
type DigestRecipient struct {
	Recipient   string            `json:"recipient"`
	Account     string            `json:"account"`
	Email       string            `json:"email,omitempty"`
	Name        string            `json:"name,omitempty"`
	Locale      string            `json:"locale,omitempty"`
	TZ          string            `json:"tz,omitempty"`
	Preferences DigestPreferences `json:"preferences"`
	Quiet       []DigestQuiet     `json:"quiet"`
	PausedUntil *time.Time        `json:"pausedUntil,omitempty"`
	Next        []DigestNext      `json:"next" doc:"The next three times at which events that come now would be mailed, and the next one of each schedule that is not among them"`
	Waiting     map[string]int    `json:"waiting" doc:"Events not mailed yet, by category"`
	Warnings    []string          `json:"warnings,omitempty" doc:"What to know about the reader, such as a time zone that is gone, or required categories that go on"`
	Version     int               `json:"version"`
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// DigestRecipientPage is a page of readers.
type DigestRecipientPage struct {
	Recipients []DigestRecipient `json:"recipients"`
	Cursor     string            `json:"cursor,omitempty" doc:"For the next page; absent on the last"`
}

func (p DigestRecipientPage) rows() ([]DigestRecipient, string, int) {
	return p.Recipients, p.Cursor, 0
}

// DigestRecipientQuery selects readers.
type DigestRecipientQuery struct {
	Account  string `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
	Search   string `query:"search" maxLength:"256" doc:"Only those with this in their id or address; case does not matter"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Maximum number of rows"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it"`
}

// DigestAccount names the account of a reader; empty: default.
type DigestAccount = AccountQuery

// DigestWaiting is the events of a reader that are not mailed yet, oldest first.
type DigestWaiting struct {
	Events []DigestWaitingEvent `json:"events" doc:"The newest of each category; counts has all"`
	Counts map[string]int       `json:"counts" doc:"By category, those beyond digest.keep too"`
}

// DigestWaitingEvent is an event that is not mailed yet.
type DigestWaitingEvent struct {
	ID string `json:"id"`
	DigestEvent
}

// DigestKind is what is known of a category.
type DigestKind struct {
	Category   string            `json:"category" minLength:"1" maxLength:"64"`
	Account    string            `json:"account,omitempty" maxLength:"256" doc:"default when absent"`
	Title      map[string]string `json:"title,omitempty" doc:"What readers call it, by language: {\"en\": \"Comments\"}"`
	Preference *DigestPreference `json:"preference,omitempty" doc:"Of readers without one of their own; the setting digest.mode when absent"`
	Required   bool              `json:"required,omitempty" doc:"Readers can't turn it off"`
	Template   string            `json:"template,omitempty" maxLength:"256" doc:"Stored template of mail of this category alone; the template digest, else the built-in one, when absent"`
	Lane       Lane              `json:"lane,omitempty" enum:"transactional,bulk" doc:"Of mail of this category alone; the setting digest.lane when absent"`
}

// DigestKindPatch changes the fields of a kind that it has.
type DigestKindPatch struct {
	Account    string             `json:"account,omitempty" maxLength:"256"`
	Version    *int               `json:"version,omitempty" doc:"The version that the change is based on: if the kind was changed since, 409 DigestKindChanged"`
	Title      map[string]string  `json:"title,omitempty"`
	Preference **DigestPreference `json:"preference,omitempty" doc:"null: the setting digest.mode"`
	Required   *bool              `json:"required,omitempty"`
	Template   *string            `json:"template,omitempty" maxLength:"256"`
	Lane       *Lane              `json:"lane,omitempty" enum:"transactional,bulk"`
}

// DigestKindInfo is a stored kind.
type DigestKindInfo struct {
	DigestKind
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// DigestKindPage is a page of kinds.
type DigestKindPage struct {
	PageNumbers
	Kinds []DigestKindInfo `json:"kinds"`
}

func (p DigestKindPage) rows() ([]DigestKindInfo, string, int) { return p.Kinds, "", p.Pages }

// DigestKindQuery selects kinds.
type DigestKindQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Only kinds of this account; when absent that of the token, else all"`
}

// DigestGroup is the events about one thing.
type DigestGroup struct {
	Category   string          `json:"category"`
	EntityType string          `json:"entityType"`
	EntityID   string          `json:"entityId"`
	Title      string          `json:"title,omitempty" doc:"Of the last event"`
	URL        string          `json:"url,omitempty"`
	Count      int             `json:"count"`
	First      time.Time       `json:"first"`
	Last       time.Time       `json:"last"`
	Actors     []DigestActor   `json:"actors" doc:"At most three, newest first"`
	Others     int             `json:"others" doc:"How many more there are"`
	Priority   string          `json:"priority" doc:"The highest"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"Of the last event"`
}

// The states of a run.
const (
	DigestPending    = "pending"    // it is due later, or waits to be tried again
	DigestProcessing = "processing" // a worker has it
	DigestSubmitted  = "submitted"  // the outbox has its mail
	DigestSent       = "sent"       // the relay took it
	DigestFailed     = "failed"     // it was given up
	DigestSkipped    = "skipped"    // there was nothing, or nobody, to mail
)

// DigestRun is one mail of a schedule.
type DigestRun struct {
	Run       string        `json:"run"`
	Account   string        `json:"account"`
	Recipient string        `json:"recipient"`
	Schedule  string        `json:"schedule"`
	Period    string        `json:"period" doc:"By the clock of the reader: 2026-11-22, 2026-W47, 2026-11-22T14"`
	State     string        `json:"state" enum:"pending,processing,submitted,sent,failed,skipped"`
	Reason    string        `json:"reason,omitempty" doc:"Why it was skipped or failed: empty, off, suppressed, left, erased, address, template, cancelled, or an error"`
	Scheduled time.Time     `json:"scheduled"`
	Started   *time.Time    `json:"started,omitempty"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Attempts  int           `json:"attempts"`
	Events    int           `json:"events" doc:"Events in it, those beyond the cap too"`
	QueueID   string        `json:"queueId,omitempty"`
	Groups    []DigestGroup `json:"groups,omitempty" doc:"As they were mailed; of one run"`
	EventIDs  []string      `json:"eventIds,omitempty" doc:"The newest events in it, at most 1,000; of one run"`
}

// DigestRunPage is a page of runs, newest first.
type DigestRunPage struct {
	Runs   []DigestRun `json:"runs"`
	Cursor string      `json:"cursor,omitempty" doc:"For the next page; absent on the last"`
}

func (p DigestRunPage) rows() ([]DigestRun, string, int) { return p.Runs, p.Cursor, 0 }

// DigestRunQuery selects runs.
type DigestRunQuery struct {
	Account   string    `query:"account" maxLength:"256" doc:"Whose; when absent that of the token, else default"`
	Recipient string    `query:"recipient" maxLength:"256" doc:"Only runs of this reader"`
	State     string    `query:"state" enum:"pending,processing,submitted,sent,failed,skipped" doc:"Only those in this state"`
	After     time.Time `query:"after" doc:"Only those that entered their state at this time or later"`
	Before    time.Time `query:"before" doc:"Only those that entered their state before this time"`
	CursorQuery
}

// DigestPreview is what would be sent now.
type DigestPreview struct {
	Due     *time.Time      `json:"due" doc:"When the next mail is due; null: nothing waits"`
	Subject string          `json:"subject,omitempty"`
	HTML    string          `json:"html,omitempty"`
	Text    string          `json:"text,omitempty"`
	Digest  json.RawMessage `json:"digest,omitempty" doc:"What templates get, as digest and as params.digest"`
	// Missing is of a stored template.
	Missing []TemplateMissing `json:"missing,omitempty" doc:"Variables of the template that don't exist; they are empty"`
}

// DigestSendAnswer is the answer to send now.
type DigestSendAnswer struct {
	Run    string `json:"run,omitempty"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// DigestTimesRequest asks when a preference comes.
type DigestTimesRequest struct {
	Preference DigestPreference `json:"preference"`
	Quiet      []DigestQuiet    `json:"quiet,omitempty" maxItems:"20"`
	TZ         string           `json:"tz,omitempty" maxLength:"64" doc:"UTC when absent"`
	After      *time.Time       `json:"after,omitempty" doc:"From 2000 to 2100; now when absent"`
	Count      int              `json:"count,omitempty" minimum:"1" maximum:"100" doc:"1 when absent"`
}

// DigestTime is a time at which a preference comes, without the stagger of a reader.
type DigestTime struct {
	At     time.Time `json:"at"`
	Local  string    `json:"local" doc:"By the clock of the zone"`
	Period string    `json:"period"`
	Words  string    `json:"words"`
}

// DigestTimes are the next times of a preference.
type DigestTimes struct {
	Times []DigestTime `json:"times"`
}

// PersonalDigest is what digests have of a person.
type PersonalDigest struct {
	DigestRecipient
	Events []DigestWaitingEvent `json:"events"`
	Runs   []DigestRun          `json:"runs"`
}
