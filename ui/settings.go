package ui

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/server/settings"
)

// settingRow is one setting of the form. The values of headers, which may be secrets, are masked.
type settingRow struct {
	api.Setting
	Was     string        // hash of the text that the form was made with, so that only changes are stored
	Default string        // value of the configuration
	Wrong   []fault.Field // what is wrong with Text
	stored  string        // the text, not masked
}

// settings shows the settings that can be changed while Postroom runs.
func (u *UI) settings(w http.ResponseWriter, r *http.Request) error {
	rows, err := u.rows(r)
	if err != nil {
		return err
	}
	return u.showSettings(w, r, http.StatusOK, rows)
}

type settingsView struct {
	Rows       []settingRow
	Configured []api.ConfiguredSetting // at the start; empty: they aren't known
	Q          string                  // filters Configured
}

// settingSection is a part of a long list of settings.
type settingSection struct {
	Legend string
	Rows   []settingRow
	Config []api.ConfiguredSetting
	Open   bool
}

// settingLabels are the settings in words, and the first setting of each section.
var settingLabels = map[string]string{
	"webhooks": "Webhook URL", "webhookEvents": "Webhook events", "webhooksCustomHeaders": "Webhook headers",
	"webhooksEnabled": "Send webhooks", "serviceUrl": "Public address", "deliveryAttempts": "Delivery attempts",
	"queueKeep": "Finished jobs to keep", "trackOpens": "Track opens", "trackClicks": "Track clicks",
	"blockedLinks": "Blocked links",
}

// Sections returns the settings of the form by topic.
func (v settingsView) Sections() (all []settingSection) {
	for _, row := range v.Rows {
		legend := map[string]string{"webhooks": "Webhooks", "serviceUrl": "Sending",
			"trackOpens": "Tracking"}[row.Name]
		if legend != "" || len(all) == 0 {
			all = append(all, settingSection{Legend: legend})
		}
		last := &all[len(all)-1]
		last.Rows = append(last.Rows, row)
	}
	return all
}

// Label returns a setting in words.
func (row settingRow) Label() string { return cmp.Or(settingLabels[row.Name], row.Name) }

// Configuration returns the configuration by the first part of its keys. A section with values of its own is
// open. A search leaves only what matches, and opens all.
func (v settingsView) Configuration() (all []settingSection) {
	for _, c := range v.Configured {
		if v.Q != "" && !strings.Contains(strings.ToLower(c.Key+" "+c.Env+" "+c.Value), strings.ToLower(v.Q)) {
			continue
		}
		name, _, _ := strings.Cut(c.Key, ".")
		if len(all) == 0 || all[len(all)-1].Legend != name {
			all = append(all, settingSection{Legend: name})
		}
		last := &all[len(all)-1]
		last.Config, last.Open = append(last.Config, c), last.Open || v.Q != "" || c.Source != "default"
	}
	return all
}

func (u *UI) showSettings(w http.ResponseWriter, r *http.Request, status int,
	rows []settingRow) error {
	return u.show(w, r, status, "settings", "Settings", settingsView{rows, u.opts.Configuration,
		strings.TrimSpace(r.URL.Query().Get("q"))})
}

func (u *UI) rows(r *http.Request) ([]settingRow, error) {
	now, err := u.Settings.Get(r.Context())
	if err != nil {
		return nil, err
	}
	defaults := u.Settings.Defaults()
	all, before := now.List(), defaults.List()
	rows := make([]settingRow, len(all))
	for i, s := range all {
		rows[i] = settingRow{Setting: s, Default: masked(before[i]), stored: s.Text}
		rows[i].Text = masked(s)
		rows[i].Was = hashOf(rows[i].Text)
	}
	return rows, nil
}

// masked returns the text of a setting, with the values of headers masked.
func masked(s api.Setting) string {
	if s.Kind != "headers" || s.Text == "" {
		return s.Text
	}
	lines := strings.Split(s.Text, "\n")
	for i, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		lines[i] = name + ": " + records.Mask
	}
	return strings.Join(lines, "\n")
}

// unmasked returns a text of the form with the stored values in the place of masks.
func (row settingRow) unmasked(text string) string {
	if row.Kind != "headers" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(value) != records.Mask {
			continue
		}
		for old := range strings.Lines(row.stored) {
			if key, _, _ := strings.Cut(old, ":"); strings.EqualFold(key, strings.TrimSpace(name)) {
				lines[i] = strings.TrimSpace(old)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// hashOf identifies a text of a form, whose line ends a browser changes.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))))
	return hex.EncodeToString(sum[:])
}

// changeSettings stores the fields that differ from what the form was made with. A setting that is left alone
// keeps following the configuration, or what somebody else stored meanwhile.
func (u *UI) changeSettings(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	rows, err := u.rows(r)
	if err != nil {
		return err
	}
	var req api.Settings
	var wrong fault.Fields
	for i := range rows {
		row := &rows[i]
		if !r.PostForm.Has(row.Name) || hashOf(r.PostForm.Get(row.Name)) == r.PostForm.Get("was."+row.Name) {
			continue
		}
		row.Text, row.Was = r.PostForm.Get(row.Name), r.PostForm.Get("was."+row.Name)
		text := row.unmasked(row.Text)
		if err := req.Put(row.Name, text); err != nil {
			wrong.Add(row.Name, "%s", err)
		}
		if row.Kind == "headers" && strings.Contains(text, records.Mask) {
			wrong.Add(row.Name, "has a header without a stored value; replace "+records.Mask+" with its value")
		}
	}
	if err := settings.Check(req); err != nil {
		wrong = append(wrong, wordsOf(err).Fields...)
	}
	if len(wrong) > 0 {
		return u.refused(w, r, rows, wrong)
	}
	updated, err := u.Settings.Update(r.Context(), req)
	if err != nil {
		return err
	}
	if len(updated) == 0 {
		return done(w, r, "/settings", "Nothing was changed.")
	}
	return done(w, r, "/settings", "Changed: %s. All processes apply it within two seconds.",
		strings.Join(updated, ", "))
}

// refused shows the form again with the entered values and the errors.
func (u *UI) refused(w http.ResponseWriter, r *http.Request, rows []settingRow,
	wrong fault.Fields) error {
	noteOutcome(r, fault.InvalidFields(wrong))
	for _, f := range wrong {
		name, _, _ := strings.Cut(f.Key, "[") // of an item of a list
		for i := range rows {
			if rows[i].Name == name {
				rows[i].Wrong = append(rows[i].Wrong, f)
			}
		}
	}
	return u.showSettings(w, r, http.StatusBadRequest, rows)
}
