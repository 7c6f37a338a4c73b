package ui

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// dashboard serves asynqmon's pages behind our login. Their policy is their own: they set styles by script.
// Its files and answers, which set none, keep the policy of our pages.
func (u *UI) dashboard(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if strings.HasPrefix(r.URL.Path, DashboardPath+"/static/") {
		h.Set("Cache-Control", "private, max-age=86400") // the names of the files change with them
	}
	u.Dashboard.ServeHTTP(&linked{ResponseWriter: w}, r)
	return nil
}

// wayBack stands above the dashboard, outside of what its script manages.
const wayBack = `<a href="/" style="position:fixed;z-index:2000;top:14px;right:20px;padding:6px 14px;border-radius:999px;` +
	`background:#1f6f5c;color:#fff;font:600 14px system-ui,sans-serif;text-decoration:none">← Postroom</a>`

// manifest is a link that browsers follow without our cookie, so that they would read the login page for a
// manifest.
var manifest = regexp.MustCompile(`<link[^>]*rel="manifest"[^>]*>`)

// linked puts the way back into the dashboard's page, which is written at once.
type linked struct {
	http.ResponseWriter
	begun bool
}

// Write looks at the beginning of a page.
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

// Unwrap lets http.ResponseController reach the connection.
func (l *linked) Unwrap() http.ResponseWriter { return l.ResponseWriter }
