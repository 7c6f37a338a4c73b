package ui

import (
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// importFieldLimit is the size limit of each field before the file of an import.
const importFieldLimit = 32 << 10

// importWait is the timeout of an upload. Larger files are for the command line.
const importWait = 30 * time.Minute

// upload reads a form with a file, and calls take with its fields when the file comes. Fields behind the file
// are not read.
func upload(w http.ResponseWriter, r *http.Request, take func(f url.Values, name string,
	file io.Reader) error) error {
	form, err := r.MultipartReader()
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "", "The form has no file")
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // fails for recorders of tests only
	_ = control.SetReadDeadline(time.Now().Add(importWait))
	fields := url.Values{}
	for {
		part, err := form.NextPart()
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "", "The form has no file")
		}
		if part.FormName() == "file" {
			return take(fields, part.FileName(), part)
		}
		value, err := io.ReadAll(io.LimitReader(part, importFieldLimit))
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "", "The form could not be read")
		}
		if len(fields) < 50 {
			fields.Add(part.FormName(), strings.TrimSpace(string(value)))
		}
	}
}

// importsView is the page of the imports of an account, with the form of a new one.
type importsView struct {
	Account, List, ID string
	Imports           []api.SubscriberImport
	States, Existing  []string
	Charsets          []string
	Delimiters        []delimiterChoice
}

// delimiterChoice is what may be between the columns of a file.
type delimiterChoice struct{ Value, Words string }

// Running reports whether one of the imports is not at its end.
func (v importsView) Running() bool {
	return slices.ContainsFunc(v.Imports, func(i api.SubscriberImport) bool { return i.State == "running" })
}

// imports shows the imports of an account, and the form of a new one.
func (u *UI) imports(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	account, err := audienceOf(r, clip(q.Get("account"), 256))
	if err != nil {
		return err
	}
	v := importsView{Account: account, List: clip(q.Get("list"), 1024), ID: clip(q.Get("id"), 63),
		States: []string{"subscribed", "pending", "left"}, Existing: []string{"merge", "skip", "replace"},
		Charsets:   []string{"utf-8", "utf-16le", "utf-16be", "windows-1252"},
		Delimiters: []delimiterChoice{{",", "comma"}, {";", "semicolon"}, {"|", "bar"}, {"tab", "tab"}}}
	got, err := u.Audience.Imports.List(r.Context(), boundTo(r), api.SubscriberAccount{Account: account})
	if err != nil {
		return err
	}
	v.Imports = got.Imports
	return u.show(w, r, http.StatusOK, "imports", "Imports of subscribers", v)
}

// importSubscribers streams the file of a form into an import, and leads to the page of its result.
func (u *UI) importSubscribers(w http.ResponseWriter, r *http.Request) error {
	return upload(w, r, func(f url.Values, name string, file io.Reader) error {
		account, err := audienceOf(r, f.Get("account"))
		if err != nil {
			return err
		}
		got, err := u.Audience.Imports.Run(r.Context(), boundTo(r), file, importOptions(f, account, name,
			r.ContentLength))
		if got.ID == "" { // it did not begin
			return undone(w, r, address("/imports", values(map[string]string{"account": account,
				"list": f.Get("lists"), "id": f.Get("id")})), err)
		}
		if err != nil {
			noteOutcome(r, err) // the page says why it was interrupted
		}
		noteMade(r, got)
		return redirect(w, r, importPath(account, got.ID))
	})
}

// importOptions returns the options of a form. The name of the file says whether it is JSONL.
func importOptions(f url.Values, account, name string, size int64) api.SubscriberImportOptions {
	o := api.SubscriberImportOptions{ID: f.Get("id"), Account: account, ListID: listed(f.Get("lists")),
		State: f.Get("state"), Consent: f.Get("consent"), Confirm: f.Has("confirm"), Existing: f.Get("existing"),
		Columns: f.Get("columns"), Delimiter: f.Get("delimiter"), Charset: f.Get("charset"), Tag: f.Get("tag"),
		Resubscribe: f.Has("resubscribe"), DryRun: f.Has("dryRun"), Size: max(0, size)}
	switch strings.ToLower(path.Ext(name)) {
	case ".jsonl", ".ndjson":
		o.JSONL = true
	}
	if o.Delimiter == "tab" {
		o.Delimiter = "\t"
	}
	return o
}

func importPath(account, id string) string {
	return "/imports/" + url.PathEscape(account) + "/" + url.PathEscape(id)
}

type importView struct {
	Account string
	api.SubscriberImport
	Skips []skip
}

// Read returns how many bytes of the file were read.
func (v importView) Read() int { return int(v.Bytes) }

// skip is how many were not put on lists for a reason.
type skip struct {
	Reason string
	Count  int
}

func (u *UI) subscriberImport(w http.ResponseWriter, r *http.Request) error {
	v := importView{Account: r.PathValue("account")}
	var err error
	v.SubscriberImport, err = u.Audience.Imports.Get(r.Context(), boundTo(r),
		api.SubscriberAccount{Account: v.Account}, r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, reason := range []string{"left", "unsubscribe", "hard_bounce", "spam_report", "manual"} {
		if n := v.Skipped[reason]; n > 0 {
			v.Skips = append(v.Skips, skip{strings.ReplaceAll(reason, "_", " "), n})
		}
	}
	return u.show(w, r, http.StatusOK, "import", "Import of subscribers", v)
}

// stopImport stops an import that runs, or forgets one that has ended.
func (u *UI) stopImport(w http.ResponseWriter, r *http.Request) error {
	account, id := r.PathValue("account"), r.PathValue("id")
	of := api.SubscriberAccount{Account: account}
	all := address("/imports", values(map[string]string{"account": account}))
	was, err := u.Audience.Imports.Get(r.Context(), boundTo(r), of, id)
	if err == nil {
		_, err = u.Audience.Imports.Stop(r.Context(), boundTo(r), of, id)
	}
	switch {
	case err != nil:
		return undone(w, r, all, err)
	case was.State == "running":
		return done(w, r, importPath(account, id), "It stops after the lines under way.")
	}
	return done(w, r, all, "The import %s was forgotten. What it changed stays.", id)
}
