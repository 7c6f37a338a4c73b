package server

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

// publicVisit is a recipient on one of the public pages.
type publicVisit struct {
	visit  *unsubscribe.Visit // nil: the token of the link is not valid
	token  string
	sender unsubscribe.Sender
	lang   string
	words  map[string]string
}

// publicView is what a public page shows.
type publicView struct {
	Lang   string
	W      map[string]string
	Title  string
	Text   []string
	Saved  bool // preferences were just changed
	Visit  *unsubscribe.Visit
	Sender string // name and address; empty: not known
	Rows   []pageRow
	Button *pageButton
	More   string // address of the page of preferences; empty: no link to it
}

// pageRow is something that can be left, on the page of preferences.
type pageRow struct {
	Title, Name, Text string
	Note              string // what it does not concern
	Button            *pageButton
}

// pageButton is a form with one button.
type pageButton struct {
	// path, relative to the page: Postroom may stand behind a proxy that puts a path before its own
	To     string
	Action string // leave or return
	From   unsubscribe.Scope
	Token  string
	Text   string
	About  string // what it is about, for those who hear buttons without what stands around them
	Quiet  bool   // it is not what the visitor came for
}

// visit finds out who follows a link, and how to talk to them.
func (u unsubscribeRoutes) visit(c echo.Context, token string) (p publicVisit, err error) {
	p.token = token
	v, err := u.requests.Read(token)
	switch {
	case err == nil:
		p.visit, p.sender = &v, u.requests.Sender(c.Request().Context(), v)
	case !fault.Is(err, fault.NotFound):
		return p, err
	}
	p.lang = u.pages.language(c.Request(), p.sender.Locale)
	p.words = u.pages.words[p.lang]
	return p, nil
}

// view is a page about a visit, with a title.
func (p publicVisit) view(title string) publicView {
	v := publicView{Lang: p.lang, W: p.words, Title: p.words[title], Visit: p.visit}
	switch {
	case p.sender.Name != "" && p.sender.Address != "":
		v.Sender = p.sender.Name + " (" + p.sender.Address + ")"
	default:
		v.Sender = p.sender.Name + p.sender.Address
	}
	return v
}

// say adds paragraphs.
func (p publicVisit) say(v *publicView, words ...string) {
	for _, w := range words {
		v.Text = append(v.Text, p.words[w])
	}
}

func (p publicVisit) preferences() string { return "preferences?t=" + url.QueryEscape(p.token) }

// button is a form of a page.
func (p publicVisit) button(to, action string, from unsubscribe.Scope) *pageButton {
	return &pageButton{To: to, Action: action, From: from, Token: p.token, Text: p.words[action],
		Quiet: action == "return"}
}

// named picks the words about what is left.
func named(from unsubscribe.Scope, ofList, ofAll string) string {
	if from == unsubscribe.List {
		return ofList
	}
	return ofAll
}

func (u unsubscribeRoutes) showAsk(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	v := p.view(named(from, "askList", "askAll"))
	p.say(&v, named(from, "leaveList", "leaveAll"))
	v.Button, v.More = p.button("unsubscribe", "leave", from), p.preferences()
	return u.pages.show(c, http.StatusOK, v)
}

func (u unsubscribeRoutes) showLeft(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	v := p.view("left")
	p.say(&v, named(from, "leaveList", "leaveAll"), "onTheWay")
	v.Button, v.More = p.button("unsubscribe", "return", from), p.preferences()
	return u.pages.show(c, http.StatusOK, v)
}

func (u unsubscribeRoutes) showReturned(c echo.Context, p publicVisit, from unsubscribe.Scope) error {
	v := p.view("returned")
	p.say(&v, "returnedText")
	v.Button, v.More = p.button("unsubscribe", "leave", from), p.preferences()
	v.Button.Quiet = true
	return u.pages.show(c, http.StatusOK, v)
}

// showStanding shows the preferences: the list of the mail, and all mail of its sender.
func (u unsubscribeRoutes) showStanding(c echo.Context, p publicVisit, changed bool) error {
	standing, err := u.requests.Standing(c.Request().Context(), *p.visit)
	if err != nil {
		return u.showFailed(c, p, pageButton{}, err)
	}
	v := p.view("preferences")
	v.Saved = changed
	if p.visit.List != "" {
		row := p.row(unsubscribe.List, standing.List, "ofList")
		row.Name = p.visit.List
		if standing.All && !standing.List {
			row.Text, row.Button = p.words["getsNothing"], nil
		}
		v.Rows = append(v.Rows, row)
	}
	all := p.row(unsubscribe.All, standing.All, "ofAll")
	all.Note = p.words["allNote"]
	v.Rows = append(v.Rows, all)
	return u.pages.show(c, http.StatusOK, v)
}

// row is something that the visitor gets, or has left.
func (p publicVisit) row(from unsubscribe.Scope, left bool, title string) pageRow {
	row := pageRow{Title: p.words[title], Text: p.words["gets"], Button: p.button("preferences", "leave", from)}
	if left {
		row.Text, row.Button = p.words["getsNot"], p.button("preferences", "return", from)
	}
	row.Button.About, row.Button.Quiet = row.Title, true
	return row
}

// showUnknown shows that the token of a link is not valid, or was cut off.
func (u unsubscribeRoutes) showUnknown(c echo.Context, p publicVisit) error {
	v := p.view("unknown")
	p.say(&v, "unknownText")
	return u.pages.show(c, http.StatusNotFound, v)
}

// showFailed says that nothing was done, with a button that tries again.
func (u unsubscribeRoutes) showFailed(c echo.Context, p publicVisit, again pageButton, err error) error {
	if fault.Is(err, fault.NotFound) {
		return u.showUnknown(c, p)
	}
	u.log.Error("unsubscribe request failed", "request_id", requestID(c), "message_id", p.visit.MessageID,
		"error", err)
	v := p.view("failed")
	p.say(&v, "failedText")
	if again.Action != "" {
		again.Token, again.Text = p.token, p.words["again"]
		v.Button = &again
	}
	c.Response().Header().Set("Retry-After", "60")
	return u.pages.show(c, http.StatusServiceUnavailable, v)
}
