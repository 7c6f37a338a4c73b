package suppression

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// columns are the columns of a file, in the order of one without headings. The further names are synonyms of
// the first.
var columns = [...][]string{
	{"address", "email", "e-mail", "email address", "recipient"}, {"domain"}, {"reason", "type"}, {"account"},
	{"list", "listid", "list_id"},
	{"expires", "expires_at"}, {"source"}, {"created", "created_at", "createdat"},
	{"queueid", "messageid", "message_id"}, {"response", "error", "note"},
}

// Indexes into columns.
const (
	columnAddress = iota
	columnDomain
	columnReason
	columnAccount
	columnList
	columnExpires
	columnSource
	columnCreated
	columnMessageID
	columnResponse
	columnCount
)

// exportHeadings is the first line of an export, which an import reads.
var exportHeadings = [columnCount]string{"address", "domain", "reason", "account", "list", "expires",
	"source", "created", "queueId", "response"}

var (
	errQuotes    = errors.New("has a quote that does not end; a line break can't be quoted")
	errNoColumn  = errors.New("has no column named address, email or domain")
	errBadTime   = errors.New("expires and created must be times such as 2030-12-31 or 2030-12-31T08:00:00Z")
	errNoAddress = errors.New("has neither an address nor a domain")
)

// layout is the format of a file's lines.
type layout struct {
	comma  byte
	places [columnCount]int // index of each column in a line; -1: absent
	cells  []string
}

// layoutOf derives the layout from the first line: its separator, unless it is known, and whether its cells
// are headings.
func layoutOf(first string, separator byte) (l *layout, headings bool, err error) {
	l = &layout{comma: cmp.Or(separator, ',')}
	if separator == 0 && !strings.Contains(first, ",") {
		for _, c := range []byte{';', '\t'} {
			if strings.IndexByte(first, c) >= 0 {
				l.comma = c
				break
			}
		}
	}
	for i := range l.places {
		l.places[i] = i
	}
	if strings.Contains(first, "@") {
		return l, false, nil
	}
	cells, err := l.split(first)
	if err != nil {
		return l, false, err
	}
	if l.named(cells) {
		return l, true, nil
	}
	if strings.Contains(first, ".") { // a domain, alone or in its column
		return l, false, nil
	}
	return l, false, errNoColumn
}

// named reports whether cells are headings: one of them names an address or a domain.
func (l *layout) named(cells []string) bool {
	places := [columnCount]int{}
	for column, names := range columns {
		places[column] = -1
		for at, cell := range cells {
			cell = strings.ToLower(strings.TrimSpace(cell))
			for _, name := range names {
				if cell == name && places[column] < 0 {
					places[column] = at
				}
			}
		}
	}
	if places[columnAddress] < 0 && places[columnDomain] < 0 {
		return false
	}
	l.places = places
	return true
}

// split splits a line into cells (RFC 4180, but without line breaks in quotes). The cells are valid until the
// next call.
func (l *layout) split(line string) ([]string, error) {
	l.cells = l.cells[:0]
	for {
		if !strings.HasPrefix(line, `"`) {
			end := strings.IndexByte(line, l.comma)
			if end < 0 {
				l.cells = append(l.cells, line)
				return l.cells, nil
			}
			l.cells = append(l.cells, line[:end])
			line = line[end+1:]
			continue
		}
		cell, rest, err := unquote(line)
		if err != nil {
			return nil, err
		}
		end := strings.IndexByte(rest, l.comma)
		if end < 0 {
			l.cells = append(l.cells, cell+rest)
			return l.cells, nil
		}
		l.cells = append(l.cells, cell+rest[:end])
		line = rest[end+1:]
	}
}

// unquote reads a cell that begins with a quote. Two quotes in it stand for one.
func unquote(line string) (cell, rest string, err error) {
	var b strings.Builder
	for line = line[1:]; ; {
		end := strings.IndexByte(line, '"')
		if end < 0 {
			return "", "", errQuotes
		}
		b.WriteString(line[:end])
		line = line[end+1:]
		if !strings.HasPrefix(line, `"`) {
			return b.String(), line, nil
		}
		b.WriteByte('"')
		line = line[1:]
	}
}

// entry returns the entry of a line. Fields that the line omits are taken from given.
func (l *layout) entry(line string, given Entry) (Entry, error) {
	cells, err := l.split(line)
	if err != nil {
		return given, err
	}
	cell := func(column int) string {
		if at := l.places[column]; at >= 0 && at < len(cells) {
			return strings.TrimSpace(api.CSVText(cells[at]))
		}
		return ""
	}
	e := given
	e.Address, e.Domain = cell(columnAddress), cell(columnDomain)
	switch {
	case e.Address == "" && e.Domain == "":
		return e, errNoAddress
	case e.Domain == "" && isDomain(e.Address): // in the column of addresses
		e.Address, e.Domain = "", e.Address
	case e.Address != "" && e.Domain != "" &&
		domainOf(strings.ToLower(e.Address)) == "@"+strings.ToLower(e.Domain):
		e.Domain = "" // files of some providers have both
	}
	if reason := cell(columnReason); reason != "" {
		e.Reason = reasonNamed(reason)
	}
	if account, list := cell(columnAccount), cell(columnList); account != "" || list != "" {
		e.Account, e.List = cmp.Or(account, given.Account), list
	}
	if source := cell(columnSource); source != "" {
		e.Source = source
	}
	e.MessageID, e.Response = cell(columnMessageID), cell(columnResponse)
	var errs [2]error
	e.Expires, errs[0] = parseTime(cell(columnExpires))
	e.Created, errs[1] = parseTime(cell(columnCreated))
	return e, errors.Join(errs[:]...)
}

// isDomain reports whether a cell is a domain: it begins with an @, or has a dot and no @.
func isDomain(cell string) bool {
	at := strings.LastIndexByte(cell, '@')
	return at == 0 || at < 0 && strings.Contains(cell, ".")
}

// reasonNamed returns the reason for a word in the export files of providers.
func reasonNamed(word string) Reason {
	word = strings.ReplaceAll(strings.ToLower(word), " ", "_")
	switch word {
	case "bounce", "bounced", "hardbounce", "hard-bounce", "permanent", "invalid", "invalid_email":
		return HardBounce
	case "complaint", "complained", "spam", "spamcomplaint", "spam_complaint", "spamreport":
		return SpamReport
	case "unsubscribed", "unsub", "group_unsubscribe":
		return Unsubscribe
	case "block", "blocked", "manualsuppression", "manual_suppression":
		return Manual
	}
	return Reason(word)
}

// timeForms are the formats of times in files. A time without a zone is in UTC.
var timeForms = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05", "2006-01-02 15:04:05 MST", time.DateOnly}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errBadTime
}

// Export writes all entries of a query as CSV with headings, in the form that [Store.Import] reads. It writes
// while it reads, so the file may have any size. Entries that are added or removed while it runs may be in it
// or not. Expired ones are omitted. No cell begins like a spreadsheet formula: see [api.CSVCell].
func (s *Store) Export(ctx context.Context, bound string, q api.SuppressionQuery, w io.Writer) error {
	f, err := filterOf(bound, q)
	if err != nil {
		return err
	}
	if f, err = f.normal(); err != nil {
		return err
	}
	file := api.NewCSVWriter(w)
	if err := file.Write(exportHeadings[:]); err != nil {
		return err
	}
	now := s.now()
	err = s.Walk(ctx, f, func(e Entry) error {
		if !e.Expires.IsZero() && !e.Expires.After(now) {
			return nil
		}
		expires := ""
		if !e.Expires.IsZero() {
			expires = e.Expires.Format(time.RFC3339)
		}
		return file.Write([]string{
			e.Address, e.Domain, string(e.Reason), e.Account, e.List, expires, e.Source,
			e.Created.Format(time.RFC3339), e.MessageID, e.Response,
		})
	})
	if err != nil {
		return err
	}
	return file.Flush()
}
