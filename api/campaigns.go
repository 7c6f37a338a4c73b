package api

import (
	"encoding/json"
	"time"
)

// Campaign is a newsletter, sent once to each person in its audience.
type Campaign struct {
	Campaign string `json:"campaign,omitempty" maxLength:"63" doc:"ID, unique in the instance: letters, digits, dot, - and _. Defaults to an ID made from the name"`
	Account  string `json:"account,omitempty" maxLength:"256" doc:"Account that sends it. Defaults to default"`
	Name     string `json:"name" minLength:"1" maxLength:"256"`
	CampaignContent

	Lists            []string `json:"lists,omitempty" maxItems:"50" doc:"IDs of the lists whose subscribers receive it. Someone on several lists gets it once, as a message of the first of them"`
	Segments         []string `json:"segments,omitempty" maxItems:"50" doc:"IDs of segments. Only people who match one of them receive it"`
	ExcludeLists     []string `json:"excludeLists,omitempty" maxItems:"50" doc:"IDs of lists whose subscribers don't receive it"`
	ExcludeSegments  []string `json:"excludeSegments,omitempty" maxItems:"50" doc:"IDs of segments. People who match one of them don't receive it"`
	ExcludeCampaigns []string `json:"excludeCampaigns,omitempty" maxItems:"50" doc:"IDs of campaigns. People who received one of them don't receive this one"`

	Rate   float64         `json:"rate,omitempty" minimum:"0" doc:"Maximum emails per second. Defaults to 0, which adds no limit"`
	Window *CampaignWindow `json:"window,omitempty" doc:"When Postroom may send it. Defaults to any time"`
	EndAt  *time.Time      `json:"endAt,omitempty" doc:"When to stop sending. Remaining recipients don't get the campaign"`

	Events  string `json:"events,omitempty" enum:"none,ends,all" doc:"Events about recipients to send to webhooks: none, ends (failures, bounces, complaints and unsubscribes; the default) or all"`
	KeepLog bool   `json:"keepLog,omitempty" doc:"Whether its messages appear in the email log and the search index"`
	Archive bool   `json:"archive,omitempty" doc:"Whether it has a page in the archive of its public lists after it was sent"`

	Variants []CampaignVariant `json:"variants,omitempty" maxItems:"8" doc:"Between 2 and 8 variants of the message. Each recipient gets one of them. Without variants, everyone gets the same message"`
	Test     *CampaignTrial    `json:"test,omitempty" doc:"How to find the best variant. Each field has a default"`
}

// CampaignVariant is one variant of a campaign's content. It inherits each field that it doesn't set.
type CampaignVariant struct {
	Variant     string   `json:"variant" minLength:"1" maxLength:"32" doc:"ID, unique in the campaign: letters, digits, - and _"`
	Subject     string   `json:"subject,omitempty" maxLength:"10240"`
	PreviewText string   `json:"previewText,omitempty" maxLength:"1024"`
	From        *Address `json:"from,omitempty"`
	Template    string   `json:"template,omitempty" maxLength:"256" doc:"ID of a stored template. A variant with a template, html or text doesn't inherit the campaign's content"`
	HTML        string   `json:"html,omitempty"`
	Text        string   `json:"text,omitempty"`
}

// CampaignTrial configures the test that finds a campaign's best variant. A share of the recipients gets the
// variants in turn. The others wait and get the winner.
type CampaignTrial struct {
	Share   float64 `json:"share,omitempty" minimum:"0" maximum:"1" doc:"Share of recipients in the test, from 0.01 to 1. Defaults to 0.1. With 1, everyone is in the test and there is no decision"`
	Metric  string  `json:"metric,omitempty" enum:"clicks,opens,manual" doc:"How to decide: by share of recipients who clicked (the default) or opened, without bots, or with POST /v1/campaigns/{campaign}/winner (manual)"`
	Wait    string  `json:"wait,omitempty" doc:"Time between the test's last message and the decision, such as 4h (the default). At most 168h"`
	Minimum int     `json:"minimum,omitempty" minimum:"0" doc:"Minimum number of recipients for each variant. With fewer, the campaign is held. Defaults to 100"`
}

// CampaignContent is a campaign's content. Its texts are templates with subscriber, params, rcpt
// and campaign.
type CampaignContent struct {
	From        *Address        `json:"from,omitempty" doc:"Sender. Defaults to the account's name and address"`
	ReplyTo     Addresses       `json:"replyTo,omitempty" maxItems:"100"`
	Subject     string          `json:"subject,omitempty" maxLength:"10240" doc:"Subject. Defaults to the template's subject"`
	PreviewText string          `json:"previewText,omitempty" maxLength:"1024" doc:"Text that email programs show next to the subject"`
	Template    string          `json:"template,omitempty" maxLength:"256" doc:"ID of a stored template, used instead of html and text"`
	HTML        string          `json:"html,omitempty" doc:"HTML content. If text is absent, Postroom generates a text part from it"`
	Text        string          `json:"text,omitempty"`
	Render      *Render         `json:"render,omitempty" doc:"How to fill in the content: format, params and missing, as in a submit request"`
	Gateway     string          `json:"gateway,omitempty" maxLength:"256" doc:"ID of the gateway to send through. Defaults to the account's relays"`
	Locale      string          `json:"locale,omitempty" maxLength:"64" doc:"Language of the message (BCP 47). Defaults to the account's"`
	TZ          string          `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates, the window and a local send time. Defaults to the account's, or to UTC"`
	Tags        []string        `json:"tags,omitempty" maxItems:"10"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"JSON object of at most 4 KiB, included in every event"`
	TrackOpens  *bool           `json:"trackOpens,omitempty" doc:"Whether to track opens, as in a submit request"`
	TrackClicks *bool           `json:"trackClicks,omitempty" doc:"Whether to track clicks, as in a submit request"`
	Fallbacks   json.RawMessage `json:"fallbacks,omitempty" doc:"JSON object with values for people who lack an attribute, a name, a locale or a tz"`
}

// CampaignWindow limits sending to some hours of the week.
type CampaignWindow struct {
	Days  []string `json:"days,omitempty" maxItems:"7" enum:"mon,tue,wed,thu,fri,sat,sun" doc:"Days on which to send. Defaults to every day"`
	From  string   `json:"from" doc:"Start of the window as local time, such as 08:00"`
	Until string   `json:"until" doc:"End of the window as local time, such as 20:00. If it is earlier than from, the window ends the next day"`
	Of    string   `json:"of,omitempty" enum:"sender,recipient" doc:"Time zone that applies: the campaign's (sender, the default), or the recipient's if it is known"`
}

// CampaignPatch changes the fields of a campaign that aren't nil. Empty lists, texts and objects are
// removed. A pointer to nil (null in JSON) removes trackOpens and trackClicks.
type CampaignPatch struct {
	Version          *int            `json:"version,omitempty" doc:"Version that your change is based on. If the campaign has changed since, the response is 409 CampaignChanged"`
	Name             *string         `json:"name,omitempty" minLength:"1" maxLength:"256"`
	From             *Address        `json:"from,omitempty" doc:"Sender. An empty address restores the account's"`
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
	TrackOpens       **bool          `json:"trackOpens,omitempty" nullable:"true" doc:"null restores the default of the account or the settings"`
	TrackClicks      **bool          `json:"trackClicks,omitempty" nullable:"true" doc:"null restores the default of the account or the settings"`
	Fallbacks        json.RawMessage `json:"fallbacks,omitempty"`
	Lists            *[]string       `json:"lists,omitempty" maxItems:"50"`
	Segments         *[]string       `json:"segments,omitempty" maxItems:"50"`
	ExcludeLists     *[]string       `json:"excludeLists,omitempty" maxItems:"50"`
	ExcludeSegments  *[]string       `json:"excludeSegments,omitempty" maxItems:"50"`
	ExcludeCampaigns *[]string       `json:"excludeCampaigns,omitempty" maxItems:"50"`
	Rate             *float64        `json:"rate,omitempty" minimum:"0"`
	Window           *CampaignWindow `json:"window,omitempty" doc:"When Postroom may send it. Empty from and until remove the window"`
	EndAt            *time.Time      `json:"endAt,omitempty" doc:"When to stop sending. 0001-01-01T00:00:00Z removes it"`
	Events           *string         `json:"events,omitempty" enum:"none,ends,all"`
	KeepLog          *bool           `json:"keepLog,omitempty"`
	Archive          *bool           `json:"archive,omitempty" doc:"Whether it has an archive page. You can change this field alone in every state. If the campaign was sent without it, its content isn't stored, and the response is 409 ContentGone"`

	Variants *[]CampaignVariant `json:"variants,omitempty" maxItems:"8" doc:"Replaces all variants. An empty list removes them"`
	Test     *CampaignTrial     `json:"test,omitempty" doc:"Replaces the test's options. An empty object restores the defaults"`
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

// CampaignUnderWay reports whether a campaign in a state has started and isn't finished.
func CampaignUnderWay(state string) bool {
	return state == CampaignScheduled || state == CampaignSending || state == CampaignPaused ||
		state == CampaignHeld
}

// CampaignInfo is a campaign with its state.
type CampaignInfo struct {
	Campaign
	State   string         `json:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed"`
	Reason  string         `json:"reason,omitempty" doc:"Why it is held or failed: expired, bounces, complaints, faults, account, relay, content, winner or sender. While it is sending, quota if it waits for a quota"`
	Detail  string         `json:"detail,omitempty" doc:"Description of the reason"`
	Waits   *CampaignWait  `json:"waits,omitempty" doc:"What the campaign waits for, if it has sent nothing for some seconds"`
	Run     int            `json:"run" doc:"Number of times that it was sent. 0 if it wasn't sent yet"`
	At      *time.Time     `json:"at,omitempty" doc:"Scheduled start time"`
	Started *time.Time     `json:"started,omitempty" doc:"Start of its last run"`
	Ended   *time.Time     `json:"ended,omitempty"`
	States  CampaignStates `json:"states" doc:"Number of recipients of the last run by state"`
	// ArchiveURL is in the archive of its first public list
	ArchiveURL string `json:"archiveUrl,omitempty" doc:"URL of its archive page. Absent until it has one"`
	// Warnings are only about the settings; a check also covers the content
	Warnings []CampaignFault `json:"warnings,omitempty" doc:"Warnings. NoArchive means that it should be archived, but none of its lists is public"`

	Version int       `json:"version" doc:"Version number, raised by each change"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// CampaignWait is the reason why a campaign has sent nothing for some seconds.
type CampaignWait struct {
	Reason string     `json:"reason" doc:"Description of the reason: the window, a relay's limit or warm-up, the campaign's rate, a quota, an unavailable relay, newsletter.inFlight, or the test's result"`
	Until  *time.Time `json:"until,omitempty" doc:"When it continues or checks again. Absent if unknown"`
}

// CampaignStates counts recipients by state. Each recipient has one state.
type CampaignStates struct {
	Waiting      int `json:"waiting" doc:"Recipients not processed yet. While the audience is being counted, the number found so far"`
	Sending      int `json:"sending"`
	Sent         int `json:"sent"`
	Deferred     int `json:"deferred" doc:"Recipients whose message will be retried, or waits for a limit of their domain"`
	Suppressed   int `json:"suppressed"`
	Unsubscribed int `json:"unsubscribed" doc:"People who unsubscribed after the campaign started and before their message was sent"`
	Bounced      int `json:"bounced" doc:"Recipients whose address the relay rejected permanently, or whose message bounced"`
	Failed       int `json:"failed"`
	InDoubt      int `json:"inDoubt" doc:"Recipients for whom the process or connection broke between the end of the message and the reply. Postroom doesn't retry these automatically"`
	Cancelled    int `json:"cancelled"`
}

// Total returns the number of recipients.
func (s CampaignStates) Total() int {
	return s.Open() + s.Sent + s.Suppressed + s.Unsubscribed + s.Bounced + s.Failed + s.InDoubt + s.Cancelled
}

// Open returns the number of recipients whose message hasn't been sent yet.
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
	Account string `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
	State   string `query:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed" doc:"Filter by state"`
	ListID  string `query:"listId" maxLength:"63" doc:"Filter by list that the campaign sends to"`
	Search  string `query:"search" maxLength:"256" doc:"Filter by ID or name (case-insensitive)"`
}

// CampaignCopy names the copy of a campaign.
type CampaignCopy struct {
	Campaign string `json:"campaign,omitempty" maxLength:"63" doc:"ID of the copy. Defaults to an ID made from its name"`
	Name     string `json:"name,omitempty" maxLength:"256" doc:"Name of the copy. Defaults to Copy of and the campaign's name"`
}

// CampaignStart sets the start time of a campaign.
type CampaignStart struct {
	At string `query:"at" maxLength:"64" doc:"When to start: an RFC 3339 time, or a local time such as 2026-12-24T08:00 in the campaign's time zone. Defaults to now"`

	Token      string      // token ID that the quota counts by; the server sets it
	TokenQuota *TokenQuota // the token's quota, or nil
}

// CampaignRun is a campaign after a state change.
type CampaignRun struct {
	Campaign string     `json:"campaign"`
	State    string     `json:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed"`
	Run      int        `json:"run"`
	At       *time.Time `json:"at,omitempty"`
	Reason   string     `json:"reason,omitempty" doc:"Why no run started"`
}

// CampaignFault is an error that prevents sending a campaign, or a warning.
type CampaignFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// CampaignCheck is the result of checking a campaign.
type CampaignCheck struct {
	OK       bool            `json:"ok" doc:"Whether the campaign can be sent. There may be warnings"`
	Faults   []CampaignFault `json:"faults" doc:"Problems that prevent sending"`
	Warnings []CampaignFault `json:"warnings"`
	Audience int             `json:"audience" doc:"Number of people on the lists, before segments and exclusions apply"`
	Takes    string          `json:"takes,omitempty" doc:"Estimated duration, given the campaign's rate and the limits of its relay"`
}

// CampaignSample requests a preview of a campaign for one subscriber.
type CampaignSample struct {
	Variant    string `json:"variant,omitempty" maxLength:"32" doc:"ID of the variant. Defaults to the first"`
	Subscriber string `json:"subscriber,omitempty" maxLength:"512" doc:"Subscriber's ID or address. Defaults to someone on the campaign's lists"`
}

// CampaignPreview is a campaign's message as one subscriber would see it. Its links don't work.
type CampaignPreview struct {
	Subscriber  string   `json:"subscriber,omitempty" doc:"Subscriber whose data fills in the content. Absent if the lists are empty and sample data was used"`
	Subject     string   `json:"subject"`
	PreviewText string   `json:"previewText,omitempty"`
	HTML        string   `json:"html,omitempty"`
	Text        string   `json:"text,omitempty"`
	Missing     []string `json:"missing" doc:"Variables that the subscriber lacks and that have no fallback"`
	Size        int      `json:"size" doc:"Size of the whole message in bytes"`
}

// CampaignTest sends a campaign's message to given addresses.
type CampaignTest struct {
	To         []string `json:"to" minItems:"1" maxItems:"20" doc:"Addresses that receive it, with [Test] before the subject"`
	Variant    string   `json:"variant,omitempty" maxLength:"32" doc:"ID of the variant. Defaults to the first"`
	Subscriber string   `json:"subscriber,omitempty" maxLength:"512" doc:"ID or address of the subscriber whose data fills in the content. Defaults to someone on the campaign's lists"`

	Token      string      `json:"-"` // as in CampaignStart
	TokenQuota *TokenQuota `json:"-"`
}

// CampaignTested lists the messages of a test.
type CampaignTested struct {
	Sent []CampaignTestMail `json:"sent"`
}

// CampaignTestMail is a test message.
type CampaignTestMail struct {
	To      string `json:"to"`
	QueueID string `json:"queueId,omitempty" doc:"ID of the test message. Absent if the address is suppressed"`
}

// CampaignRecipient is a recipient of a campaign with the result.
type CampaignRecipient struct {
	Subscriber string     `json:"subscriber"`
	Email      string     `json:"email,omitempty" doc:"Subscriber's address. Absent if the subscriber was deleted"`
	State      string     `json:"state" enum:"sending,sent,deferred,suppressed,unsubscribed,bounced,failed,inDoubt,cancelled"`
	Run        int        `json:"run"`
	Variant    string     `json:"variant,omitempty" doc:"Variant that the recipient gets, if the campaign has variants"`
	QueueID    string     `json:"queueId" doc:"ID of the message"`
	MessageID  string     `json:"messageId,omitempty" doc:"Message-ID header. Absent if there was no attempt, or the subscriber was deleted"`
	Attempts   int        `json:"attempts,omitempty" doc:"Number of attempts"`
	Time       *time.Time `json:"time,omitempty" doc:"Time of the last attempt"`
	Response   string     `json:"response,omitempty" doc:"Why the recipient has this state: the relay's last reply, for example. Absent if the email was sent"`
	Delivered  bool       `json:"delivered,omitempty"`
	Opened     bool       `json:"opened,omitempty"`
	Clicked    bool       `json:"clicked,omitempty"`
	Complained bool       `json:"complained,omitempty"`
	Left       bool       `json:"left,omitempty" doc:"Whether the recipient unsubscribed with this email"`
}

// CampaignRecipientQuery selects recipients of a campaign.
type CampaignRecipientQuery struct {
	State   string `query:"state" enum:"sending,sent,deferred,suppressed,unsubscribed,bounced,failed,inDoubt,cancelled" doc:"Filter by state"`
	Variant string `query:"variant" maxLength:"32" doc:"Filter by variant"`
	Run     int    `query:"run" minimum:"1" doc:"Run of the campaign. Defaults to the last"`
	Search  string `query:"search" maxLength:"256" doc:"Filter by address (case-insensitive)"`
	CursorQuery
}

// CampaignRecipientPage is a page of recipients.
type CampaignRecipientPage struct {
	Recipients []CampaignRecipient `json:"recipients"`
	Cursor     string              `json:"cursor,omitempty" doc:"Cursor for the next page. Absent on the last page"`
}

func (p CampaignRecipientPage) rows() ([]CampaignRecipient, string, int) {
	return p.Recipients, p.Cursor, 0
}

// CampaignSettle selects recipients in doubt to mark as sent.
type CampaignSettle struct {
	Subscribers []string `json:"subscribers,omitempty" maxItems:"10000" doc:"IDs or addresses of subscribers"`
	All         bool     `json:"all,omitempty" doc:"Whether to mark all recipients in doubt"`
}

// CampaignSettled counts the marked recipients.
type CampaignSettled struct {
	Settled int `json:"settled"`
}

// CampaignResend starts another run of a campaign.
type CampaignResend struct {
	To      string `json:"to" enum:"failed,inDoubt,notOpened,newcomers" doc:"Recipients of the new run: failed, inDoubt, notOpened (received it and aren't known to have opened it), or newcomers (subscribed since)"`
	Subject string `json:"subject,omitempty" maxLength:"10240" doc:"Subject of the new run. Defaults to the campaign's subject"`

	Token      string      `json:"-"` // as in CampaignStart
	TokenQuota *TokenQuota `json:"-"`
}

// CampaignStatsQuery selects the numbers of a campaign.
type CampaignStatsQuery struct {
	Run int `query:"run" minimum:"1" doc:"Run of the campaign. Without it, the numbers cover all runs, and each person counts once"`
}

// CampaignNumbers counts the recipients of one run or of all runs. With all runs, each person counts once: as
// sent if a run reached them, otherwise with the state in their last run.
type CampaignNumbers struct {
	Audience int            `json:"audience" doc:"Number of recipients, which is the sum of all states"`
	Counting bool           `json:"counting,omitempty" doc:"Whether Postroom is still counting the audience"`
	States   CampaignStates `json:"states"`

	Delivered    int `json:"delivered" doc:"Number of people whose message was reported as delivered. Like the numbers below, it counts each person once"`
	Complained   int `json:"complained"`
	Left         int `json:"left"`
	Opened       int `json:"opened"`
	OpenedTotal  int `json:"openedTotal" doc:"Number of opens, including repeated ones"`
	OpenedBots   int `json:"openedBots" doc:"Number of people whose message was opened by a bot"`
	Clicked      int `json:"clicked"`
	ClickedTotal int `json:"clickedTotal"`
	ClickedBots  int `json:"clickedBots"`

	Rate      float64    `json:"rate" doc:"Emails per second since the run started"`
	Started   *time.Time `json:"started,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	Recounted *time.Time `json:"recounted,omitempty" doc:"When the counters were last compared with the stored recipients"`
}

// CampaignRunStats counts the recipients of one run.
type CampaignRunStats struct {
	Run int    `json:"run"`
	To  string `json:"to,omitempty" doc:"Recipients of the run. Absent for the first run"`
	CampaignNumbers
}

// CampaignStats has the numbers of a campaign. Links, hours and domains add up the emails of the runs.
type CampaignStats struct {
	Campaign string        `json:"campaign"`
	State    string        `json:"state"`
	Waits    *CampaignWait `json:"waits,omitempty" doc:"What the campaign waits for, if it has sent nothing for some seconds"`
	Run      int           `json:"run" doc:"The requested run, or the last one"`
	CampaignNumbers
	Runs []CampaignRunStats `json:"runs" doc:"Numbers of each run"`

	Winner   string            `json:"winner,omitempty" doc:"Variant that the recipients outside the test received"`
	Decided  *time.Time        `json:"decided,omitempty" doc:"When the winner was decided"`
	Decides  *time.Time        `json:"decides,omitempty" doc:"When the winner will be decided. Absent until the test's messages have been sent"`
	Variants []CampaignOutcome `json:"variants,omitempty" doc:"Variants, in the campaign's order"`

	Links   []CampaignLink   `json:"links" doc:"Links, most clicked first"`
	Hours   []CampaignHour   `json:"hours" doc:"Emails, opens and clicks by hour"`
	Domains []CampaignDomain `json:"domains" doc:"Recipients by domain of their address, largest first"`
}

// CampaignOutcome counts the results of a variant. Each person counts once.
type CampaignOutcome struct {
	Variant string         `json:"variant"`
	Test    int            `json:"test" doc:"Number of people who received it in the test"`
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
	Opened  int    `json:"opened" doc:"Number of people who opened it, without deleted subscribers"`
	Clicked int    `json:"clicked" doc:"Number of people who clicked, without deleted subscribers"`
}

// CampaignRecount is the result of recalculating a campaign's counters from its recipients.
type CampaignRecount struct {
	Changed bool           `json:"changed" doc:"Whether a counter was wrong. It is correct now"`
	Before  CampaignStates `json:"before"`
	After   CampaignStates `json:"after"`
}
