package outbox

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/feedback/tracking/links"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/templates/batch"
)

// marks are what Postroom adds to a message of its own, when the message is written: header fields of a mailing list, links that lead over
// Postroom, and the picture that counts opens. They name the message, and so whatever has marks is written anew each time it is needed: from
// its letter, or, where it was handed in raw, from that.
type marks struct {
	ListID string `json:"list,omitempty"` // whose unsubscribes are heeded; empty: of no list
	Opens  bool   `json:"opens,omitempty"`
	Clicks bool   `json:"clicks,omitempty"`

	// Of a raw message, which has no letter to tell them:
	Base   string `json:"base,omitempty"`   // public address that links lead to
	Domain string `json:"domain,omitempty"` // of the author
}

func (m marks) any() bool { return m.ListID != "" || m.Opens || m.Clicks }

// listID is a label of a host name (RFC 2919 section 3), for it stands before the domain of the author.
var listID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$`)

// marksOf says what a request wants added, and finds what is wrong with that. What it does not say, the account and the settings say, as far
// as it can be done: without a public address nothing leads anywhere.
func (b *Outbox) marksOf(req api.SubmitRequest, account Account) (marks, []fault.Field) {
	var wrong []fault.Field
	refuse := func(key, format string, args ...any) {
		wrong = append(wrong, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	m := marks{ListID: req.ListID}
	able := b.Tokens != nil && b.publicURL(req) != ""
	if err := publicAddress(req.BaseURL); err != nil {
		refuse("baseUrl", "%s", err)
	}
	opens, clicks := false, false
	if b.opts.Track != nil {
		opens, clicks = b.opts.Track()
	}
	for _, t := range []struct {
		key         string
		into        *bool
		asked, mine *bool
		byDefault   bool
	}{
		{"trackOpens", &m.Opens, req.TrackOpens, account.TrackOpens, opens},
		{"trackClicks", &m.Clicks, req.TrackClicks, account.TrackClicks, clicks},
	} {
		asked := t.asked
		if asked == nil {
			asked = req.TrackingEnabled
		}
		switch {
		case asked != nil && *asked && !able:
			refuse(t.key, "needs a public address: set serviceUrl, or give baseUrl")
		case asked != nil:
			*t.into = *asked
		case t.mine != nil:
			*t.into = *t.mine && able
		default:
			*t.into = t.byDefault && able
		}
	}
	if req.HTML == "" && req.Template == "" && len(req.Raw) == 0 {
		m.Opens, m.Clicks = false, false // there is nothing to follow or to see
	}
	if req.ListID == "" {
		return m, wrong
	}
	switch {
	case !listID.MatchString(req.ListID):
		refuse("listId", "must be a name such as news or news.weekly: letters, digits, hyphens, dots and underscores")
	case !able:
		refuse("listId", "needs a public address for the unsubscribe page: set serviceUrl, or give baseUrl")
	}
	for name := range req.Headers {
		if slices.ContainsFunc(listHeaders, func(own string) bool { return strings.EqualFold(own, name) }) {
			refuse("headers."+name, "can't be combined with listId, which adds this header")
		}
	}
	return m, wrong
}

// listHeaders are what a mailing list adds (RFC 2919, RFC 2369, RFC 8058).
var listHeaders = []string{"List-ID", "List-Unsubscribe", "List-Unsubscribe-Post"}

// publicURL is where links of a request's messages lead; empty: nowhere.
func (b *Outbox) publicURL(req api.SubmitRequest) string {
	base := req.BaseURL
	if base == "" && b.opts.ServiceURL != nil {
		base = b.opts.ServiceURL()
	}
	return strings.TrimRight(base, "/")
}

// publicAddress says why an address can't be one that links lead to.
func publicAddress(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("must be an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fmt.Errorf("must end with its host or path, and hold no credentials")
	}
	return nil
}

// single says why a list's message is for one recipient only.
func (m marks) single(c *message.Composed) []fault.Field {
	if m.ListID == "" || len(c.Envelope.To) < 2 {
		return nil
	}
	return []fault.Field{{Key: "listId", Message: "needs a single recipient, for each one unsubscribes alone: use mailMerge"}}
}

// name is what a letter calls a message by, and what it adds to that message alone. Base is where its links lead, domain the author's.
func (b *Outbox) name(id string, e envelope, base, domain string) (batch.Identity, error) {
	n := batch.Identity{MessageID: e.MessageID, Envelope: message.Envelope{From: e.From, To: e.To}}
	base = strings.TrimRight(base, "/")
	if b.Tokens == nil || base == "" {
		return n, nil
	}
	about := signedtoken.Token{Account: e.Account, MessageID: id, Recipient: signedtoken.Whole}
	if len(e.To) == 1 {
		about.Recipient = 0
		personal := about
		personal.List, personal.Address = e.ListID, e.To[0]
		token, err := b.Tokens.Sign(signedtoken.Unsubscribe, personal)
		if err != nil {
			return n, fmt.Errorf("make the unsubscribe link of message %s: %w", id, err)
		}
		n.UnsubscribeURL, n.PreferencesURL = base+"/unsubscribe?t="+token, base+"/preferences?t="+token
	}
	if e.ListID != "" && n.UnsubscribeURL != "" {
		n.Headers = []message.Header{
			{Name: "List-ID", Value: "<" + e.ListID + "." + domain + ">"},
			{Name: "List-Unsubscribe", Value: "<" + n.UnsubscribeURL + ">"},
			{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
		}
	}
	if e.Opens || e.Clicks {
		n.HTML = func(html string) (string, error) { return b.tracked(html, base, about, e.marks) }
	}
	return n, nil
}

// nameIn is name for a message of a letter.
func (b *Outbox) nameIn(id string, e envelope, l batch.Content) (batch.Identity, error) {
	return b.name(id, e, l.ServiceURL, domainOf(l.From.Address))
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// marked is a raw message with its marks, signed.
func (b *Outbox) marked(ctx context.Context, id string, e envelope, raw []byte) ([]byte, error) {
	n, err := b.name(id, e, e.Base, e.Domain)
	if err != nil {
		return nil, err
	}
	raw, err = message.Mark(raw, n.Headers, n.HTML)
	if err != nil || b.Signer == nil {
		return raw, err
	}
	return b.Signer.Sign(ctx, e.Account, e.Domain, raw)
}

// tracked leads the links of a message over Postroom, and adds the picture that counts opens.
func (b *Outbox) tracked(html, base string, about signedtoken.Token, m marks) (string, error) {
	o := links.Options{Keep: []string{base + "/unsubscribe", base + "/preferences"}}
	if m.Opens {
		token, err := b.Tokens.Sign(signedtoken.Open, about)
		if err != nil {
			return "", err
		}
		o.Pixel = base + "/o/" + token
	}
	if m.Clicks {
		o.Link = func(target string) (string, error) {
			to := about
			to.URL = target
			token, err := b.Tokens.Sign(signedtoken.Click, to)
			return base + "/c/" + token, err
		}
	}
	return links.Rewrite(html, o)
}
