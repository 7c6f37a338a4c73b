package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	nethtml "golang.org/x/net/html"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/server/settings"
)

// archiveRoutes are the public pages of campaigns that were sent.
type archiveRoutes struct {
	archive  *newsletter.Archive
	lists    *audience.Lists
	settings *settings.Settings
	pages    *publicPages
	proofs   *wrongProofs
	views    *prometheus.CounterVec
	log      *slog.Logger
}

func (s *Server) archived() group {
	a := archiveRoutes{archive: s.parts.Campaigns.Archive, lists: s.parts.Audience.Lists,
		settings: s.parts.Settings, pages: s.pages, proofs: s.proofs, views: s.metrics.archive, log: s.log}
	return group{"Archive", "The public pages of campaigns that were sent.", []route{
		plain("/archive/{listId}", public(), a.list),
		plain("/archive/{listId}/atom.xml", public(), a.feed),
		plain("/archive/{listId}/{campaign}", public(), a.mail),
	}}
}

// archiveFor is how long browsers and proxies may show an archive page without asking again. For that long a
// page may be seen after it was removed.
const archiveFor = time.Minute

// mailPolicy lets an email's html, which somebody else wrote, show styles and images. It runs no script,
// sends no form and loads nothing else. As a sandbox it has its own origin, so it reads nothing of ours. Its
// links work.
const mailPolicy = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; " +
	"img-src http: https: data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
	"frame-ancestors 'none'"

type archiveView struct {
	Lang    string
	W       map[string]string
	Title   string
	Text    []string
	NoIndex bool
	List    *audience.List // nil if there is none
	Rows    []newsletter.ArchiveRow
	Newer   string // URL of the page before; empty on the first
	Older   string
	Words   string // an email's text, if it has no html
	Sent    time.Time
	Up      string // relative path to the page of the list, where it is not this one
}

// Form returns the URL of the form of the list, seen from a page of the archive.
func (v archiveView) Form() string {
	return strings.Repeat("../", 1+strings.Count(v.Up, "/")) + "subscribers?listId=" +
		url.QueryEscape(v.List.ListID)
}

func (a archiveRoutes) view(c echo.Context, list *audience.List) archiveView {
	lang := a.pages.language(c.Request(), "")
	v := archiveView{Lang: lang, W: a.pages.words[lang], List: list, NoIndex: list == nil || list.NoIndex}
	if list != nil {
		v.Title = v.W["archive"] + ": " + list.Name
	}
	return v
}

func (a archiveRoutes) list(c echo.Context) error {
	number, err := 1, error(nil)
	if text := c.QueryParam("page"); text != "" {
		number, err = strconv.Atoi(text)
	}
	var page newsletter.ArchivePage
	if err == nil {
		page, err = a.archive.Page(c.Request().Context(), c.Param("listId"), number-1)
	} else {
		err = fault.New(fault.NotFound, "", "There is no such page")
	}
	if err != nil {
		return a.failed(c, err)
	}
	v := a.view(c, page.List)
	v.Rows = page.Rows
	at := func(n int) string { return page.List.ListID + "?page=" + strconv.Itoa(n) }
	if number > 1 {
		v.Newer = at(number - 1)
	}
	if page.More {
		v.Older = at(number + 1)
	}
	return a.page(c, "list", v)
}

// mail shows the mail of a campaign: its html as it is, or a page with its text.
func (a archiveRoutes) mail(c echo.Context) error {
	mail, err := a.archive.Mail(c.Request().Context(), c.Param("listId"), c.Param("campaign"))
	if err != nil {
		return a.failed(c, err)
	}
	if mail.HTML == "" {
		v := a.view(c, mail.List)
		v.Title, v.Words, v.Sent, v.Up = mail.Title, mail.Text, mail.Began, "../"+mail.List.ListID
		return a.page(c, "mail", v)
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", mailPolicy)
	if mail.Locale != "" {
		h.Set("Content-Language", mail.Locale)
	}
	a.views.WithLabelValues("mail").Inc()
	return a.send(c, mail.List, echo.MIMETextHTMLCharsetUTF8, []byte(titled(mail.HTML, mail.Title)))
}

// titled returns the html of an email with a title, which browsers and search engines show, if it has none.
func titled(page, title string) string {
	z := nethtml.NewTokenizer(strings.NewReader(page))
	at, into := 0, 0
	for kind := z.Next(); kind != nethtml.ErrorToken; kind = z.Next() {
		at += len(z.Raw())
		name, _ := z.TagName()
		switch {
		case kind == nethtml.StartTagToken && string(name) == "title":
			return page
		case kind == nethtml.DoctypeToken, kind == nethtml.StartTagToken && string(name) == "head":
			into = at
		}
	}
	return page[:into] + "<title>" + html.EscapeString(title) + "</title>" + page[into:]
}

// page writes a page with our own texts.
func (a archiveRoutes) page(c echo.Context, kind string, v archiveView) error {
	a.views.WithLabelValues(kind).Inc()
	body, err := a.pages.render("archive.html", v)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", a.pages.policy)
	c.Response().Header().Add(echo.HeaderVary, "Accept-Language")
	return a.send(c, v.List, echo.MIMETextHTMLCharsetUTF8, body)
}

// send writes what may be kept for a while, or says that the visitor has it already.
func (a archiveRoutes) send(c echo.Context, list *audience.List, media string, body []byte) error {
	h, sum := c.Response().Header(), sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	h.Set("ETag", tag)
	h.Set(echo.HeaderCacheControl, fmt.Sprintf("public, max-age=%d", int(archiveFor.Seconds())))
	if list.NoIndex {
		h.Set("X-Robots-Tag", "noindex, nofollow")
	}
	for has := range strings.SplitSeq(c.Request().Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(has), "W/") == tag {
			return c.NoContent(http.StatusNotModified)
		}
	}
	return c.Blob(http.StatusOK, media, body)
}

// failed says that there is no such page, in one way for all reasons, or that it can't be shown now.
func (a archiveRoutes) failed(c echo.Context, err error) error {
	if fault.Is(err, fault.NotFound) {
		a.views.WithLabelValues("missing").Inc()
		if limited := a.proofs.tooMany(c); limited != nil {
			return limited
		}
		return a.trouble(c, http.StatusNotFound, "noArchive", "noArchiveText")
	}
	a.log.Error("archive not shown", "request_id", requestID(c), "error", err)
	c.Response().Header().Set(echo.HeaderRetryAfter, "60")
	return a.trouble(c, http.StatusServiceUnavailable, "noArchiveNow", "noArchiveNowText")
}

func (a archiveRoutes) trouble(c echo.Context, status int, title, text string) error {
	v := a.view(c, nil)
	v.Title, v.Text = v.W[title], []string{v.W[text]}
	return a.pages.write(c, status, "archive.html", true, v)
}

// The parts of a feed (RFC 4287).
type (
	atomFeed struct {
		XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string      `xml:"id"`
		Title   string      `xml:"title"`
		Note    string      `xml:"subtitle,omitempty"`
		Updated string      `xml:"updated"`
		Author  string      `xml:"author>name"`
		Links   []atomLink  `xml:"link"`
		Entries []atomEntry `xml:"entry"`
	}
	atomLink struct {
		Rel  string `xml:"rel,attr"`
		Type string `xml:"type,attr"`
		Href string `xml:"href,attr"`
	}
	atomEntry struct {
		ID        string   `xml:"id"`
		Title     string   `xml:"title"`
		Published string   `xml:"published"`
		Updated   string   `xml:"updated"`
		Link      atomLink `xml:"link"`
		Summary   string   `xml:"summary"`
	}
)

const mediaAtom = "application/atom+xml"

// feed answers with the latest campaigns of a list.
func (a archiveRoutes) feed(c echo.Context) error {
	feed, list, err := a.writeFeed(c.Request().Context(), c.Param("listId"))
	if err != nil {
		return a.failed(c, err)
	}
	body, err := xml.MarshalIndent(feed, "", " ")
	if err != nil {
		return fmt.Errorf("write the feed of list %s: %w", list.ListID, err)
	}
	a.views.WithLabelValues("feed").Inc()
	return a.send(c, list, mediaAtom+"; charset=utf-8", append([]byte(xml.Header), body...))
}

// writeFeed returns the feed of a list. Its ids are tags of the public host (RFC 4151): they change with it
// only.
func (a archiveRoutes) writeFeed(ctx context.Context, listID string) (*atomFeed, *audience.List, error) {
	page, err := a.archive.Page(ctx, listID, 0)
	if err != nil {
		return nil, nil, err
	}
	list, err := a.lists.Get(ctx, "", page.List.ListID)
	if err != nil {
		return nil, nil, err
	}
	base := strings.TrimRight(a.settings.Current().ServiceURL, "/")
	host := "localhost"
	if u, err := url.Parse(base); err == nil {
		host = cmp.Or(u.Hostname(), host)
	}
	tag := func(since time.Time, what string) string {
		return "tag:" + host + "," + since.UTC().Format(time.DateOnly) + ":archive:" + what
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	home := base + "/archive/" + list.ListID
	f := &atomFeed{ID: tag(list.Created, list.ListID), Title: list.Name, Note: list.Description,
		Author: list.Name, Links: []atomLink{{"self", mediaAtom, home + "/atom.xml"}, {"alternate", "text/html",
			home}}}
	latest := list.Created
	for _, row := range page.Rows {
		if row.Ended.After(latest) {
			latest = row.Ended
		}
		f.Entries = append(f.Entries, atomEntry{ID: tag(row.Began, list.ListID+":"+row.Campaign),
			Title: row.Title, Published: at(row.Began), Updated: at(row.Ended), Summary: row.Summary,
			Link: atomLink{"alternate", "text/html", home + "/" + row.Campaign}})
	}
	f.Updated = at(latest)
	return f, page.List, nil
}
