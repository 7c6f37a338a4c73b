package outbox

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
)

// listID is a label of a host name (RFC 2919 section 3), for it stands before the domain of the author.
var listID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$`)

// marksOf says what a request wants added, and finds what is wrong with that. What it does not say, the account and the settings say, as far
// as it can be done: without a public address nothing leads anywhere.
func (in *Intake) marksOf(req api.SubmitRequest, account accounts.Sender) (marks, []fault.Field) {
	var wrong []fault.Field
	refuse := func(key, format string, args ...any) {
		wrong = append(wrong, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	m := marks{ListID: req.ListID}
	able := in.Tokens != nil && in.publicURL(req) != ""
	if err := publicAddress(req.BaseURL); err != nil {
		refuse("baseUrl", "%s", err)
	}
	opens, clicks := false, false
	if in.opts.Track != nil {
		opens, clicks = in.opts.Track()
	}
	for _, t := range []struct {
		key         string
		into        *bool
		asked, mine *bool
		byDefault   bool
	}{
		{"trackOpens", &m.Opens, req.TrackOpens, account.Opens, opens},
		{"trackClicks", &m.Clicks, req.TrackClicks, account.Clicks, clicks},
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
func (in *Intake) publicURL(req api.SubmitRequest) string {
	base := req.BaseURL
	if base == "" && in.opts.ServiceURL != nil {
		base = in.opts.ServiceURL()
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
