package api

import (
	"encoding/json"
	"time"
)

// DigestActor is the person who caused an event.
type DigestActor struct {
	ID   string `json:"id,omitempty" maxLength:"256"`
	Name string `json:"name,omitempty" maxLength:"256"`
	URL  string `json:"url,omitempty" maxLength:"2048" doc:"HTTP or HTTPS URL"`
}

// DigestEvent is a notification for one recipient, sent together with others.
type DigestEvent struct {
	Recipient string `json:"recipient,omitempty" maxLength:"256" doc:"Your ID for the recipient, unique in the account. Required"`
	Email     string `json:"email,omitempty" maxLength:"254" doc:"Recipient's address. Ignored if Postroom already has one"`
	Name      string `json:"name,omitempty" maxLength:"256" doc:"Recipient's name. Ignored if Postroom already has one"`
	Locale    string `json:"locale,omitempty" maxLength:"64" doc:"Recipient's language (BCP 47). Ignored if Postroom already has one"`
	TZ        string `json:"tz,omitempty" maxLength:"64" doc:"Recipient's time zone, such as Europe/Zurich. Ignored if Postroom already has one"`

	Category       string          `json:"category,omitempty" maxLength:"64" doc:"Category, such as comment, for which recipients choose a schedule. Required. At most 32 for each recipient"`
	EntityType     string          `json:"entityType,omitempty" maxLength:"64" doc:"Type of the object that the event is about, such as post. Required"`
	EntityID       string          `json:"entityId,omitempty" maxLength:"256" doc:"ID of that object. Required. Events with the same category, type and ID become one line"`
	Actor          *DigestActor    `json:"actor,omitempty"`
	Title          string          `json:"title,omitempty" maxLength:"512"`
	URL            string          `json:"url,omitempty" maxLength:"2048" doc:"HTTP or HTTPS URL"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"JSON object of at most 4 KB, for templates"`
	Priority       string          `json:"priority,omitempty" enum:"low,normal,high,urgent" doc:"Priority. Defaults to normal. An urgent event is sent immediately, even during quiet hours"`
	OccurredAt     *time.Time      `json:"occurredAt,omitempty" doc:"When it happened: from 90 days ago to one hour from now. Defaults to now"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty" maxLength:"256" doc:"Idempotency key. Postroom accepts one event for each key and recipient within 2 days"`
}

// DigestEventsRequest is one event, or up to 1,000 in events.
type DigestEventsRequest struct {
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account that sends the digest. Defaults to default"`
	DigestEvent
	Events []DigestEvent `json:"events,omitempty" maxItems:"1000" doc:"Events to accept instead of a single event. Each has its own result"`
}

// DigestEventResult is the answer to one event.
type DigestEventResult struct {
	Success     bool               `json:"success"`
	ID          string             `json:"id,omitempty"`
	State       string             `json:"state,omitempty" enum:"waiting,immediate,dropped" doc:"What happens to the event. A waiting event is sent on schedule. An immediate one is sent as soon as gap allows, regardless of quiet hours and pauses. A dropped one isn't sent"`
	Due         *time.Time         `json:"due,omitempty" doc:"When the email with it is due. Absent if the recipient has no address yet, or if the event was dropped"`
	Reason      string             `json:"reason,omitempty" enum:"off,suppressed,left,erased,deleted,address" doc:"Why it was dropped. With deleted, it was withdrawn before this repeated request. With address, it waits up to 24 hours for the recipient's address"`
	Idempotency *IdempotencyStatus `json:"idempotency,omitempty"`
	StatusCode  int                `json:"statusCode,omitempty" doc:"Status that a request with only this event would return"`
	Code        string             `json:"code,omitempty"`
	Error       string             `json:"error,omitempty" doc:"Why it was refused"`
	Fields      []ProblemField     `json:"fields,omitempty" doc:"All invalid fields of the event"`
}

// DigestEventsAnswer is the response to events. A single event's result is at the top level.
type DigestEventsAnswer struct {
	*DigestEventResult
	Events []DigestEventResult `json:"events,omitempty"`
}

// DigestEventRemoval selects pending events by key, or by category, type and ID.
type DigestEventRemoval struct {
	Account    string   `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
	Recipients []string `query:"recipient" minLength:"1" maxLength:"256" doc:"ID of a recipient. Repeat it for up to 100 recipients"`
	Key        string   `query:"key" maxLength:"256" doc:"The event's idempotencyKey"`
	Category   string   `query:"category" maxLength:"64" doc:"Category. Set it with entityType and entityId, instead of key, to select all events about one object"`
	EntityType string   `query:"entityType" maxLength:"64" doc:"Type of the object. Requires category and entityId"`
	EntityID   string   `query:"entityId" maxLength:"256" doc:"ID of the object. Requires category and entityType"`
}

// DigestEventsDeleted is the answer to a removal.
type DigestEventsDeleted struct {
	Deleted  int      `json:"deleted"`
	Warnings []string `json:"warnings,omitempty" doc:"Recipients with events that a key can't find, because more than digest.keep are pending. Withdraw these events by category, entityType and entityId"`
}

// DigestPreference is the schedule of a category's events.
type DigestPreference struct {
	Mode     string           `json:"mode" enum:"immediate,hourly,daily,weekly,monthly,custom,off"`
	Gap      string           `json:"gap,omitempty" doc:"For immediate: minimum time between two emails, such as 5m. Defaults to the setting digest.gap"`
	Hour     *int             `json:"hour,omitempty" minimum:"0" maximum:"23" doc:"For daily, weekly and monthly: hour in the recipient's time zone. Defaults to the setting digest.hour"`
	Minute   *int             `json:"minute,omitempty" minimum:"0" maximum:"59" doc:"For hourly, daily, weekly and monthly: minute. Defaults to 0"`
	Weekdays []string         `json:"weekdays,omitempty" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"For weekly: days of the week. Defaults to Monday"`
	Day      int              `json:"day,omitempty" minimum:"1" maximum:"31" doc:"For monthly: day of the month, or the last day of a shorter month. Defaults to 1"`
	Cron     string           `json:"cron,omitempty" maxLength:"256" doc:"For custom: cron expression with minute, hour, day of the month, month and day of the week"`
	Times    []DigestWeekTime `json:"times,omitempty" maxItems:"100" doc:"For custom: times in the week, instead of cron"`
}

// DigestWeekTime is a time of the week.
type DigestWeekTime struct {
	Weekday string `json:"weekday" enum:"mon,tue,wed,thu,fri,sat,sun"`
	At      string `json:"at" doc:"Local time, such as 08:30"`
}

// DigestQuiet are hours in which only urgent events are sent.
type DigestQuiet struct {
	Weekdays []string `json:"weekdays,omitempty" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"Days on which quiet hours start. Defaults to every day"`
	From     string   `json:"from" doc:"Start, such as 22:00"`
	Until    string   `json:"until" doc:"End, such as 07:00. If it isn't later than from, it is on the next day"`
}

// DigestPreferences are a recipient's preferences by category, with * for all other categories.
type DigestPreferences map[string]DigestPreference

// DigestRecipientRequest stores a recipient. PUT replaces all preferences. PATCH replaces only the
// preferences of the categories in the request.
type DigestRecipientRequest struct {
	Account     string                       `json:"account,omitempty" maxLength:"256"`
	Version     *int                         `json:"version,omitempty" doc:"Version that your change is based on. If the recipient has changed since, the response is 409 DigestRecipientChanged"`
	Email       *string                      `json:"email,omitempty" maxLength:"254"`
	Name        *string                      `json:"name,omitempty" maxLength:"256"`
	Locale      *string                      `json:"locale,omitempty" maxLength:"64" doc:"Language of emails (BCP 47). If empty, the account's"`
	TZ          *string                      `json:"tz,omitempty" maxLength:"64" doc:"Time zone. If empty, UTC"`
	Preferences map[string]*DigestPreference `json:"preferences,omitempty" doc:"Schedules by category, with * for all other categories. In a PATCH request, null removes one"`
	Quiet       *[]DigestQuiet               `json:"quiet,omitempty" maxItems:"20"`
	PausedUntil *time.Time                   `json:"pausedUntil,omitempty" doc:"End of a pause. Nothing is sent until then, and everything afterwards in one email. A time in the past ends the pause"`
}

// DigestNext is a future digest.
type DigestNext struct {
	Schedule   string    `json:"schedule"`
	Categories []string  `json:"categories" doc:"Categories. * means all categories without their own schedule"`
	At         time.Time `json:"at"`
	Words      string    `json:"words" doc:"Description, such as: every day at 08:00 (Europe/Zurich)"`
}

// DigestRecipient is a recipient of digests.
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
	Next        []DigestNext      `json:"next" doc:"The next three times at which new events would be sent, and the next time of every other schedule"`
	Waiting     map[string]int    `json:"waiting" doc:"Number of pending events by category"`
	Warnings    []string          `json:"warnings,omitempty" doc:"Warnings about the recipient: an unknown time zone, a missing address, or required categories that the recipient turned off"`
	Version     int               `json:"version"`
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// DigestRecipientPage is a page of recipients.
type DigestRecipientPage struct {
	Recipients []DigestRecipient `json:"recipients"`
	Cursor     string            `json:"cursor,omitempty" doc:"Cursor for the next page. Absent on the last page"`
}

func (p DigestRecipientPage) rows() ([]DigestRecipient, string, int) {
	return p.Recipients, p.Cursor, 0
}

// DigestRecipientQuery selects recipients.
type DigestRecipientQuery struct {
	Account  string `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
	Search   string `query:"search" maxLength:"256" doc:"Filter by ID or address (case-insensitive)"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Maximum number of rows"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it"`
}

// DigestAccount names a recipient's account. Empty means default.
type DigestAccount = AccountQuery

// DigestWaiting lists a recipient's pending events, oldest first.
type DigestWaiting struct {
	Events []DigestWaitingEvent `json:"events" doc:"The newest pending events of each category. counts includes all of them"`
	Counts map[string]int       `json:"counts" doc:"Number of events by category, including events beyond digest.keep"`
}

// DigestWaitingEvent is a pending event.
type DigestWaitingEvent struct {
	ID string `json:"id"`
	DigestEvent
}

// DigestKind is a category's settings.
type DigestKind struct {
	Category   string            `json:"category" minLength:"1" maxLength:"64"`
	Account    string            `json:"account,omitempty" maxLength:"256" doc:"Account. Defaults to default"`
	Title      map[string]string `json:"title,omitempty" doc:"Title that recipients see, by language, such as {\"en\": \"Comments\"}"`
	Preference *DigestPreference `json:"preference,omitempty" doc:"Default schedule for recipients without their own. Defaults to the setting digest.mode"`
	Required   bool              `json:"required,omitempty" doc:"Whether recipients can't turn it off"`
	Template   string            `json:"template,omitempty" maxLength:"256" doc:"ID of the stored template for emails that contain only this category. Defaults to the template digest, or to the built-in one"`
	Lane       Lane              `json:"lane,omitempty" enum:"transactional,bulk" doc:"Stream of emails that contain only this category. Defaults to the setting digest.lane"`
}

// DigestKindPatch changes the category settings that aren't nil.
type DigestKindPatch struct {
	Account    string             `json:"account,omitempty" maxLength:"256"`
	Version    *int               `json:"version,omitempty" doc:"Version that your change is based on. If the category has changed since, the response is 409 DigestKindChanged"`
	Title      map[string]string  `json:"title,omitempty"`
	Preference **DigestPreference `json:"preference,omitempty" doc:"null restores the setting digest.mode"`
	Required   *bool              `json:"required,omitempty"`
	Template   *string            `json:"template,omitempty" maxLength:"256"`
	Lane       *Lane              `json:"lane,omitempty" enum:"transactional,bulk"`
}

// DigestKindInfo is a category's stored settings.
type DigestKindInfo struct {
	DigestKind
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// DigestKindPage is a page of category settings.
type DigestKindPage struct {
	PageNumbers
	Kinds []DigestKindInfo `json:"kinds"`
}

func (p DigestKindPage) rows() ([]DigestKindInfo, string, int) { return p.Kinds, "", p.Pages }

// DigestKindQuery selects category settings.
type DigestKindQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
}

// DigestGroup is the events about one object.
type DigestGroup struct {
	Category   string          `json:"category"`
	EntityType string          `json:"entityType"`
	EntityID   string          `json:"entityId"`
	Title      string          `json:"title,omitempty" doc:"Title of the last event"`
	URL        string          `json:"url,omitempty"`
	Count      int             `json:"count"`
	First      time.Time       `json:"first"`
	Last       time.Time       `json:"last"`
	Actors     []DigestActor   `json:"actors" doc:"Newest actors, at most three"`
	Others     int             `json:"others" doc:"Number of other actors"`
	Priority   string          `json:"priority" doc:"Highest priority of its events"`
	Payload    json.RawMessage `json:"payload,omitempty" doc:"Payload of the last event"`
}

// The states of a run.
const (
	DigestPending    = "pending"    // it is due later, or waits for a retry
	DigestProcessing = "processing" // a worker has it
	DigestSubmitted  = "submitted"  // the outbox has its message
	DigestSent       = "sent"       // the relay accepted it
	DigestFailed     = "failed"     // Postroom gave up
	DigestSkipped    = "skipped"    // there was no event or no recipient
)

// DigestRun is one digest of a schedule.
type DigestRun struct {
	Run       string        `json:"run"`
	Account   string        `json:"account"`
	Recipient string        `json:"recipient"`
	Schedule  string        `json:"schedule"`
	Period    string        `json:"period" doc:"Period in the recipient's time zone: 2026-11-22, 2026-W47 or 2026-11-22T14"`
	State     string        `json:"state" enum:"pending,processing,submitted,sent,failed,skipped"`
	Reason    string        `json:"reason,omitempty" doc:"Why it was skipped or failed: empty, off, suppressed, left, erased, address, template, cancelled, or an error"`
	Scheduled time.Time     `json:"scheduled"`
	Started   *time.Time    `json:"started,omitempty"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Attempts  int           `json:"attempts"`
	Events    int           `json:"events" doc:"Number of events, including events beyond the limit"`
	QueueID   string        `json:"queueId,omitempty"`
	Groups    []DigestGroup `json:"groups,omitempty" doc:"Groups as they were sent. Only for a single run"`
	EventIDs  []string      `json:"eventIds,omitempty" doc:"IDs of the newest events, at most 1,000. Only for a single run"`
}

// DigestRunPage is a page of runs, newest first.
type DigestRunPage struct {
	Runs   []DigestRun `json:"runs"`
	Cursor string      `json:"cursor,omitempty" doc:"Cursor for the next page. Absent on the last page"`
}

func (p DigestRunPage) rows() ([]DigestRun, string, int) { return p.Runs, p.Cursor, 0 }

// DigestRunQuery selects runs.
type DigestRunQuery struct {
	Account   string    `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
	Recipient string    `query:"recipient" maxLength:"256" doc:"Filter by recipient"`
	State     string    `query:"state" enum:"pending,processing,submitted,sent,failed,skipped" doc:"Filter by state"`
	After     time.Time `query:"after" doc:"Only runs that entered their state at this time or later"`
	Before    time.Time `query:"before" doc:"Only runs that entered their state before this time"`
	CursorQuery
}

// DigestPreview is the digest that would be sent now.
type DigestPreview struct {
	Due     *time.Time      `json:"due" doc:"When the next email is due. null if nothing is pending"`
	Subject string          `json:"subject,omitempty"`
	HTML    string          `json:"html,omitempty"`
	Text    string          `json:"text,omitempty"`
	Digest  json.RawMessage `json:"digest,omitempty" doc:"Data that templates receive, as digest and as params.digest"`
	// Missing lists variables of a stored template.
	Missing []TemplateMissing `json:"missing,omitempty" doc:"Variables of the template that don't exist. They are empty"`
}

// DigestSendAnswer is the response to sending a digest now.
type DigestSendAnswer struct {
	Run    string `json:"run,omitempty"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// DigestTimesRequest requests the times of a preference.
type DigestTimesRequest struct {
	Preference DigestPreference `json:"preference"`
	Quiet      []DigestQuiet    `json:"quiet,omitempty" maxItems:"20"`
	TZ         string           `json:"tz,omitempty" maxLength:"64" doc:"Time zone. Defaults to UTC"`
	After      *time.Time       `json:"after,omitempty" doc:"Compute times after this one, from 2000 to 2100. Defaults to now"`
	Count      int              `json:"count,omitempty" minimum:"1" maximum:"100" doc:"Number of times to compute. Defaults to 1"`
}

// DigestTime is a time of a preference, without the recipient's stagger.
type DigestTime struct {
	At     time.Time `json:"at"`
	Local  string    `json:"local" doc:"Local time in the time zone"`
	Period string    `json:"period"`
	Words  string    `json:"words"`
}

// DigestTimes are the next times of a preference.
type DigestTimes struct {
	Times []DigestTime `json:"times"`
}

// PersonalDigest is a person's digest data.
type PersonalDigest struct {
	DigestRecipient
	Events []DigestWaitingEvent `json:"events"`
	Runs   []DigestRun          `json:"runs"`
}
