package server

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

// publicVisit is a recipient who follows a link to a public page.
type publicVisit struct {
	visit  *unsubscribe.Visit // nil if the link's token is not valid
	token  string
	sender unsubscribe.Sender
	lang   string
	words  map[string]string
}

type publicView struct {
	Lang   string
	W      map[string]string
	Title  string
	Text   []string
	Saved  bool // the preferences were just changed
	Visit  *unsubscribe.Visit
	Sender string // name and address; empty if unknown
	List   string // as the page calls it; empty if none
	Facts  []pageFact
	Rows   []pageRow
	Digest *digestView // nil if the visitor gets no digests
	Button *pageButton
	More   string // URL of the preferences; empty means no link
}

// pageFact is a line of what a page is about.
type pageFact struct{ Name, Value string }

type pageRow struct {
	Title, Name, Text string
	Note              string // mail that is not affected
	Button            *pageButton
}

type pageButton struct {
	// path, relative to the page: a proxy may add a path prefix
	To     string
	Action string // actionUnsubscribe or actionResubscribe
	From   unsubscribe.Scope
	Token  string
	Text   string
	About  string // for screen readers, which read buttons without their context
	Quiet  bool   // not the main purpose of the page
}

// visit calls show for the visitor of a link. If the token of the link is invalid, it shows a page that says
// so.
func (u unsubscribeRoutes) visit(c echo.Context, token string, show func(publicVisit) error) error {
	p := publicVisit{token: token}
	v, err := u.read(c, token)
	switch {
	case err == nil:
		p.visit, p.sender = &v, u.requests.Sender(c.Request().Context(), v)
	case !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Forbidden):
		return err
	}
	p.lang = u.pages.language(c.Request(), p.sender.Locale)
	p.words = u.pages.words[p.lang]
	switch {
	case fault.Is(err, fault.Forbidden):
		return u.pages.show(c, http.StatusForbidden, p.view("preview", "previewText"))
	case p.visit == nil:
		if limited := u.proofs.tooMany(c); limited != nil {
			return limited
		}
		return u.showUnknown(c, p)
	}
	return show(p)
}

// view returns a page about a visit.
func (p publicVisit) view(title string, texts ...string) publicView {
	v := publicView{Lang: p.lang, W: p.words, Title: p.words[title], Visit: p.visit}
	v.Sender = p.sender.Name + p.sender.Address
	if p.sender.Name != "" && p.sender.Address != "" {
		v.Sender = p.sender.Name + " (" + p.sender.Address + ")"
	}
	if p.visit != nil {
		v.List = p.visit.List
	}
	if p.ofDigests() {
		v.List = p.words["digests"]
	}
	for _, text := range texts {
		v.Text = append(v.Text, p.words[text])
	}
	return v
}

func (p publicVisit) preferences() string { return "preferences?t=" + url.QueryEscape(p.token) }

func (p publicVisit) button(to, action string, from unsubscribe.Scope, quiet bool) *pageButton {
	return &pageButton{To: to, Action: action, From: from, Token: p.token, Text: p.words[action], Quiet: quiet}
}

// named returns the key of the text about a scope.
func (p publicVisit) named(from unsubscribe.Scope, ofList, ofDigests, ofAll string) string {
	switch {
	case from != unsubscribe.List:
		return ofAll
	case p.ofDigests():
		return ofDigests
	}
	return ofList
}

func (u unsubscribeRoutes) showAsk(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	return u.showButton(c, p, p.view(p.named(from, "askList", "askDigests", "askAll"),
		p.named(from, "stopList", "stopDigests", "stopAll")),
		p.button("unsubscribe", actionUnsubscribe, from, false))
}

func (u unsubscribeRoutes) showUnsubscribed(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	return u.showButton(c, p, p.view("unsubscribed", p.named(from, "stopList", "stopDigests", "stopAll"),
		"onTheWay"), p.button("unsubscribe", actionResubscribe, from, true))
}

func (u unsubscribeRoutes) showResubscribed(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	return u.showButton(c, p, p.view("resubscribed",
		p.named(from, "resubscribedText", "returnedText", "resubscribedText")),
		p.button("unsubscribe", actionUnsubscribe, from, true))
}

func (u unsubscribeRoutes) showButton(c echo.Context, p publicVisit, v publicView, b *pageButton) error {
	v.Button, v.More = b, p.preferences()
	return u.pages.show(c, http.StatusOK, v)
}

// showStanding shows the preferences: for the list of the mail, for all mail of its sender, and for digests.
func (u unsubscribeRoutes) showStanding(c echo.Context, p publicVisit, changed bool) error {
	readers, err := u.readers(c.Request().Context(), p)
	if err != nil {
		return u.showFailed(c, p, pageButton{}, err)
	}
	return u.showChoices(c, p, http.StatusOK, changed, readers, nil)
}

// showChoices is showStanding, with digests as they are or were sent, and their errors.
func (u unsubscribeRoutes) showChoices(c echo.Context, p publicVisit, status int, changed bool,
	readers []digest.Reader, wrong []wrongField) error {
	standing, err := u.requests.Standing(c.Request().Context(), *p.visit)
	if err != nil {
		return u.showFailed(c, p, pageButton{}, err)
	}
	v := p.view("preferences")
	v.Saved = changed
	if standing.All || standing.List && p.ofDigests() {
		readers = stopped(readers)
	}
	v.Digest = p.digestsOf(readers, wrong)
	if p.visit.List != "" {
		row := p.row(unsubscribe.List, standing.List, p.named(unsubscribe.List, "ofList", "digests", "ofAll"))
		if !p.ofDigests() {
			row.Name = p.visit.List
		}
		switch {
		case standing.All && !standing.List:
			row.Text, row.Button = p.words["getsNothing"], nil
		case p.ofDigests() && !standing.List && len(readers) > 0 && !wantAny(readers):
			row.Text, row.Button = p.words["nextNever"], nil
		}
		v.Rows = append(v.Rows, row)
	}
	all := p.row(unsubscribe.All, standing.All, "ofAll")
	all.Note = p.words["allNote"]
	v.Rows = append(v.Rows, all)
	return u.pages.show(c, status, v)
}

func (p publicVisit) row(from unsubscribe.Scope, unsubscribed bool, title string) pageRow {
	text, action := "gets", actionUnsubscribe
	if unsubscribed {
		text, action = "getsNot", actionResubscribe
	}
	row := pageRow{Title: p.words[title], Text: p.words[text], Button: p.button("preferences", action, from,
		true)}
	row.Button.About = row.Title
	return row
}

// showUnknown says that the token of a link is invalid or incomplete.
func (u unsubscribeRoutes) showUnknown(c echo.Context, p publicVisit) error {
	return u.pages.show(c, http.StatusNotFound, p.view("unknown", "unknownText"))
}

// showFailed says that nothing was changed, with a button that tries again.
func (u unsubscribeRoutes) showFailed(c echo.Context, p publicVisit, again pageButton, err error) error {
	if fault.Is(err, fault.NotFound) {
		return u.showUnknown(c, p)
	}
	u.log.Error("unsubscribe request failed", "request_id", requestID(c), "message_id", p.visit.MessageID,
		"error", err)
	v := p.view("failed", "failedText")
	if again.Action != "" {
		again.Token, again.Text = p.token, p.words["again"]
		v.Button = &again
	}
	c.Response().Header().Set("Retry-After", "60")
	return u.pages.show(c, http.StatusServiceUnavailable, v)
}
