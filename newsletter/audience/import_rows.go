package audience

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/textlines"
	"github.com/postroom/postroom/outbox/suppression"
)

// rows reads the subscribers of a file.
type rows struct {
	lines  *textlines.Reader
	csv    *csvRows // nil for JSONL
	layout *layout
	first  []string // the first row of a CSV file without headings, until it is read
	line1  []byte   // the first line of JSONL that isn't empty, until it is read
	err1   error    // instead of it
}

// openRows reads the beginning of a file. The error names the field file, or the option.
func openRows(r io.Reader, o api.SubscriberImportOptions) (*rows, error) {
	if _, err := mappingOf(o.Columns); err != nil {
		return nil, wrongFile("columns", err)
	}
	lines, err := textlines.New(r, o.Charset)
	if err != nil {
		return nil, wrongFile("file", err)
	}
	if o.JSONL {
		in := &rows{lines: lines}
		for len(in.line1) == 0 && in.err1 == nil {
			in.line1, in.err1 = lines.Next()
			in.line1 = bytes.TrimSpace(in.line1)
		}
		if in.err1 == io.EOF {
			return nil, wrongFile("file", textlines.ErrEmpty)
		}
		return in, nil
	}
	in := &rows{lines: lines, csv: &csvRows{lines: lines, comma: ','}}
	if in.csv.comma, err = commaOf(o.Delimiter, lines); err != nil {
		return nil, wrongFile("delimiter", err)
	}
	for {
		headings, err := in.csv.next()
		switch {
		case err == io.EOF:
			return nil, wrongFile("file", textlines.ErrEmpty)
		case err != nil && !faultOfRow(err):
			return nil, err
		case err != nil:
			return nil, wrongFile("file", fmt.Errorf("its first line %w", err))
		case headings == nil:
			continue
		}
		l, data, err := layoutOf(headings, o.Columns)
		if err != nil {
			return nil, wrongFile("file", err)
		}
		l.left = o.State == Left.String() && len(o.ListID) > 0
		if in.layout = l; data {
			in.first = headings
		}
		return in, nil
	}
}

// commaOf returns the delimiter of a name, of a first line such as sep=; or guesses it.
func commaOf(name string, lines *textlines.Reader) (byte, error) {
	head := lines.Head()
	comma, set := textlines.Separator(head)
	if !set {
		comma = guessComma(head)
	} else if _, err := lines.Next(); err != nil {
		return 0, err
	}
	switch name {
	case "":
		return comma, nil
	case "tab":
		name = "\t"
	case ",", ";", "|", "\t":
	default:
		return 0, errors.New("must be one of , ; | and tab")
	}
	if set && comma != name[0] {
		return 0, fmt.Errorf("differs from the first line of the file, which is sep=%c", comma)
	}
	return name[0], nil
}

func wrongFile(key string, err error) error {
	return fault.InvalidField(key, "%s", err)
}

// delimiter returns the name of the delimiter; empty if it is not CSV.
func (r *rows) delimiter() string {
	switch {
	case r.csv == nil:
		return ""
	case r.csv.comma == '\t':
		return "tab"
	}
	return string(r.csv.comma)
}

// line returns the line where the last row begins, from 1.
func (r *rows) line() int {
	if r.csv != nil {
		return r.csv.line
	}
	return r.lines.Number
}

// entry is a subscriber as a line of a file has it.
type entry struct {
	api.SubscriberRequest
	first, last string // parts of the name
	says        State  // the state in the line; None if it has none
	lists       []api.Subscription
	stops       []suppression.Entry
	created     string
	exported    bool // the line is of an export
}

// next returns a subscriber. fatal: the file ends (io.EOF) or can't be read further. bad: this row is left
// out, and why.
func (r *rows) next() (in entry, bad, fatal error) {
	if cells := r.first; cells != nil {
		r.first = nil
		in, bad = r.layout.request(cells)
		return in, bad, nil
	}
	for {
		var cells []string
		var line []byte
		var err error
		if r.csv != nil {
			cells, err = r.csv.next()
		} else if line, err = r.line1, r.err1; line == nil && err == nil {
			line, err = r.lines.Next()
			line = bytes.TrimSpace(line)
		}
		r.line1, r.err1 = nil, nil
		switch {
		case err != nil && faultOfRow(err):
			return in, err, nil
		case err != nil:
			return in, nil, err
		case len(cells) > 0 && !blank(cells):
			in, bad = r.layout.request(cells)
			return in, bad, nil
		case len(line) > 0:
			in, bad = requestOf(line)
			return in, bad, nil
		}
	}
}

// blank reports whether a row has separators only, as spreadsheets write below their data.
func blank(cells []string) bool {
	return !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" })
}

// jsonRow is a line of a JSONL file: a SubscriberRequest, or an ExportedSubscriber.
type jsonRow struct {
	Email       string         `json:"email"`
	Name        string         `json:"name"`
	Locale      string         `json:"locale"`
	TZ          string         `json:"tz"`
	Tags        []string       `json:"tags"`
	Attributes  map[string]any `json:"attributes"`
	Consent     *api.Consent   `json:"consent"`
	Resubscribe bool           `json:"resubscribe"`
	State       string         `json:"state"`
	Status      string         `json:"status"`

	Lists        []api.Subscription `json:"lists"`
	Suppressions []string           `json:"suppressions"`
	Created      json.RawMessage    `json:"created"`
	ID           json.RawMessage    `json:"id"` // in exports; not imported
}

// requestOf reads a line of a JSONL file.
func requestOf(line []byte) (entry, error) {
	var row jsonRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return entry{}, jsonFault(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return entry{}, errors.New("has more than one JSON object")
	}
	stops, err := stopsOf(row.Suppressions)
	if err = cmp.Or(checkLists(row.Lists), err); err != nil {
		return entry{}, err
	}
	in := entry{SubscriberRequest: api.SubscriberRequest{Email: row.Email, Name: row.Name, Locale: row.Locale,
		TZ: row.TZ, Tags: row.Tags, Attributes: row.Attributes, Consent: row.Consent, Resubscribe: row.Resubscribe},
		lists: row.Lists, stops: stops, created: strings.Trim(string(row.Created), `"`), exported: row.ID != nil}
	if strings.TrimSpace(in.Email) == "" {
		return in, errNoAddress
	}
	var l layout
	var cells []string
	for _, cell := range []string{row.State, row.Status} {
		if cell != "" {
			l.states, cells = append(l.states, len(cells)), append(cells, cell)
			l.columns = append(l.columns, column{heading: "state", target: saysState})
		}
	}
	in.says, err = l.state(cells)
	return in, err
}

// jsonFault returns what is wrong with a line, in this package's terms.
func jsonFault(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%s can't be a %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return errors.New("is no JSON object")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("has the unknown field %s", strings.TrimPrefix(err.Error(), "json: unknown field "))
	}
	return errors.New("isn't valid JSON")
}
