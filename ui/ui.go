package ui

import (
	"cmp"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/postroom/postroom/api"
)

// DashboardPath is where the dashboard of the queues is mounted.
const DashboardPath = "/admin/queues"

// Options are the settings of the pages. The zero value works.
type Options struct {
	Version string       // of Postroom, for the pages; empty: "dev"
	Logger  *slog.Logger // nil: nothing is logged
	SignOn  *SignOn      // nil: persons log in here only
	Demo    *Demo        // nil: this is no demo
	// Configuration is the settings that the process was started with; nil: they are not shown
	Configuration []api.ConfiguredSetting
}

// UI serves the pages. It is safe for concurrent use.
type UI struct {
	Parts
	opts   Options
	log    *slog.Logger
	mux    *http.ServeMux
	pages  map[string]func() (*template.Template, error)
	static *files
	csrf   *http.CrossOriginProtection
}

// New returns a UI.
func New(parts Parts, o Options) (*UI, error) {
	for field, value := range reflect.ValueOf(parts).Fields() {
		if value.Kind() != reflect.Struct && value.IsNil() {
			return nil, fmt.Errorf("new ui: Parts.%s is missing", field.Name)
		}
	}
	o.Version, o.Logger = cmp.Or(o.Version, "dev"), cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	u := &UI{Parts: parts, opts: o, log: o.Logger, csrf: http.NewCrossOriginProtection()}
	var err error
	if u.static, err = loadFiles(); err != nil {
		return nil, fmt.Errorf("new ui: %w", err)
	}
	if u.pages, err = loadPages(u.static); err != nil {
		return nil, fmt.Errorf("new ui: %w", err)
	}
	u.mux = u.routes()
	return u, nil
}

// ServeHTTP answers with a page.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	u.mux.ServeHTTP(w, r)
}

// policy is the Content-Security-Policy of the pages: only files of this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// protect sets the security headers of an answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	// Not no-referrer: then browsers post forms with "Origin: null". Without Sec-Fetch-Site, as on plain http
	// from another host, nothing would identify our own pages.
	h.Set("Referrer-Policy", "same-origin")
}
