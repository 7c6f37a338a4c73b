package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/outbox/templates/locale"
)

// digestView is the part of the page of preferences about digests.
type digestView struct {
	W     map[string]string
	Token string
	Wrong []digestWrong
	Forms []digestReaderView
}

// digestWrong is a field with a wrong value. Without an ID it is on no form of the page.
type digestWrong struct{ ID, Name, Text string }

// digestReaderView is the form of one recipient.
type digestReaderView struct {
	Name, Recipient string // empty if it is the only one
	TZ              string
	Zone            digestField
	Rows            []digestRow
}

type digestRow struct {
	Title, Note, Next             string
	Mode, Hour, Minute, Days, Day digestField
}

type digestField struct {
	ID, Name, Label string
	Wrong           string // id of the error's text; empty if nothing is wrong
	Options         []digestOption
}

type digestOption struct {
	Value, Text string
	Chosen      bool
}

// commonZones are proposed; any other may be written. Without a script, a page does not learn the zone of its
// browser.
var commonZones = []string{"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "America/Anchorage",
	"America/Bogota", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Mexico_City",
	"America/New_York", "America/Sao_Paulo", "America/Toronto", "Asia/Dubai", "Asia/Hong_Kong", "Asia/Jakarta",
	"Asia/Jerusalem", "Asia/Karachi", "Asia/Kolkata", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore",
	"Asia/Tokyo", "Atlantic/Reykjavik", "Australia/Perth", "Australia/Sydney", "Europe/Athens", "Europe/Berlin",
	"Europe/Istanbul", "Europe/Lisbon", "Europe/London", "Europe/Madrid", "Europe/Moscow", "Europe/Paris",
	"Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich", "Pacific/Auckland",
	"Pacific/Honolulu"}

func (p publicVisit) ofDigests() bool {
	return p.visit != nil && strings.EqualFold(p.visit.List, digest.ListID(p.visit.Account))
}

// readers returns the recipients of digests that a visit is about.
func (u unsubscribeRoutes) readers(ctx context.Context, p publicVisit) ([]digest.Reader, error) {
	return u.digests.Readers(ctx, p.visit.Account, p.visit.Address, p.lang)
}

// saveDigests carries out a form of digests, and shows the page again. A wrong field changes nothing.
func (u unsubscribeRoutes) saveDigests(c echo.Context, p publicVisit, f digestForm) error {
	ctx := c.Request().Context()
	all, err := u.readers(ctx, p)
	if err != nil {
		return u.showFailed(c, p, pageButton{}, err)
	}
	shown, wrong := slices.Clone(all), []wrongField(nil)
	requests, meant := make([]api.DigestRecipientRequest, len(all)), 0
	for i, r := range all {
		if f.recipient == "" || f.recipient == r.Recipient {
			var of []wrongField
			shown[i], requests[i], of = f.apply(r)
			wrong, meant = append(wrong, of...), meant+1
		}
	}
	if meant == 0 {
		return u.showUnknown(c, p)
	}
	for i, r := range all {
		if wrong != nil || requests[i].TZ == nil && len(requests[i].Preferences) == 0 {
			continue
		}
		_, err := u.digests.Patch(ctx, p.visit.Account, r.Recipient, requests[i])
		if fault.Is(err, fault.Invalid) {
			wrong = refusedBy(err)
		} else if err != nil {
			return u.showFailed(c, p, pageButton{}, err)
		}
	}
	if wrong != nil {
		return u.showChoices(c, p, http.StatusBadRequest, false, shown, wrong)
	}
	return u.showStanding(c, p, true)
}

// refusedBy returns what package digest finds wrong with a form, such as too many categories.
func refusedBy(err error) []wrongField {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(f.Fields) == 0 {
		return []wrongField{{text: err.Error()}}
	}
	var wrong []wrongField
	for _, field := range f.Fields {
		wrong = append(wrong, wrongField{text: field.Key + " " + field.Message})
	}
	return wrong
}

// stopped returns recipients whose mail is stopped: only required mail still comes.
func stopped(all []digest.Reader) []digest.Reader {
	all = slices.Clone(all)
	for i := range all {
		all[i].Choices = slices.Clone(all[i].Choices)
		for j, c := range all[i].Choices {
			if !c.Required {
				all[i].Choices[j].Next = time.Time{}
			}
		}
	}
	return all
}

// wantAny reports whether recipients have anything but off, of what may be off.
func wantAny(all []digest.Reader) bool {
	return slices.ContainsFunc(all, func(r digest.Reader) bool {
		return slices.ContainsFunc(r.Choices, func(c digest.Choice) bool {
			return !c.Required && c.Preference.Mode != "off"
		})
	})
}

// digestsOf returns a page's part about digests, or nil if the address has none.
func (p publicVisit) digestsOf(all []digest.Reader, wrong []wrongField) *digestView {
	if len(all) == 0 {
		return nil
	}
	v := &digestView{W: p.words, Token: p.token}
	names := map[string][2]string{} // id and label, by the name of a field
	for n, r := range all {
		form := p.digestReader(n, r, wrong, names)
		if len(all) > 1 {
			form.Recipient, form.Name = r.Recipient, r.Recipient
			if r.Name != "" {
				form.Name = r.Name + " (" + r.Recipient + ")"
			}
		}
		v.Forms = append(v.Forms, form)
	}
	said := map[string]bool{}
	for _, w := range wrong {
		text, field := w.text, names[w.name]
		if w.word != "" {
			text = p.words[w.word]
		}
		if key := w.name + " " + text; !said[key] { // several recipients have the same
			said[key] = true
			v.Wrong = append(v.Wrong, digestWrong{field[0], field[1], text})
		}
	}
	return v
}

// digestReader returns the form of the nth recipient, and notes the names of its fields.
func (p publicVisit) digestReader(n int, r digest.Reader, wrong []wrongField,
	names map[string][2]string) digestReaderView {
	field := func(id, name, about, label string) digestField {
		f := digestField{ID: fmt.Sprintf("r%d-%s", n, id), Name: name, Label: p.words[label]}
		if _, ok := names[name]; !ok {
			names[name] = [2]string{f.ID, about + f.Label}
		}
		if slices.ContainsFunc(wrong, func(w wrongField) bool { return w.name == name }) {
			f.Wrong = "wrong-" + names[name][0]
		}
		return f
	}
	form := digestReaderView{TZ: r.TZ, Zone: field("tz", digestZone, "", "zone")}
	for _, zone := range commonZones {
		form.Zone.Options = append(form.Zone.Options, digestOption{Value: zone})
	}
	for i, c := range r.Choices {
		row := digestRow{Title: c.Title, Next: p.nextWords(r, c)}
		switch {
		case c.Category == "*" && len(r.Choices) == 1:
			row.Title = p.words["digestsEvery"]
		case c.Category == "*":
			row.Title = p.words["digestsRest"]
		}
		if c.Required {
			row.Note = p.words["required"]
		}
		of := func(name, label string) digestField {
			return field(fmt.Sprintf("%d-%s", i, name), name+"."+c.Category, row.Title+", ", label)
		}
		chosen := c.Preference
		row.Mode, row.Days = of(digestMode, "often"), of(digestWeekday, "weekdays")
		row.Hour, row.Minute = of(digestHour, "hour"), of(digestMinute, "minute")
		row.Day = of(digestDay, "day")
		row.Mode.Options = p.modeOptions(c)
		row.Hour.Options = numbers(0, 23, 1, "%02d", *chosen.Hour)
		row.Minute.Options = numbers(0, 59, 5, "%02d", *chosen.Minute)
		row.Day.Options = numbers(1, 31, 1, "%d", chosen.Day)
		for n, day := range digestDays {
			row.Days.Options = append(row.Days.Options, digestOption{day,
				locale.Find(p.lang).Format(aMonday.AddDate(0, 0, n), "dddd"), slices.Contains(chosen.Weekdays, day)})
		}
		form.Rows = append(form.Rows, row)
	}
	return form
}

// aMonday is some Monday, for the names of weekdays.
var aMonday = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// modeOptions returns the modes of a category: not off if it is required, custom only where it is chosen.
func (p publicVisit) modeOptions(c digest.Choice) (all []digestOption) {
	for _, mode := range digestModes {
		if mode != "off" || !c.Required {
			all = append(all, digestOption{mode, p.words[mode], mode == c.Preference.Mode})
		}
	}
	if c.Preference.Mode == "custom" {
		all = append(all, digestOption{"custom", p.words["custom"] + ": " + p.customWords(c.Preference), true})
	}
	return all
}

func (p publicVisit) customWords(of api.DigestPreference) string {
	if of.Cron != "" {
		return of.Cron
	}
	var times []string
	for _, t := range of.Times {
		day := aMonday.AddDate(0, 0, max(0, slices.Index(digestDays, t.Weekday)))
		times = append(times, locale.Find(p.lang).Format(day, "dddd")+" "+t.At)
	}
	return strings.Join(times, ", ")
}

// nextWords says when the next email of a category can come.
func (p publicVisit) nextWords(r digest.Reader, c digest.Choice) string {
	switch {
	case c.Next.IsZero():
		return p.words["nextNever"]
	case c.Now:
		return p.words["nextNow"]
	}
	at := c.Next.In(r.Zone)
	day := locale.Find(p.lang).Date(at, "full")
	return fmt.Sprintf("%s %s, %s (%s)", p.words["next"], day, at.Format("15:04"), r.Zone)
}

func numbers(least, most, step int, format string, chosen int) (all []digestOption) {
	for n := least; n <= most; n++ {
		if (n-least)%step == 0 || n == chosen {
			all = append(all, digestOption{fmt.Sprint(n), fmt.Sprintf(format, n), n == chosen})
		}
	}
	return all
}
