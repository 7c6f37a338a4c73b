package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// whenHelp says how preferences are written.
const whenHelp = `A preference is written as one of:
  immediate            at once; immediate 10m: at most every 10 minutes
  hourly :30           each hour, half past
  daily 08:00          each day, by the clock of the reader
  weekly mon,thu 08:00 on these days
  monthly 15 08:00     on this day of the month, or its last one
  cron 0 9 * * 1-5     by the five fields of cron
  mon 08:30, fri 16:00 at these times of the week
  off                  never
Days and times may be left out. JSON as the API takes it is possible, too.`

var (
	clockForm = regexp.MustCompile(`^(\d{1,2})?:(\d{2})$`)
	dayForm   = regexp.MustCompile(`^\d{1,2}$`)
	slotForm  = regexp.MustCompile(`^(mon|tue|wed|thu|fri|sat|sun) +(\d{1,2}:\d{2})$`)
)

// parsePreference reads a preference as whenHelp has it. Postroom checks the values.
func parsePreference(text string) (p api.DigestPreference, _ error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "{") {
		if err := strictJSON([]byte(text), &p); err != nil {
			return p, fmt.Errorf("%s is no preference in JSON: %w", text, err)
		}
		return p, nil
	}
	mode, rest, _ := strings.Cut(text, " ")
	switch p.Mode = mode; mode {
	case "off", "hourly", "daily", "weekly", "monthly":
		for _, word := range strings.Fields(rest) {
			if !setPreference(&p, word) {
				return p, wrongPreference(text)
			}
		}
		return p, nil
	case "immediate":
		p.Gap = strings.TrimSpace(rest)
		return p, nil
	case "cron":
		p.Mode, p.Cron = "custom", strings.TrimSpace(rest)
		return p, nil
	}
	p.Mode = "custom"
	for slot := range strings.SplitSeq(text, ",") {
		at := slotForm.FindStringSubmatch(strings.TrimSpace(slot))
		if at == nil {
			return p, wrongPreference(text)
		}
		p.Times = append(p.Times, api.DigestWeekTime{Weekday: at[1], At: at[2]})
	}
	return p, nil
}

func wrongPreference(text string) error {
	return fmt.Errorf("%q is no preference such as 'daily 08:00' or 'weekly mon 08:00'; "+
		"see: postroom digest times --help", text)
}

// setPreference reads one word behind a mode: a time, a day of the month or days of the week.
func setPreference(p *api.DigestPreference, word string) bool {
	if at := clockForm.FindStringSubmatch(word); at != nil && p.Mode != "off" && p.Minute == nil {
		minute, _ := strconv.Atoi(at[2]) // digits
		p.Minute = &minute
		if at[1] != "" {
			hour, _ := strconv.Atoi(at[1]) // digits
			p.Hour = &hour
		}
		return (p.Hour == nil) == (p.Mode == "hourly")
	}
	switch {
	case p.Mode == "monthly" && p.Day == 0 && dayForm.MatchString(word):
		p.Day, _ = strconv.Atoi(word) // digits
		return p.Day > 0
	case p.Mode == "weekly" && p.Weekdays == nil:
		p.Weekdays = strings.Split(word, ",")
		return true
	}
	return false
}

// preferenceText writes a preference as parsePreference reads it.
func preferenceText(p api.DigestPreference) string {
	words := []string{p.Mode}
	switch p.Mode {
	case "immediate":
		words = append(words, p.Gap)
	case "custom":
		if p.Cron != "" {
			return "cron " + p.Cron
		}
		slots := make([]string, len(p.Times))
		for i, t := range p.Times {
			slots[i] = t.Weekday + " " + t.At
		}
		return strings.Join(slots, ", ")
	case "weekly":
		words = append(words, strings.Join(p.Weekdays, ","))
	case "monthly":
		words = append(words, noteIf(p.Day > 0, "%d", p.Day))
	}
	minute := 0
	api.Set(&minute, p.Minute)
	if p.Hour != nil {
		words = append(words, fmt.Sprintf("%02d:%02d", *p.Hour, minute))
	} else if p.Minute != nil {
		words = append(words, fmt.Sprintf(":%02d", minute))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// parseQuiet reads quiet hours: FROM-UNTIL, with the days on which they begin before it.
func parseQuiet(text string) (q api.DigestQuiet, _ error) {
	days, hours, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok {
		days, hours = "", days
	}
	if q.From, q.Until, ok = strings.Cut(hours, "-"); !ok {
		return q, usage("--quiet: %q is not such as 22:00-07:00 or 'fri,sat 22:00-09:00'", text)
	}
	if days != "" {
		q.Weekdays = strings.Split(days, ",")
	}
	return q, nil
}

// parseQuiets reads the quiet hours of flags; nil: there are none.
func parseQuiets(texts []string) ([]api.DigestQuiet, error) {
	var list []api.DigestQuiet
	for _, text := range texts {
		q, err := parseQuiet(text)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

func quietText(q api.DigestQuiet) string {
	return strings.TrimSpace(strings.Join(q.Weekdays, ",") + " " + q.From + "-" + q.Until)
}

// strictJSON reads JSON that may have no other fields.
func strictJSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("something follows the object")
	}
	return nil
}

// digestTimesCmd says when a preference comes.
type digestTimesCmd struct {
	Preference string   `arg:"" help:"Such as 'weekly mon 08:00'."`
	TZ         string   `name:"tz" placeholder:"ZONE" help:"Time zone of the reader, such as Europe/Zurich. Default: UTC."`
	Quiet      []string `sep:"none" placeholder:"HOURS" help:"Quiet hours, such as 22:00-07:00 or 'fri,sat 22:00-09:00'; may be repeated."`
	After      string   `placeholder:"WHEN" help:"From when on: in 48h, or 2030-12-24T08:00:00Z. Default: now."`
	Count      int      `short:"n" default:"5" help:"How many times, at most 100."`
}

// Run prints the times.
func (c *digestTimesCmd) Run(s *session) error {
	preference, err := parsePreference(c.Preference)
	if err != nil {
		return usage("%v", err)
	}
	quiet, err := parseQuiets(c.Quiet)
	if err != nil {
		return err
	}
	after, err := optionalTime("--after", c.After, parseWhen)
	if err != nil {
		return err
	}
	found, err := api.ComputeDigestTimes.Do(s, s.client, api.DigestTimesRequest{Preference: preference,
		Quiet: quiet, TZ: c.TZ, After: after, Count: c.Count})
	g, now, words := newGrid("local time", "period", "when"), time.Now(), ""
	for _, t := range found.Times {
		g.add(t.Local, t.Period, moment(t.At, now))
		words = clean(t.Words)
	}
	return s.table(found, err, "it never comes", g, words)
}
