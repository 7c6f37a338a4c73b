package ui

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// dashboard serves asynqmon's pages behind the login. The pages set their own Content-Security-Policy,
// because they set styles by script. Files and answers keep that of our pages.
func (u *UI) dashboard(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if strings.HasPrefix(r.URL.Path, DashboardPath+"/static/") {
		h.Set("Cache-Control", "private, max-age=86400") // a changed file has another name
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		board := u.Dashboard
		if grantOf(r).ReadOnly {
			board = u.Viewer
		}
		board.ServeHTTP(&linked{ResponseWriter: w}, r)
		return nil
	}
	return u.loggedAction(w, r)
}

// wayBack is a link above the dashboard, outside of the elements of its script.
const wayBack = `<a href="/" style="position:fixed;z-index:2000;top:14px;right:20px;padding:6px 14px;border-radius:999px;` +
	`background:#1f6f5c;color:#fff;font:600 14px system-ui,sans-serif;text-decoration:none">← Postroom</a>`

// manifest is a link that browsers follow without the session's cookie. They would get the login page.
var manifest = regexp.MustCompile(`<link[^>]*rel="manifest"[^>]*>`)

// linked inserts wayBack into the page of the dashboard, which is written by one call.
type linked struct {
	http.ResponseWriter
	begun bool
}

// Write implements http.ResponseWriter.
func (l *linked) Write(b []byte) (int, error) {
	if l.begun || !strings.HasPrefix(l.Header().Get("Content-Type"), "text/html") {
		return l.ResponseWriter.Write(b)
	}
	l.begun = true
	l.Header().Del("Content-Length")
	page := bytes.Replace(manifest.ReplaceAll(b, nil), []byte("<body>"), []byte("<body>"+wayBack), 1)
	if _, err := l.ResponseWriter.Write(page); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unwrap is for http.ResponseController.
func (l *linked) Unwrap() http.ResponseWriter { return l.ResponseWriter }
