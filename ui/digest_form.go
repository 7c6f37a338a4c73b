package ui

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
)

// mostRows bounds the rows of a recipient's form: 32 categories, all others, and a new one.
const mostRows = 100

// digestCategoryRow is the fields of a category in the form of a recipient.
type digestCategoryRow struct {
	cadenceView
	Category string // empty for a row where a new category is typed
	Title    string
	Used     string // the schedule in use; empty for a new row
	Required bool   // it can't be off
}

// rowPrefix begins the names of the fields of a row.
func rowPrefix(i int) string { return "c." + strconv.Itoa(i) + "." }

func recipientValues(one api.DigestRecipient, reader digest.Reader) url.Values {
	f := values(map[string]string{"email": one.Email, "name": one.Name, "locale": one.Locale, "tz": one.TZ,
		"quiet": quietText(one.Quiet), "version": strconv.Itoa(one.Version)})
	if one.PausedUntil != nil {
		f.Set("pausedUntil", formMoment(*one.PausedUntil))
	}
	for i, choice := range reader.Choices {
		f.Set(rowPrefix(i)+"category", choice.Category)
		if p, ok := one.Preferences[choice.Category]; ok {
			setCadence(f, rowPrefix(i), &p)
		}
	}
	return f
}

// categoryRows returns a row for each category in the form, and one for a new category.
func categoryRows(f url.Values, reader digest.Reader) []digestCategoryRow {
	known := map[string]digest.Choice{}
	for _, choice := range reader.Choices {
		known[choice.Category] = choice
	}
	var rows []digestCategoryRow
	for i := range mostRows {
		category := f.Get(rowPrefix(i) + "category")
		row := digestCategoryRow{cadenceView: cadenceView{Form: formValues{f}, Prefix: rowPrefix(i),
			Label: "Mailed", None: "by default"}}
		if choice, ok := known[category]; ok {
			row.Category, row.Title, row.Required, row.Used = category, choice.Title, choice.Required, choice.Words
			delete(known, category) // named again, it is a new one
		}
		if rows = append(rows, row); category == "" {
			break
		}
	}
	return rows
}

// readRecipient returns the change in a form. Its error names the fields that it can't read; package digest
// checks the others.
func readRecipient(f url.Values) (api.DigestRecipientRequest, error) {
	in := cadenceReader{form: f}
	text := func(name string) *string { return new(strings.TrimSpace(f.Get(name))) }
	req := api.DigestRecipientRequest{Email: text("email"), Name: text("name"), Locale: text("locale"),
		TZ: text("tz"), Preferences: map[string]*api.DigestPreference{}}
	for i := range mostRows {
		category, prefix := strings.TrimSpace(f.Get(rowPrefix(i)+"category")), rowPrefix(i)
		p := in.read(prefix, "preferences."+category)
		_, twice := req.Preferences[category]
		switch {
		case category == "" && p == nil:
		case category == "":
			in.wrong.Add("category", "is required for a schedule")
		case twice:
			in.wrong.Add("preferences."+category, "is there twice")
		default:
			req.Preferences[category] = p
		}
	}
	quiet := in.quiet(f.Get("quiet"))
	req.Quiet = &quiet
	paused, err := readMoment(f.Get("pausedUntil"))
	if err != nil || paused.Year() > 9999 {
		in.wrong.Add("pausedUntil", "must be a date and time such as 2026-01-31T08:30")
		paused = time.Time{}
	}
	req.PausedUntil = &paused
	version, err := strconv.Atoi(f.Get("version"))
	if err != nil {
		in.wrong.Add("version", "must be a number")
	}
	req.Version = &version
	return req, fault.InvalidFields(in.wrong)
}
