package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Cron is times in the notation of cron(8). Crons that name the same times in different notations are equal.
// The zero Cron never comes.
type Cron struct {
	minutes, hours, days, months, weekdays set
	both                                   bool // both kinds of days must match; else either is enough
}

// cronField is the range of one of the five fields.
type cronField struct {
	name        string
	least, most int
	names       []string // the numbers' names, from least on
}

// sunday is the second number of a Sunday.
const sunday = 7

var cronFields = [5]cronField{
	{name: "minute", most: 59},
	{name: "hour", most: 23},
	{name: "day of the month", least: 1, most: 31},
	{name: "month", least: 1, most: 12,
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of the week", most: sunday, names: dayNames},
}

// all returns the set of every number that a field may have.
func (f cronField) all() set {
	most := f.most
	if most == sunday {
		most--
	}
	return (1<<(most+1) - 1) &^ (1<<f.least - 1)
}

// ParseCron reads the five fields of cron(8): "0 8 * * mon-fri". Each is *, a number, a name of a month or a
// day in three letters, a range, a range or * with a step, or a list of these. Sunday is 0 or 7. If both the
// day of the month and the day of the week are restricted, either is enough; a field that begins with * is
// not restricted, so both must match. An error names the field.
func ParseCron(text string) (Cron, error) {
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(texts) != len(cronFields) {
		return Cron{}, fmt.Errorf("must have five fields: minute, hour, day of the month, month, day of the week;"+
			" it has %d", len(texts))
	}
	var sets [len(cronFields)]set
	for i, f := range cronFields {
		s, err := f.parse(texts[i])
		if err != nil {
			return Cron{}, fmt.Errorf("%s: %w", f.name, err)
		}
		sets[i] = s
	}
	c := Cron{minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4]}
	c.both = texts[2][0] == '*' || texts[4][0] == '*'
	everyDay := c.days == cronFields[2].all() || c.weekdays == cronFields[4].all()
	if !c.both && everyDay {
		c.days, c.weekdays, c.both = cronFields[2].all(), cronFields[4].all(), true
	}
	return c, nil
}

func (f cronField) parse(text string) (all set, err error) {
	for part := range strings.SplitSeq(strings.ToLower(text), ",") {
		s, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		all |= s
	}
	if f.most == sunday && all.has(sunday) {
		all = all&^(1<<sunday) | 1
	}
	return all, nil
}

// parsePart reads one element of a list.
func (f cronField) parsePart(text string) (all set, err error) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.most || !digits(stepText) {
			return 0, fmt.Errorf("the step %q must be 1 to %d", stepText, f.most)
		}
	}
	from, until := f.least, f.most
	if span != "*" {
		first, last, ranged := strings.Cut(span, "-")
		if stepped && !ranged {
			return 0, errors.New("a step needs * or a range before it")
		}
		if from, err = f.number(first); err != nil {
			return 0, err
		}
		if until = from; ranged {
			if until, err = f.number(last); err != nil {
				return 0, err
			}
		}
		if f.most == sunday && until == 0 && from > 0 {
			until = sunday // sat-sun
		}
	}
	if from > until {
		return 0, fmt.Errorf("the range %s goes backwards", span)
	}
	for n := from; n <= until; n += step {
		all |= 1 << n
	}
	return all, nil
}

func (f cronField) number(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.least + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || !digits(text) || n < f.least || n > f.most {
		names := ""
		if len(f.names) > 0 {
			names = fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
		}
		return 0, fmt.Errorf("%q must be %d to %d%s", text, f.least, f.most, names)
	}
	return n, nil
}

// digits reports whether a text that strconv reads has no sign.
func digits(text string) bool { return text[0] != '+' && text[0] != '-' }

// IsZero reports whether there is no cron.
func (c Cron) IsZero() bool { return c == Cron{} }

// String returns the cron as ParseCron reads it, or "" for the zero Cron. Equal crons have equal texts.
func (c Cron) String() string {
	if c.IsZero() {
		return ""
	}
	days, weekdays := cronFields[2].text(c.days), cronFields[4].text(c.weekdays)
	if c.both && days[0] != '*' && weekdays[0] != '*' {
		// One of the fields began with */n; it is what says that both must match.
		if c.days.has(1) {
			days = cronFields[2].star(c.days)
		} else {
			weekdays = cronFields[4].star(c.weekdays)
		}
	}
	return strings.Join([]string{cronFields[0].text(c.minutes), cronFields[1].text(c.hours), days,
		cronFields[3].text(c.months), weekdays}, " ")
}

// text writes a set as one field: *, or its numbers, three and more in a row as a range.
func (f cronField) text(s set) string {
	if s == f.all() {
		return "*"
	}
	var parts []string
	for n := s.from(0); n >= 0; n = s.from(n + 1) {
		end := n
		for s.has(end + 1) {
			end++
		}
		if end-n < 2 {
			parts = append(parts, strconv.Itoa(n))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", n, end))
		n = end
	}
	return strings.Join(parts, ",")
}

// star writes a set that has the least number of a field as one that begins with the closest step: */2,4.
func (f cronField) star(s set) string {
	for step := 2; step <= f.most; step++ {
		steps, err := f.parse(fmt.Sprintf("*/%d", step))
		if err == nil && steps&^s == 0 {
			return strings.TrimSuffix(fmt.Sprintf("*/%d,%s", step, f.text(s&^steps)), ",")
		}
	}
	return f.text(s)
}
