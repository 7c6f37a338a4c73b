package apiadmin

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// SuppressionPage is a part of a provider's suppression list.
type SuppressionPage struct {
	Entries []Suppressed
	Skipped int    // entries that stop only some mail, for example of one tag
	Next    string // cursor of the next page; empty on the last
	Note    string // what the list lacks, for the operator, if anything
}

// Suppressed is an address that a provider doesn't send to.
type Suppressed struct {
	Address string
	// ReasonBounced, ReasonSpam or ReasonUnsubscribed; ReasonOther: a person added it
	Reason  provider.Reason
	Since   time.Time // zero if not known
	Until   time.Time // zero means permanently
	Comment string    // the provider's words
}

// lists has the providers whose suppression list can be read. Mailjet's can't: it belongs to contacts.
var lists = map[api.GatewayType]func(c *Client, ctx context.Context, t apisend.Target, cursor string) (
	SuppressionPage, error){
	api.GatewaySES: (*Client).sesList, api.GatewaySendGrid: (*Client).sendGridLists,
	api.GatewayMailgun: (*Client).mailgunLists, api.GatewayPostmark: (*Client).postmarkLists,
	api.GatewaySparkPost: (*Client).sparkPostList, api.GatewayBrevo: (*Client).brevoList,
	api.GatewayResend: (*Client).resendList, api.GatewayMandrill: (*Client).mandrillList,
}

// HasSuppressions reports whether the suppression list of a provider can be read.
func HasSuppressions(t api.GatewayType) bool { return lists[t] != nil }

// Suppressions reads one page of a provider's suppression list. cursor is empty for the first page, then Next
// of the page before; it may be kept for days. Before the request it waits until the gateway's turn.
func (c *Client) Suppressions(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage, error) {
	read := lists[t.Type]
	if read == nil {
		return SuppressionPage{}, ErrLacking
	}
	if err := c.turn(ctx, t, gap); err != nil {
		return SuppressionPage{}, err
	}
	page, err := read(c, ctx, t, cursor)
	if err == nil && cursor != "" && page.Next == cursor {
		err = strange("the list has no end: a page leads to itself")
	}
	return page, err
}

// reasons are providers' terms for why an address is on their list, in lower case.
var reasons = map[string]provider.Reason{
	"bounce": provider.ReasonBounced, "complaint": provider.ReasonSpam, // ses, resend
	"hardbounce": provider.ReasonBounced, "spamcomplaint": provider.ReasonSpam, // postmark, brevo
	"contactflaggedasspam": provider.ReasonSpam, "unsubscribedviama": provider.ReasonUnsubscribed, // brevo
	"unsubscribedviaemail": provider.ReasonUnsubscribed, "unsubscribedviaapi": provider.ReasonUnsubscribed,
	"bounce rule": provider.ReasonBounced, "spam complaint": provider.ReasonSpam, // sparkpost
	"list unsubscribe": provider.ReasonUnsubscribed, "unsubscribe link": provider.ReasonUnsubscribed,
	"hard-bounce": provider.ReasonBounced, "soft-bounce": provider.ReasonBounced, // mandrill
	"spam": provider.ReasonSpam, "unsub": provider.ReasonUnsubscribed,
}

// reason returns what a provider's word means; an unknown one says that somebody added the address.
func reason(word string) provider.Reason {
	if r := reasons[strings.ToLower(word)]; r != "" {
		return r
	}
	return provider.ReasonOther
}

func (p *SuppressionPage) add(address string, why provider.Reason, since time.Time, comment string) {
	p.Entries = append(p.Entries, Suppressed{Address: address, Reason: why, Since: since, Comment: comment})
}

func (c *Client) sesList(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage, error) {
	query := url.Values{"PageSize": {"1000"}}
	if cursor != "" {
		query.Set("NextToken", cursor)
	}
	var answer struct {
		Found []struct {
			EmailAddress, Reason string
			LastUpdateTime       float64
		} `json:"SuppressedDestinationSummaries"`
		NextToken string
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: path("/v2/email/suppression/addresses", query)}, &answer)
	for _, e := range answer.Found {
		page.add(e.EmailAddress, reason(e.Reason), unix(e.LastUpdateTime), "")
	}
	page.Next = answer.NextToken
	return page, err
}

// unix returns a time in seconds since 1970; zero if none.
func unix(seconds float64) time.Time {
	if seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// several are the lists of a provider that has one for each reason.
type several []struct {
	name string
	why  provider.Reason
}

// at returns the number of the list that a cursor is in, and the rest of the cursor.
func (s several) at(cursor string) (int, string) {
	name, rest, _ := strings.Cut(cursor, "|")
	for i := range s {
		if s[i].name == name {
			return i, rest
		}
	}
	return 0, ""
}

// next returns the cursor after a page of a list; rest is empty at its end.
func (s several) next(i int, rest string) string {
	switch {
	case rest != "":
		return s[i].name + "|" + rest
	case i+1 < len(s):
		return s[i+1].name + "|"
	}
	return ""
}

// sendGridOwn has SendGrid's lists, without blocks: SendGrid sends to those addresses.
var sendGridOwn = several{{"bounces", provider.ReasonBounced}, {"invalid_emails", provider.ReasonBounced},
	{"spam_reports", provider.ReasonSpam}, {"unsubscribes", provider.ReasonUnsubscribed}}

func (c *Client) sendGridLists(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage,
	error) {
	const most = 500
	i, rest := sendGridOwn.at(cursor)
	query := url.Values{"limit": {strconv.Itoa(most)}, "offset": {strconv.Itoa(number(rest))}}
	var found []struct {
		Email, Reason string
		Created       float64
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: path("/v3/suppression/"+sendGridOwn[i].name, query)}, &found)
	for _, e := range found {
		page.add(e.Email, sendGridOwn[i].why, unix(e.Created), e.Reason)
	}
	rest = ""
	if len(found) > 0 {
		rest = strconv.Itoa(number(strings.TrimPrefix(cursor, sendGridOwn[i].name+"|")) + len(found))
	}
	page.Next = sendGridOwn.next(i, rest)
	return page, err
}

// mailgunOwn has Mailgun's lists.
var mailgunOwn = several{{"bounces", provider.ReasonBounced}, {"complaints", provider.ReasonSpam},
	{"unsubscribes", provider.ReasonUnsubscribed}}

func (c *Client) mailgunLists(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage, error) {
	i, at := mailgunOwn.at(cursor)
	if at == "" {
		at = path("/v3/"+url.PathEscape(t.Domain)+"/"+mailgunOwn[i].name, url.Values{"limit": {"1000"}})
	}
	var answer struct {
		Items []struct {
			Address, Error string
			Tags           []string
			Created        string `json:"created_at"`
		}
		Paging struct{ Next string }
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: at}, &answer)
	for _, e := range answer.Items {
		if len(e.Tags) > 0 && !slices.Contains(e.Tags, "*") { // only mail with these tags
			page.Skipped++
			continue
		}
		page.add(e.Address, mailgunOwn[i].why, moment(e.Created), e.Error)
	}
	rest := ""
	if err == nil && len(answer.Items) > 0 {
		rest, err = following(t, answer.Paging.Next)
	}
	page.Next = mailgunOwn.next(i, rest)
	return page, err
}

// postmarkOwn has Postmark's reasons. It answers each list whole.
var postmarkOwn = several{{"HardBounce", provider.ReasonBounced}, {"SpamComplaint", provider.ReasonSpam},
	{"ManualSuppression", provider.ReasonUnsubscribed}}

func (c *Client) postmarkLists(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage,
	error) {
	i, _ := postmarkOwn.at(cursor)
	stream := "outbound"
	if t.Stream != "" {
		stream = t.Stream
	}
	var answer struct {
		Suppressions []struct{ EmailAddress, SuppressionReason, Origin, CreatedAt string }
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: path("/message-streams/"+url.PathEscape(stream)+
		"/suppressions/dump", url.Values{"SuppressionReason": {postmarkOwn[i].name}})}, &answer)
	for _, e := range answer.Suppressions {
		why := postmarkOwn[i].why
		if e.SuppressionReason == "ManualSuppression" && e.Origin != "Recipient" {
			why = provider.ReasonOther
		}
		page.add(e.EmailAddress, why, moment(e.CreatedAt), "")
	}
	page.Next = postmarkOwn.next(i, "")
	return page, err
}

func (c *Client) sparkPostList(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage,
	error) {
	if cursor == "" {
		cursor = path("/api/v1/suppression-list", url.Values{"cursor": {"initial"}, "per_page": {"1000"}})
	}
	var answer struct {
		Results []struct{ Recipient, Type, Source, Description, Created string }
		Links   json.RawMessage
	}
	var page SuppressionPage
	if err := c.call(ctx, t, apisend.Call{Path: cursor}, &answer); err != nil {
		return page, err
	}
	for _, e := range answer.Results {
		why := reason(e.Source)
		if e.Type == "non_transactional" && why == provider.ReasonOther {
			why = provider.ReasonUnsubscribed // transactional mail still goes out
		}
		page.add(e.Recipient, why, moment(e.Created), e.Description)
	}
	var err error
	page.Next, err = following(t, nextLink(answer.Links))
	return page, err
}

func (c *Client) brevoList(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage, error) {
	at := number(cursor)
	var answer struct {
		Contacts []struct {
			Email, BlockedAt string
			Reason           struct{ Code, Message string }
		}
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: path("/v3/smtp/blockedContacts", url.Values{"limit": {"100"},
		"offset": {strconv.Itoa(at)}, "sort": {"asc"}})}, &answer)
	for _, e := range answer.Contacts {
		page.add(e.Email, reason(e.Reason.Code), moment(e.BlockedAt), e.Reason.Message)
	}
	if len(answer.Contacts) > 0 {
		page.Next = strconv.Itoa(at + len(answer.Contacts))
	}
	return page, err
}

func (c *Client) resendList(ctx context.Context, t apisend.Target, cursor string) (SuppressionPage, error) {
	query := url.Values{"limit": {"100"}}
	if cursor != "" {
		query.Set("after", cursor)
	}
	var answer struct {
		HasMore bool `json:"has_more"`
		Data    []struct {
			ID, Email, Origin string
			Created           string `json:"created_at"`
		}
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: path("/suppressions", query)}, &answer)
	for _, e := range answer.Data {
		page.add(e.Email, reason(e.Origin), moment(e.Created), "")
		page.Next = e.ID
	}
	if !answer.HasMore {
		page.Next = ""
	}
	return page, err
}

// mandrillList reads /rejects/list, which has no further page. Soft bounces pass when the provider says.
func (c *Client) mandrillList(ctx context.Context, t apisend.Target, _ string) (SuppressionPage, error) {
	body := map[string]any{"key": t.Key, "include_expired": false}
	if t.Subaccount != "" {
		body["subaccount"] = t.Subaccount
	}
	var found []struct {
		Email, Reason, Detail string
		Created               string `json:"created_at"`
		Expires               string `json:"expires_at"`
		Expired               bool
	}
	var page SuppressionPage
	err := c.call(ctx, t, apisend.Call{Path: "/api/1.0/rejects/list.json", Body: body}, &found)
	for _, e := range found {
		if e.Expired {
			page.Skipped++
			continue
		}
		page.add(e.Email, reason(e.Reason), moment(e.Created), e.Detail)
		if e.Reason == "soft-bounce" {
			page.Entries[len(page.Entries)-1].Until = moment(e.Expires)
		}
	}
	if len(found) >= mandrillMost {
		page.Note = "Mandrill lists 1,000 addresses; export the whole list there, and import the file with " +
			"postroom suppressions import"
	}
	return page, err
}
