package ui

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

// importFieldLimit is the size limit of each field before the file of an import.
const importFieldLimit = 32 << 10

// importWait is the timeout of an upload. Larger files are for the command line.
const importWait = 30 * time.Minute

// upload reads a form with a file, and calls take with its fields when it reaches the file. It doesn't read
// fields after the file.
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

// importsView is the page of an account's imports, with the form of a new one.
type importsView struct {
	formValues
	Account, ID      string
	Imports          []api.SubscriberImport
	States, Existing []string
	Charsets         []string
	Delimiters       []delimiterChoice
	Lists            formField             // a picker
	Sample           audience.ImportSample // the beginning of a file that was chosen; empty if none was
}

// Targets returns what a column can be imported as.
func (v importsView) Targets(c audience.ImportColumn) []pick {
	all := []pick{{ID: "", Name: "skip this column"}, {ID: "email", Name: "email address"},
		{ID: "name", Name: "full name"}, {ID: "first", Name: "first name"}, {ID: "last", Name: "last name"},
		{ID: "locale", Name: "language"}, {ID: "tz", Name: "time zone"}, {ID: "tags", Name: "tags"}}
	if c.Offered != "" {
		for _, kind := range []string{"string", "number", "bool", "date", "list"} {
			words := map[string]string{"string": "text", "bool": "yes or no"}
			all = append(all, pick{ID: "attributes." + c.Offered + ":" + kind,
				Name: "attribute " + c.Offered + ", " + cmp.Or(words[kind], kind)})
		}
	}
	if !slices.ContainsFunc(all, func(p pick) bool { return p.ID == c.Target }) {
		all = append(all, pick{ID: c.Target, Name: c.Target})
	}
	return all
}

// mappedColumns returns the option columns for a form's mapping. It is empty if the mapping is what the
// import does without it. A heading with a comma can't be mapped.
func mappedColumns(f url.Values) (string, error) {
	headings, chosen, was := f["heading"], f["column"], f["automatic"]
	if len(headings) != len(chosen) || len(was) != len(chosen) || slices.Equal(chosen, was) {
		return f.Get("columns"), nil
	}
	var all []string
	for i, heading := range headings {
		switch {
		case chosen[i] == "":
		case strings.Contains(heading, ","):
			return "", fault.InvalidField("columns", "can't name %q, which has a comma; rename the column", heading)
		default:
			all = append(all, heading+":"+chosen[i])
		}
	}
	return strings.Join(all, ","), nil
}

// delimiterChoice is a separator of columns.
type delimiterChoice struct{ Value, Words string }

// Running reports whether one of the imports is still running.
func (v importsView) Running() bool {
	return slices.ContainsFunc(v.Imports, func(i api.SubscriberImport) bool { return i.State == "running" })
}

// imports shows an account's imports, and the form of a new one.
func (u *UI) imports(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := values(map[string]string{"account": clip(q.Get("account"), 256), "lists": clip(q.Get("list"), 1024),
		"id": clip(q.Get("id"), 63)})
	return u.showImports(w, r, f, audience.ImportSample{})
}

// showImports answers with the imports and the form, as it was filled in. An import that was interrupted
// brings its ID.
func (u *UI) showImports(w http.ResponseWriter, r *http.Request, f url.Values,
	sample audience.ImportSample) error {
	account, err := audienceOf(r, f.Get("account"))
	if err != nil {
		return err
	}
	v := importsView{formValues: formValues{f}, Account: account, ID: f.Get("id"), Sample: sample,
		States: []string{"subscribed", "pending", "left"}, Existing: []string{"merge", "skip", "replace"},
		Charsets:   []string{"utf-8", "utf-16le", "utf-16be", "windows-1252"},
		Delimiters: []delimiterChoice{{",", "comma"}, {";", "semicolon"}, {"|", "bar"}, {"tab", "tab"}}}
	got, err := u.Audience.Imports.List(r.Context(), boundTo(r), api.SubscriberAccount{Account: account})
	if err != nil {
		return err
	}
	lists, err := u.listPicks(r, account)
	if err != nil {
		return err
	}
	v.Imports = got.Imports
	v.Lists = picker(f, "lists", "Lists", "Leave all unchecked to import people without subscribing them.", lists)
	v.Lists.Chosen = f["lists"]
	return u.show(w, r, http.StatusOK, "imports", "Imports of subscribers", v)
}

// sampleBytes is how much of a file the preview of its columns reads.
const sampleBytes = 64 << 10

// previewImport answers with the form and the first rows of its file, whose columns can be mapped there. It
// stores nothing, so the file has to be sent again.
func (u *UI) previewImport(w http.ResponseWriter, r *http.Request) error {
	return upload(w, r, func(f url.Values, name string, file io.Reader) error {
		o := importOptions(f, f.Get("account"), name, 0)
		var sample audience.ImportSample
		if o.JSONL {
			sample.Wrong = "is JSONL, which has no columns"
		} else {
			var err error
			sample, err = u.Audience.Imports.Sample(io.LimitReader(file, sampleBytes), o)
			if fault.Is(err, fault.Invalid) {
				sample.Wrong = wordsOf(err).Fields[0].Message
			} else if err != nil {
				return err
			}
		}
		return u.showImports(w, r, f, sample)
	})
}

// importSubscribers streams the file of a form into an import, and redirects to the page of its result.
func (u *UI) importSubscribers(w http.ResponseWriter, r *http.Request) error {
	return upload(w, r, func(f url.Values, name string, file io.Reader) error {
		account, err := audienceOf(r, f.Get("account"))
		if err != nil {
			return err
		}
		var got api.SubscriberImport
		o := importOptions(f, account, name, r.ContentLength)
		if o.Columns, err = mappedColumns(f); err == nil {
			got, err = u.Audience.Imports.Run(r.Context(), boundTo(r), file, o)
		}
		if got.ID == "" { // it didn't start
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

// importOptions returns the options of a form, without the mapping of columns. The extension of the file
// decides whether it is JSONL.
func importOptions(f url.Values, account, name string, size int64) api.SubscriberImportOptions {
	o := api.SubscriberImportOptions{ID: f.Get("id"), Account: account, ListID: picked(f, "lists"),
		State: f.Get("state"), Consent: f.Get("consent"), Confirm: f.Has("confirm"), Existing: f.Get("existing"),
		Delimiter: f.Get("delimiter"), Charset: f.Get("charset"), Tag: f.Get("tag"),
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

// Read returns the number of bytes that were read.
func (v importView) Read() int { return int(v.Bytes) }

// skip is how many people weren't put on a list, and why.
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

// stopImport stops an import that is running, or deletes one that has finished.
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
		return done(w, r, importPath(account, id), "The import stops after its current lines.")
	}
	return done(w, r, all, "Import %s deleted. Its subscribers stay.", id)
}
