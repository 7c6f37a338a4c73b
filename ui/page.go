package ui

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
)

//go:embed templates
var embedded embed.FS

// frame is the data of every page. Data is the data of the single page.
type frame struct {
	Title    string
	Section  string // menu entry
	Version  string
	LoggedIn bool
	Alerting int      // active alerts; 0 for a viewer of one account
	Admin    bool     // may change settings
	ReadOnly bool     // may change nothing
	Person   string   // name of the user; empty: a token is used
	Account  string   // the only account shown; empty: all
	Accounts []string // accounts that the user can choose
	Now      time.Time
	Flash    *flash
	Here     string // URL of the page, to return to
	Export   string // URL of the list as a file, without its format; empty: no list
	Filter   string // URL of the list with its filter; empty: no filter to save
	Saved    []savedFilter
	Theme    string // light or dark; empty: the browser decides
	Base     string // address of this Postroom, as the browser knows it
	Demo     bool   // there is an inbox
	Twins    string // API requests and commands that do the same; empty: the page names its own
	Data     any
}

// loadPages returns the templates by name. Each page is parsed, with the shared ones, when it is shown first:
// all of them together take 40 ms and 14 MB.
func loadPages(static *files) (map[string]func() (*template.Template, error), error) {
	shared, err := template.New("").Funcs(functions(static)).ParseFS(embedded, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]func() (*template.Template, error), len(names))
	for _, file := range names {
		pages[strings.TrimSuffix(path.Base(file), ".html")] = sync.OnceValues(func() (*template.Template, error) {
			t, err := shared.Clone()
			if err != nil {
				return nil, err
			}
			return t.ParseFS(embedded, file)
		})
	}
	return pages, nil
}

// show answers with a page, or with the part of it that the script requests. It is executed before anything
// is sent, so that a failure is an error.
func (u *UI) show(w http.ResponseWriter, r *http.Request, status int, name, title string, data any) error {
	list, isList := data.(listPage)
	if c := collects(r); c != nil && isList && status == http.StatusOK {
		c.page = list
		return nil
	}
	f := frame{
		Title: title, Section: section(r.URL.Path), Version: u.opts.Version, Now: time.Now(),
		Here: r.URL.RequestURI(), Base: baseOf(r), Demo: u.opts.Demo != nil, Data: data,
		Theme: themeOf(r), Twins: twins[name],
	}
	if isList && status == http.StatusOK && r.Method == http.MethodGet {
		f.Export, f.Filter, f.Saved = exportURL(r), filterOf(r), savedFor(r)
	}
	if v, ok := data.(interface{ section() string }); ok {
		f.Section = v.section()
	}
	if _, err := sessionCookieOf(r); err == nil && name != "login" {
		f.LoggedIn = true // the session may have ended: guard checks it
	}
	g := grantOf(r)
	f.Admin, f.ReadOnly, f.Person = g.Allows(api.ScopeAdmin), g.ReadOnly, g.Person
	f.Account, f.Accounts = g.Account, g.Accounts
	page, err := u.pages[name]()
	if err != nil {
		return fmt.Errorf("parse page %s: %w", name, err)
	}
	define := "page"
	if part := r.URL.Query().Get("part"); part != "" && status == http.StatusOK &&
		page.Lookup(part+"-part") != nil {
		define = part + "-part"
	} else {
		f.Flash = takeFlash(w, r)
		if f.LoggedIn && g.Account == "" {
			f.Alerting = u.Overview.Alerting(r.Context())
		}
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, define, f); err != nil {
		return fmt.Errorf("fill page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
	return nil
}

// section returns the menu entry that a path belongs to.
func section(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "log", "search", "webhooks", "accounts", "gateways", "templates", "suppressions", "lists", "segments",
		"campaigns", "digests", "audience", "imports", "rates", "settings", "tokens", "audit", "people", "sessions",
		"me", "status", "inbox", "queues":
		return first
	case "docs":
		if strings.HasPrefix(path, guidePath) {
			return first
		}
		return "api"
	case "outbox", "messages", "cancel", "replay":
		return "outbox"
	}
	return ""
}

// flash is the result of an action, shown on the next page.
type flash struct {
	Text string `json:"t"`
	Bad  bool   `json:"b,omitempty"` // the action failed
}

const (
	flashCookie = "postroom_flash"
	flashLimit  = 600 // bytes of its text; a cookie has 4,096 at most
)

// done redirects to a page that shows the result of an action.
func done(w http.ResponseWriter, r *http.Request, to, format string, args ...any) error {
	return redirectWith(w, r, to, flash{Text: fmt.Sprintf(format, args...)})
}

// undone redirects like done, for a refused action. It returns other errors.
func undone(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if status := api.StatusOf(wordsOf(err).Kind); status >= http.StatusInternalServerError {
		return err
	}
	noteOutcome(r, err)
	return redirectWith(w, r, to, flash{Text: sentence(err), Bad: true})
}

// told shows the result of an action: what was done on the page to, or a refusal on the page at.
func told(w http.ResponseWriter, r *http.Request, at, to string, err error, format string,
	args ...any) error {
	if err != nil {
		return undone(w, r, at, err)
	}
	return done(w, r, to, format, args...)
}

// removed is told for something that may have been deleted before.
func removed(w http.ResponseWriter, r *http.Request, at, to string, deleted bool, err error,
	said string) error {
	if !deleted {
		said = "It was already deleted."
	}
	return told(w, r, at, to, err, "%s", said)
}

func redirectWith(w http.ResponseWriter, r *http.Request, to string, f flash) error {
	f.Text = clip(f.Text, flashLimit)
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write flash: %w", err)
	}
	http.SetCookie(w, newCookie(r, flashCookie, base64.RawURLEncoding.EncodeToString(raw), 60))
	return redirect(w, r, to)
}

// takeFlash reads the flash and deletes its cookie. It returns nil if there is none or it is invalid.
func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, newCookie(r, flashCookie, "", -1))
	var f flash
	raw, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(raw, &f) != nil || f.Text == "" {
		return nil
	}
	return &f
}
