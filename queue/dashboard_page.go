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

// pageSizeMost is the most tasks the dashboard lists on a page. asynqmon sets no bound and reads a negative size as "all".
const pageSizeMost = 100

// boundPage keeps page and size of a request within reason.
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

// indexPage is asynqmon's one HTML page, made to work without other hosts and under a strict content security policy.
type indexPage struct {
	parts []string // between them goes the nonce of each inline script
}

var (
	// fontLink finds the style sheets that asynqmon loads from Google. Its icons are drawings; only the typeface changes without them.
	fontLink = regexp.MustCompile(`<link[^>]*fonts\.googleapis\.com[^>]*>`)
	script   = regexp.MustCompile(`<script(>| )`)
)

// newIndexPage gets the page from asynqmon and rewrites it.
func newIndexPage(mon http.Handler, path string) (*indexPage, error) {
	page := &recorder{header: http.Header{}}
	mon.ServeHTTP(page, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path + "/"}, Header: http.Header{}})
	html := fontLink.ReplaceAllString(page.body.String(), "")
	html = strings.Replace(html, "</head>", `<style>body{font-family:system-ui,sans-serif}</style></head>`, 1)
	const mark = "\x00"
	html = script.ReplaceAllString(html, `<script nonce="`+mark+`"$1`)
	if !strings.Contains(html, mark) || strings.Contains(html, "googleapis") {
		return nil, errors.New("dashboard: the page of asynqmon does not look as expected")
	}
	return &indexPage{parts: strings.Split(html, mark)}, nil
}

// serve answers a request that is not for the API: with a file of asynqmon's if there is one, with the page otherwise.
func (p *indexPage) serve(w http.ResponseWriter, r *http.Request, mon http.Handler) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if strings.Contains(r.URL.Path, "/static/") || strings.Contains(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ".") {
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
	// The styles are made by script while the page runs, which no nonce can cover.
	h.Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'self' 'nonce-%s'; style-src 'self' 'unsafe-inline'; "+
		"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "+
		"frame-ancestors 'self'", nonce))
	_, _ = w.Write([]byte(strings.Join(p.parts, nonce)))
}

// fileOrPage passes a file of asynqmon's on and holds back the page it answers with when there is no such file.
type fileOrPage struct {
	http.ResponseWriter
	begun, page bool
}

// Write looks at the first bytes: asynqmon sends the page without a content type, files with one.
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

// apiAnswer passes on what asynqmon's API says, and makes a 404 of the HTML page that it sends for paths it does not know.
type apiAnswer struct {
	http.ResponseWriter
	begun, page bool
}

// Write looks at the first bytes.
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

// recorder keeps an answer in memory.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
