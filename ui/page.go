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
	"time"

	"github.com/postroom/postroom/api"
)

//go:embed templates
var embedded embed.FS

// frame is what every page is filled from: the page around, and its own data.
type frame struct {
	Title    string
	Section  string // of the navigation that the page belongs to
	Version  string
	LoggedIn bool
	Now      time.Time
	Flash    *flash
	Here     string // the page's own address, to come back to
	Data     any
}

// loadPages reads the templates: each page by itself, with what all of them share.
func loadPages(static *files) (map[string]*template.Template, error) {
	shared, err := template.New("").Funcs(functions(static)).ParseFS(embedded, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template, len(names))
	for _, file := range names {
		t, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path.Base(file), ".html")
		if pages[name], err = t.ParseFS(embedded, file); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// show answers with a page. It is filled before anything is sent, so that a fault in it is still an error. A
// page asked for in part, by our script, is that part alone.
func (u *UI) show(w http.ResponseWriter, r *http.Request, status int, name, title string, data any) error {
	f := frame{
		Title: title, Section: section(r.URL.Path), Version: u.opts.Version, Now: u.opts.Now(),
		Here: r.URL.RequestURI(), Data: data,
	}
	if v, ok := data.(interface{ section() string }); ok {
		f.Section = v.section()
	}
	if _, err := r.Cookie(u.opts.SessionCookie); err == nil && name != "login" {
		f.LoggedIn = true // or was: whoever is not gets no further than the login
	}
	define := "page"
	if part := r.URL.Query().Get("part"); part != "" && status == http.StatusOK &&
		u.pages[name].Lookup(part+"-part") != nil {
		define = part + "-part"
	} else {
		f.Flash = takeFlash(w, r)
	}
	var b bytes.Buffer
	if err := u.pages[name].ExecuteTemplate(&b, define, f); err != nil {
		return fmt.Errorf("fill page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
	return nil
}

// section is the entry of the navigation that a path belongs to.
func section(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "log", "search", "webhooks", "accounts", "gateways", "templates", "suppressions", "status":
		return first
	case "", "messages", "cancel", "replay":
		return "outbox"
	}
	return ""
}

// flash is the sentence that the page after an action begins with.
type flash struct {
	Text string `json:"t"`
	Bad  bool   `json:"b,omitempty"` // it did not work
}

const (
	flashCookie = "postroom_flash"
	flashLimit  = 600 // bytes of its text; a cookie has 4,096 at most
)

// done answers an action: with the page to go back to, which begins with what was done.
func done(w http.ResponseWriter, r *http.Request, to, format string, args ...any) error {
	return redirectWith(w, r, to, flash{Text: fmt.Sprintf(format, args...)})
}

// undone answers an action that did not work, in the same way. What is no refusal but a failure gets its own
// page.
func undone(w http.ResponseWriter, r *http.Request, to string, err error) error {
	if status := api.StatusOf(wordsOf(err).Kind); status >= http.StatusInternalServerError {
		return err
	}
	return redirectWith(w, r, to, flash{Text: sentence(err), Bad: true})
}

func redirectWith(w http.ResponseWriter, r *http.Request, to string, f flash) error {
	f.Text = clip(f.Text, flashLimit)
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write flash: %w", err)
	}
	http.SetCookie(w, &http.Cookie{
		Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(raw), Path: "/", MaxAge: 60, HttpOnly: true,
		Secure:   secure(r),
		SameSite: http.SameSiteLaxMode,
	})
	return redirect(w, r, to)
}

// takeFlash reads the sentence and forgets it. One that can't be read is none.
func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: secure(r),
		SameSite: http.SameSiteLaxMode})
	var f flash
	raw, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(raw, &f) != nil || f.Text == "" {
		return nil
	}
	return &f
}
