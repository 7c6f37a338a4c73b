package api

import (
	"encoding/json"
	"time"
)

// Campaign is a newsletter: one content, mailed once to each person that it chooses.
type Campaign struct {
	Campaign string `json:"campaign,omitempty" maxLength:"63" doc:"Its id, unique in the instance: letters, digits, dot, - and _. When absent it is made from the name"`
	Account  string `json:"account,omitempty" maxLength:"256" doc:"Who sends it; default when absent"`
	Name     string `json:"name" minLength:"1" maxLength:"256"`
	CampaignContent

	Lists            []string `json:"lists,omitempty" maxItems:"50" doc:"listIds: it goes to who is subscribed to one of them, as mail of the first that holds the person"`
	Segments         []string `json:"segments,omitempty" maxItems:"50" doc:"Of these people, only those that one of these segments selects"`
	ExcludeLists     []string `json:"excludeLists,omitempty" maxItems:"50" doc:"Nobody who is subscribed to one of these"`
	ExcludeSegments  []string `json:"excludeSegments,omitempty" maxItems:"50" doc:"Nobody whom one of these selects"`
	ExcludeCampaigns []string `json:"excludeCampaigns,omitempty" maxItems:"50" doc:"Nobody who got one of these"`

	Rate   float64         `json:"rate,omitempty" minimum:"0" doc:"Most mails a second; no limit of its own when absent or 0"`
	Window *CampaignWindow `json:"window,omitempty" doc:"When it may be sent; at any time when absent"`
	EndAt  *time.Time      `json:"endAt,omitempty" doc:"Who has not got it by then, will not"`

	Events  string `json:"events,omitempty" enum:"none,ends,all" doc:"Which events about its recipients go to webhooks: none; ends: failures, bounces, complaints and leaving (the default); all"`
	KeepLog bool   `json:"keepLog,omitempty" doc:"Its mail enters the email log and the search index"`
	Archive bool   `json:"archive,omitempty" doc:"It has a public page in the archive of its lists that are public, once it was sent"`

	Variants []CampaignVariant `json:"variants,omitempty" maxItems:"8" doc:"2 to 8 variants of its mail; each person gets one. None: all get the same"`
	Test     *CampaignTrial    `json:"test,omitempty" doc:"How the best variant is found; with the defaults when absent"`
}

// CampaignVariant is one variant of the mail of a campaign. What it leaves out is the campaign's.
type CampaignVariant struct {
	Variant     string   `json:"variant" minLength:"1" maxLength:"32" doc:"Its id, unique in the campaign: letters, digits, - and _"`
	Subject     string   `json:"subject,omitempty" maxLength:"10240"`
	PreviewText string   `json:"previewText,omitempty" maxLength:"1024"`
	From        *Address `json:"from,omitempty"`
	Template    string   `json:"template,omitempty" maxLength:"256" doc:"With this, html or text it has a content of its own"`
	HTML        string   `json:"html,omitempty"`
	Text        string   `json:"text,omitempty"`
}

// CampaignTrial says how the best variant of a campaign is found. A share of the people gets the variants by
// turns; the others wait, and get the winner.
type CampaignTrial struct {
	Share   float64 `json:"share,omitempty" minimum:"0" maximum:"1" doc:"Of the people: 0.01 to 1; 0.1 when absent or 0. With 1 nobody waits, and nothing is decided"`
	Metric  string  `json:"metric,omitempty" enum:"clicks,opens,manual" doc:"What decides: the share of the people who clicked (the default) or opened, programs apart; or manual: POST /v1/campaigns/{campaign}/winner"`
	Wait    string  `json:"wait,omitempty" doc:"How long after the last mail of the test it is decided, such as 4h (the default); at most 168h"`
	Minimum int     `json:"minimum,omitempty" minimum:"0" doc:"How many people must have got each variant, else the campaign is held; 100 when absent or 0"`
}

// CampaignContent is what the mail of a campaign says. Its words are templates, with subscriber, params, rcpt
// and campaign.
type CampaignContent struct {
	From        *Address        `json:"from,omitempty" doc:"The account's own name and address when absent"`
	ReplyTo     Addresses       `json:"replyTo,omitempty" maxItems:"100"`
	Subject     string          `json:"subject,omitempty" maxLength:"10240" doc:"The template's when absent"`
	PreviewText string          `json:"previewText,omitempty" maxLength:"1024" doc:"What mail programs show beside the subject"`
	Template    string          `json:"template,omitempty" maxLength:"256" doc:"Id of a stored template, in place of html and text"`
	HTML        string          `json:"html,omitempty" doc:"Without text, a text part is made from it"`
	Text        string          `json:"text,omitempty"`
	Render      *Render         `json:"render,omitempty" doc:"format, params and missing, as of a submit"`
	Gateway     string          `json:"gateway,omitempty" maxLength:"256" doc:"Gateway to send through; the account's own relays when absent"`
	Locale      string          `json:"locale,omitempty" maxLength:"64" doc:"Language of the mail (BCP 47); the account's when absent"`
	TZ          string          `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates, of the window and of a local send time; the account's when absent, else UTC"`
	Tags        []string        `json:"tags,omitempty" maxItems:"10"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"An object of at most 4 KiB, echoed in every event of its mail"`
	TrackOpens  *bool           `json:"trackOpens,omitempty" doc:"As of a submit"`
	TrackClicks *bool           `json:"trackClicks,omitempty" doc:"As of a submit"`
	Fallbacks   json.RawMessage `json:"fallbacks,omitempty" doc:"An object: the value of an attribute, or of name, locale or tz, for people who lack it"`
}

// CampaignWindow is the hours of the week in which a campaign is sent.
type CampaignWindow struct {
	Days  []string `json:"days,omitempty" maxItems:"7" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"Every day when absent"`
	From  string   `json:"from" doc:"Wall clock, such as 08:00"`
	Until string   `json:"until" doc:"Wall clock, such as 20:00. Before from: on the next day"`
	Of    string   `json:"of,omitempty" enum:"sender,recipient" doc:"Whose clock: the campaign's (the default), or that of each recipient whose zone is known"`
}

// CampaignPatch changes the fields of a campaign that it has. Lists, texts and objects that are empty are
// removed. A pointer to nil (null in JSON) removes trackOpens and trackClicks.
type CampaignPatch struct {
	Version          *int            `json:"version,omitempty" doc:"The version that the change is based on: if the campaign was changed since, 409 CampaignChanged"`
	Name             *string         `json:"name,omitempty" minLength:"1" maxLength:"256"`
	From             *Address        `json:"from,omitempty" doc:"With an empty address: the account's own"`
	ReplyTo          *Addresses      `json:"replyTo,omitempty" maxItems:"100"`
	Subject          *string         `json:"subject,omitempty" maxLength:"10240"`
	PreviewText      *string         `json:"previewText,omitempty" maxLength:"1024"`
	Template         *string         `json:"template,omitempty" maxLength:"256"`
	HTML             *string         `json:"html,omitempty"`
	Text             *string         `json:"text,omitempty"`
	Render           *Render         `json:"render,omitempty"`
	Gateway          *string         `json:"gateway,omitempty" maxLength:"256"`
	Locale           *string         `json:"locale,omitempty" maxLength:"64"`
	TZ               *string         `json:"tz,omitempty" maxLength:"64"`
	Tags             *[]string       `json:"tags,omitempty" maxItems:"10"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
	TrackOpens       **bool          `json:"trackOpens,omitempty" nullable:"true" doc:"null: as the account or the settings say"`
	TrackClicks      **bool          `json:"trackClicks,omitempty" nullable:"true" doc:"null: as the account or the settings say"`
	Fallbacks        json.RawMessage `json:"fallbacks,omitempty"`
	Lists            *[]string       `json:"lists,omitempty" maxItems:"50"`
	Segments         *[]string       `json:"segments,omitempty" maxItems:"50"`
	ExcludeLists     *[]string       `json:"excludeLists,omitempty" maxItems:"50"`
	ExcludeSegments  *[]string       `json:"excludeSegments,omitempty" maxItems:"50"`
	ExcludeCampaigns *[]string       `json:"excludeCampaigns,omitempty" maxItems:"50"`
	Rate             *float64        `json:"rate,omitempty" minimum:"0"`
	Window           *CampaignWindow `json:"window,omitempty" doc:"With empty from and until: none"`
	EndAt            *time.Time      `json:"endAt,omitempty" doc:"0001-01-01T00:00:00Z: none"`
	Events           *string         `json:"events,omitempty" enum:"none,ends,all"`
	KeepLog          *bool           `json:"keepLog,omitempty"`
	Archive          *bool           `json:"archive,omitempty" doc:"Alone it can change in every state. Of a campaign that was sent without it the mail is not stored any more: 409 ContentGone"`

	Variants *[]CampaignVariant `json:"variants,omitempty" maxItems:"8" doc:"Replaces all variants; empty: none"`
	Test     *CampaignTrial     `json:"test,omitempty" doc:"Replaces how the best variant is found; an empty object: the defaults"`
}

// The states of a campaign.
const (
	CampaignDraft     = "draft"
	CampaignScheduled = "scheduled"
	CampaignSending   = "sending"
	CampaignPaused    = "paused"
	CampaignHeld      = "held"
	CampaignSent      = "sent"
	CampaignCancelled = "cancelled"
	CampaignFailed    = "failed"
)

// CampaignUnderWay reports whether a campaign in a state was begun and has not ended.
func CampaignUnderWay(state string) bool {
	return state == CampaignScheduled || state == CampaignSending || state == CampaignPaused ||
		state == CampaignHeld
}

// CampaignInfo is a campaign with its state.
type CampaignInfo struct {
	Campaign
	State   string         `json:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed"`
	Reason  string         `json:"reason,omitempty" doc:"Why it is held or failed: expired, bounces, complaints, faults, account, relay, content, winner, sender. While it is being sent: quota, if it waits for one"`
	Detail  string         `json:"detail,omitempty" doc:"The reason in words"`
	Waits   *CampaignWait  `json:"waits,omitempty" doc:"What it waits for, if it has mailed nobody for some seconds while it is being sent"`
	Run     int            `json:"run" doc:"How often it was sent; 0: not yet"`
	At      *time.Time     `json:"at,omitempty" doc:"When it begins, of a scheduled one"`
	Started *time.Time     `json:"started,omitempty" doc:"When its last run began"`
	Ended   *time.Time     `json:"ended,omitempty"`
	States  CampaignStates `json:"states" doc:"Recipients of the last run by state"`
	// ArchiveURL is in the archive of its first list that is public
	ArchiveURL string `json:"archiveUrl,omitempty" doc:"Address of its public page; absent: it has none, or not yet"`
	// Warnings are about the settings alone; a check looks at the mail, too
	Warnings []CampaignFault `json:"warnings,omitempty" doc:"NoArchive: it is for the archive, but none of its lists is public"`

	Version int       `json:"version" doc:"Raised by each change"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// CampaignWait is what a campaign waits for that is being sent and has mailed nobody for some seconds.
type CampaignWait struct {
	Reason string     `json:"reason" doc:"In words: a window, a limit or the warm-up of a relay, its rate, a quota, a relay that takes no mail, newsletter.inFlight, the winner of its test"`
	Until  *time.Time `json:"until,omitempty" doc:"When it goes on or looks again; absent: unknown"`
}

// CampaignStates counts recipients by state. Each has one.
type CampaignStates struct {
	Waiting      int `json:"waiting" doc:"Not looked at yet; while the audience is being counted, those known so far"`
	Sending      int `json:"sending"`
	Sent         int `json:"sent"`
	Deferred     int `json:"deferred" doc:"To be tried again, or waiting for a limit of their domain"`
	Suppressed   int `json:"suppressed"`
	Unsubscribed int `json:"unsubscribed" doc:"Left after the campaign began and before their turn"`
	Bounced      int `json:"bounced" doc:"Refused for good by the relay because of their address, or returned"`
	Failed       int `json:"failed"`
	InDoubt      int `json:"inDoubt" doc:"The process or the connection was cut between the final dot and the reply; not sent again by itself"`
	Cancelled    int `json:"cancelled"`
}

// Total returns the number of recipients.
func (s CampaignStates) Total() int {
	return s.Open() + s.Sent + s.Suppressed + s.Unsubscribed + s.Bounced + s.Failed + s.InDoubt + s.Cancelled
}

// Open returns the number of recipients whose mail is still to be sent.
func (s CampaignStates) Open() int { return s.Waiting + s.Sending + s.Deferred }

// CampaignPage is a page of campaigns.
type CampaignPage struct {
	PageNumbers
	Campaigns []CampaignInfo `json:"campaigns"`
}

func (p CampaignPage) rows() ([]CampaignInfo, string, int) { return p.Campaigns, "", p.Pages }

// CampaignQuery selects campaigns.
type CampaignQuery struct {
	PageQuery
	Account string `query:"account" maxLength:"256" doc:"Only campaigns of this account; when absent that of the token, else all"`
	State   string `query:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed" doc:"Only those in this state"`
	ListID  string `query:"listId" maxLength:"63" doc:"Only those that go to this list"`
	Search  string `query:"search" maxLength:"256" doc:"Only those with this in their id or name; case does not matter"`
}

// CampaignCopy names the copy of a campaign.
type CampaignCopy struct {
	Campaign string `json:"campaign,omitempty" maxLength:"63" doc:"Id of the copy; made from its name when absent"`
	Name     string `json:"name,omitempty" maxLength:"256" doc:"Copy of …, when absent"`
}

// CampaignStart says when a campaign begins.
type CampaignStart struct {
	At string `query:"at" maxLength:"64" doc:"When it begins: an instant (RFC 3339), or a wall clock such as 2026-12-24T08:00 in its zone; now when absent"`

	Token      string      // id by which the quota of the token is counted; the server sets it
	TokenQuota *TokenQuota // that quota; nil: it has none
}

// CampaignRun is a campaign as a verb left it.
type CampaignRun struct {
	Campaign string     `json:"campaign"`
	State    string     `json:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed"`
	Run      int        `json:"run"`
	At       *time.Time `json:"at,omitempty"`
	Reason   string     `json:"reason,omitempty" doc:"Why no run was started"`
}

// CampaignFault is something that keeps a campaign from being sent, or a warning.
type CampaignFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// CampaignCheck is the result of checking a campaign.
type CampaignCheck struct {
	OK       bool            `json:"ok" doc:"There is no fault; there may be warnings"`
	Faults   []CampaignFault `json:"faults" doc:"It can't be sent with one of these"`
	Warnings []CampaignFault `json:"warnings"`
	Audience int             `json:"audience" doc:"How many people the lists hold; segments and exclusions may take some away"`
	Takes    string          `json:"takes,omitempty" doc:"How long it takes with its rate and through the limits of its relay, in words"`
}

// CampaignSample asks for the mail of a campaign as one person would get it.
type CampaignSample struct {
	Variant    string `json:"variant,omitempty" maxLength:"32" doc:"Which variant; the first when absent"`
	Subscriber string `json:"subscriber,omitempty" maxLength:"512" doc:"Id or address; a person of its lists when absent"`
}

// CampaignPreview is the mail of a campaign as one person would get it. Its links lead nowhere.
type CampaignPreview struct {
	Subscriber  string   `json:"subscriber,omitempty" doc:"Whom it is filled for; absent: a stand-in, because its lists have nobody"`
	Subject     string   `json:"subject"`
	PreviewText string   `json:"previewText,omitempty"`
	HTML        string   `json:"html,omitempty"`
	Text        string   `json:"text,omitempty"`
	Missing     []string `json:"missing" doc:"Variables that the person lacks, and that have no fallback"`
	Size        int      `json:"size" doc:"Bytes of the whole mail"`
}

// CampaignTest asks for the mail of a campaign at given addresses.
type CampaignTest struct {
	To         []string `json:"to" minItems:"1" maxItems:"20" doc:"Addresses that get it, with [Test] before the subject"`
	Variant    string   `json:"variant,omitempty" maxLength:"32" doc:"Which variant; the first when absent"`
	Subscriber string   `json:"subscriber,omitempty" maxLength:"512" doc:"Id or address of the person whom it is filled for; a person of its lists when absent"`

	Token      string      `json:"-"` // as of CampaignStart
	TokenQuota *TokenQuota `json:"-"`
}

// CampaignTested lists the mails of a test.
type CampaignTested struct {
	Sent []CampaignTestMail `json:"sent"`
}

// CampaignTestMail is a mail of a test.
type CampaignTestMail struct {
	To      string `json:"to"`
	QueueID string `json:"queueId,omitempty" doc:"Absent: the address is suppressed"`
}

// CampaignRecipient is what became of a person of a campaign.
type CampaignRecipient struct {
	Subscriber string     `json:"subscriber"`
	Email      string     `json:"email,omitempty" doc:"Absent: the subscriber was deleted"`
	State      string     `json:"state" enum:"sending,sent,deferred,suppressed,unsubscribed,bounced,failed,inDoubt,cancelled"`
	Run        int        `json:"run"`
	Variant    string     `json:"variant,omitempty" doc:"Which one the person gets, if it has variants"`
	QueueID    string     `json:"queueId" doc:"Id of the message"`
	MessageID  string     `json:"messageId,omitempty" doc:"Message-ID header. Absent if there was no attempt, or the subscriber was deleted"`
	Attempts   int        `json:"attempts,omitempty" doc:"Number of attempts"`
	Time       *time.Time `json:"time,omitempty" doc:"Time of the last attempt"`
	Response   string     `json:"response,omitempty" doc:"Why the recipient has this state: the relay's last reply, for example. Absent if the email was sent"`
	Delivered  bool       `json:"delivered,omitempty"`
	Opened     bool       `json:"opened,omitempty"`
	Clicked    bool       `json:"clicked,omitempty"`
	Complained bool       `json:"complained,omitempty"`
	Left       bool       `json:"left,omitempty" doc:"Unsubscribed by this mail"`
}

// CampaignRecipientQuery selects recipients of a campaign.
type CampaignRecipientQuery struct {
	State   string `query:"state" enum:"sending,sent,deferred,suppressed,unsubscribed,bounced,failed,inDoubt,cancelled" doc:"Only those in this state"`
	Variant string `query:"variant" maxLength:"32" doc:"Only those who get this variant"`
	Run     int    `query:"run" minimum:"1" doc:"Only those of this run; the last when absent"`
	Search  string `query:"search" maxLength:"256" doc:"Only those with this in their address; case does not matter"`
	CursorQuery
}

// CampaignRecipientPage is a page of recipients.
type CampaignRecipientPage struct {
	Recipients []CampaignRecipient `json:"recipients"`
	Cursor     string              `json:"cursor,omitempty" doc:"Of the next page; absent: this is the last"`
}

func (p CampaignRecipientPage) rows() ([]CampaignRecipient, string, int) {
	return p.Recipients, p.Cursor, 0
}

// CampaignSettle names recipients in doubt that are to count as sent.
type CampaignSettle struct {
	Subscribers []string `json:"subscribers,omitempty" maxItems:"10000" doc:"Ids or addresses"`
	All         bool     `json:"all,omitempty" doc:"All that are in doubt"`
}

// CampaignSettled counts them.
type CampaignSettled struct {
	Settled int `json:"settled"`
}

// CampaignResend begins the next run of a campaign.
type CampaignResend struct {
	To      string `json:"to" enum:"failed,inDoubt,notOpened,newcomers" doc:"Who gets it: those it failed for, those in doubt, those that got it and are not known to have opened it, or who subscribed since"`
	Subject string `json:"subject,omitempty" maxLength:"10240" doc:"Instead of its own"`

	Token      string      `json:"-"` // as of CampaignStart
	TokenQuota *TokenQuota `json:"-"`
}

// CampaignStatsQuery selects the numbers of a campaign.
type CampaignStatsQuery struct {
	Run int `query:"run" minimum:"1" doc:"Only this run. Without it, all runs are counted together, and each person once"`
}

// CampaignNumbers counts the recipients of one run, or of all runs together: then each person counts once, as
// sent if a run reached them, else with the state of the last run that had them.
type CampaignNumbers struct {
	Audience int            `json:"audience" doc:"People it goes to: the sum of states"`
	Counting bool           `json:"counting,omitempty" doc:"The audience is still being counted"`
	States   CampaignStates `json:"states"`

	Delivered    int `json:"delivered" doc:"People; of these and the next numbers each counts once"`
	Complained   int `json:"complained"`
	Left         int `json:"left"`
	Opened       int `json:"opened"`
	OpenedTotal  int `json:"openedTotal" doc:"Opens, however often a person opened it"`
	OpenedBots   int `json:"openedBots" doc:"People whose mail was opened by a program"`
	Clicked      int `json:"clicked"`
	ClickedTotal int `json:"clickedTotal"`
	ClickedBots  int `json:"clickedBots"`

	Rate      float64    `json:"rate" doc:"Mails a second since the run began"`
	Started   *time.Time `json:"started,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	Recounted *time.Time `json:"recounted,omitempty" doc:"When the counters were last compared with what is stored of each recipient"`
}

// CampaignRunStats counts the recipients of one run.
type CampaignRunStats struct {
	Run int    `json:"run"`
	To  string `json:"to,omitempty" doc:"Whom the run went to, if it wasn't the first"`
	CampaignNumbers
}

// CampaignStats has the numbers of a campaign. Links, hours and domains add up the emails of the runs.
type CampaignStats struct {
	Campaign string        `json:"campaign"`
	State    string        `json:"state"`
	Waits    *CampaignWait `json:"waits,omitempty" doc:"What it waits for, if it has mailed nobody for some seconds while it is being sent"`
	Run      int           `json:"run" doc:"The run asked for, or the last one"`
	CampaignNumbers
	Runs []CampaignRunStats `json:"runs" doc:"The numbers of each run"`

	Winner   string            `json:"winner,omitempty" doc:"The variant that those got who were not in the test"`
	Decided  *time.Time        `json:"decided,omitempty" doc:"When the winner was decided"`
	Decides  *time.Time        `json:"decides,omitempty" doc:"When the winner will be decided, once all mail of the test was sent"`
	Variants []CampaignOutcome `json:"variants,omitempty" doc:"In the order of the campaign"`

	Links   []CampaignLink   `json:"links" doc:"The most clicked first"`
	Hours   []CampaignHour   `json:"hours" doc:"Mails, opens and clicks by hour"`
	Domains []CampaignDomain `json:"domains" doc:"Recipients by the domain of their address, the largest first"`
}

// CampaignOutcome is what became of the people of a variant. Each counts once.
type CampaignOutcome struct {
	Variant string         `json:"variant"`
	Test    int            `json:"test" doc:"People who got it in the test"`
	States  CampaignStates `json:"states"`

	Delivered   int `json:"delivered"`
	Complained  int `json:"complained"`
	Left        int `json:"left"`
	Opened      int `json:"opened"`
	OpenedBots  int `json:"openedBots"`
	Clicked     int `json:"clicked"`
	ClickedBots int `json:"clickedBots"`
}

// CampaignWinner names the winner of a test.
type CampaignWinner struct {
	Variant string `json:"variant" minLength:"1" maxLength:"32"`
}

// CampaignLink is a link of a campaign.
type CampaignLink struct {
	URL    string `json:"url"`
	Clicks int    `json:"clicks"`
}

// CampaignHour is an hour of a campaign.
type CampaignHour struct {
	Hour   time.Time `json:"hour"`
	Sent   int       `json:"sent"`
	Opens  int       `json:"opens"`
	Clicks int       `json:"clicks"`
}

// CampaignDomain is a domain of recipients.
type CampaignDomain struct {
	Domain  string `json:"domain"`
	Sent    int    `json:"sent"`
	Bounced int    `json:"bounced"`
	Failed  int    `json:"failed"`
	Opened  int    `json:"opened" doc:"People; who was deleted before is not counted by domain"`
	Clicked int    `json:"clicked" doc:"People, as opened"`
}

// CampaignRecount compares the counters of a campaign with what is stored of each recipient.
type CampaignRecount struct {
	Changed bool           `json:"changed" doc:"A counter was wrong, and is right now"`
	Before  CampaignStates `json:"before"`
	After   CampaignStates `json:"after"`
}
