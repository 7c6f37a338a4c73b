package queue

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// pageSizeMost is the maximum number of tasks on a page. asynqmon sets no limit and reads a negative size
// as "all".
const pageSizeMost = 100

// boundPage limits page and size of a request.
func boundPage(r *http.Request) {
	q := r.URL.Query()
	for name, most := range map[string]int{"size": pageSizeMost, "page": 1_000_000} {
		if !q.Has(name) {
			continue
		}
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			q.Del(name)
			continue
		}
		q.Set(name, strconv.Itoa(min(max(1, n), most)))
	}
	r.URL.RawQuery = q.Encode()
}

// indexPage is asynqmon's one HTML page, changed to work without other hosts and under a strict content
// security policy.
type indexPage struct {
	parts []string // between them goes the nonce of each inline script
}

var (
	// fontLink matches the style sheets that asynqmon loads from Google. Its icons are drawings; only the
	// typeface changes without them.
	fontLink  = regexp.MustCompile(`<link[^>]*fonts\.googleapis\.com[^>]*>`)
	scriptTag = regexp.MustCompile(`<script(>| )`)
)

// newIndexPage gets the page from asynqmon and rewrites it.
func newIndexPage(mon http.Handler, path string) (*indexPage, error) {
	page := &recorder{header: http.Header{}}
	mon.ServeHTTP(page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path + "/"},
		Header: http.Header{}})
	html := fontLink.ReplaceAllString(page.body.String(), "")
	html = strings.Replace(html, "</head>", `<style>body{font-family:system-ui,sans-serif}</style></head>`, 1)
	const mark = "\x00"
	html = scriptTag.ReplaceAllString(html, `<script nonce="`+mark+`"$1`)
	if !strings.Contains(html, mark) || strings.Contains(html, "googleapis") {
		return nil, errors.New("dashboard: the page of asynqmon does not look as expected")
	}
	return &indexPage{parts: strings.Split(html, mark)}, nil
}

// serve responds to a request outside the API: with a file of asynqmon's if there is one, otherwise with
// the page.
func (p *indexPage) serve(w http.ResponseWriter, r *http.Request, mon http.Handler) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.URL.Path, "/static/") ||
		strings.Contains(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ".") {
		file := &fileOrPage{ResponseWriter: w}
		get := r.Clone(r.Context())
		get.Method = http.MethodGet
		mon.ServeHTTP(file, get)
		if !file.page {
			return
		}
	}
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	// The styles are created by script at run time, which no nonce can cover.
	h.Set("Content-Security-Policy",
		fmt.Sprintf("default-src 'none'; script-src 'self' 'nonce-%s'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "+
			"frame-ancestors 'self'", nonce))
	_, _ = w.Write([]byte(strings.Join(p.parts, nonce)))
}

// fileOrPage forwards a file of asynqmon's and suppresses the page that asynqmon sends if there is no such
// file.
type fileOrPage struct {
	http.ResponseWriter
	begun, page bool
}

// Write checks the first bytes: asynqmon sends the page without a content type, files with one.
func (f *fileOrPage) Write(b []byte) (int, error) {
	if !f.begun {
		f.begun = true
		f.page = f.Header().Get("Content-Type") == ""
	}
	if f.page {
		return len(b), nil
	}
	return f.ResponseWriter.Write(b)
}

// apiAnswer forwards responses of asynqmon's API, and replaces the HTML page that it sends for unknown
// paths by a 404.
type apiAnswer struct {
	http.ResponseWriter
	begun, page bool
}

// Write checks the first bytes.
func (a *apiAnswer) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		if a.page = bytes.HasPrefix(b, []byte("<!doctype")); a.page {
			http.Error(a.ResponseWriter, "There is no such page of the API.", http.StatusNotFound)
		}
	}
	if a.page {
		return len(b), nil
	}
	return a.ResponseWriter.Write(b)
}

// recorder keeps a response in memory.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
