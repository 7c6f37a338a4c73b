package outbox

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api/fault"
)

// listID matches a label of a host name (RFC 2919 section 3): the author's domain follows it.
var listID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$`)

// additionsOf returns what Postroom adds to messages, and the invalid fields that concern it. The account
// decides a field that is not given, then the settings, if there is a public address for links.
func (in *Intake) additionsOf(sh Shared, account accounts.Sender) (additions, []fault.Field) {
	var wrong faults
	added := additions{ListID: sh.ListID}
	able := in.Tokens != nil && in.publicURL(sh) != ""
	if err := publicAddress(sh.BaseURL); err != nil {
		wrong.Add("baseUrl", "%s", err)
	}
	opens, clicks := false, false
	if in.opts.Track != nil {
		opens, clicks = in.opts.Track()
	}
	for _, t := range []struct {
		key              string
		into             *bool
		asked, ofAccount *bool
		ofSettings       bool
	}{
		{"trackOpens", &added.Opens, sh.TrackOpens, account.Opens, opens},
		{"trackClicks", &added.Clicks, sh.TrackClicks, account.Clicks, clicks},
	} {
		asked := t.asked
		asked = cmp.Or(asked, sh.Track)
		switch {
		case asked != nil && *asked && !able:
			wrong.Add(t.key, "requires a public URL; set serviceUrl or baseUrl")
		case asked != nil:
			*t.into = *asked
		case t.ofAccount != nil:
			*t.into = *t.ofAccount && able
		default:
			*t.into = t.ofSettings && able
		}
	}
	if sh.HTML == "" && sh.Template == "" && len(sh.Raw) == 0 {
		added.Opens, added.Clicks = false, false // there is no html
	}
	if sh.ListID != "" {
		wrong.checkList(sh, able)
	}
	return added, wrong.Fields
}

// checkList finds the wrong fields of a message of a mailing list.
func (f *faults) checkList(sh Shared, able bool) {
	switch {
	case !listID.MatchString(sh.ListID):
		f.Add("listId", "must be a name of letters, digits, hyphens, dots and underscores, such as news "+
			"or news.weekly")
	case !able:
		f.Add("listId", "requires a public URL for the unsubscribe page; set serviceUrl or baseUrl")
	}
	for _, h := range sh.Headers {
		if slices.ContainsFunc(listHeaders, func(own string) bool { return strings.EqualFold(own, h.Name) }) {
			f.Add("headers."+h.Name, "can't be combined with listId, which adds this header")
		}
	}
}

// listHeaders are the headers of a mailing list (RFC 2919, RFC 2369, RFC 8058).
var listHeaders = []string{"List-ID", "List-Unsubscribe", "List-Unsubscribe-Post"}

// publicURL returns the base of links in messages, or "" if there is none.
func (in *Intake) publicURL(sh Shared) string {
	base := sh.BaseURL
	if base == "" && in.opts.ServiceURL != nil {
		base = in.opts.ServiceURL()
	}
	return strings.TrimRight(base, "/")
}

// publicAddress returns why s can't be the base of links.
func publicAddress(s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("must be an HTTP or HTTPS URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return errors.New("must end with its host or path, and hold no credentials")
	}
	return nil
}

// single returns an error if a mailing list's message has several recipients.
func (a additions) single(to []string) []fault.Field {
	if a.ListID == "" || len(to) < 2 {
		return nil
	}
	return []fault.Field{{Key: "listId",
		Message: "needs a single recipient, for each one unsubscribes alone: use mailMerge"}}
}
