package audience

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/textlines"
)

// ImportSample is the beginning of a CSV file.
type ImportSample struct {
	Columns []ImportColumn
	Rows    [][]string // with a cell for each column
	Wrong   string     // why the file can't be imported as it is; empty: it can
}

// ImportColumn is a column of a file.
type ImportColumn struct {
	Heading string
	Target  string // what an import makes of it, as the option columns names it; empty: nothing
	Offered string // the name of an attribute that the column could become
}

// sampleRows is how many rows a sample has.
const sampleRows = 5

// Sample reads the beginning of a CSV file, and stores nothing. It returns Invalid if that can't be read.
func (*Imports) Sample(r io.Reader, o api.SubscriberImportOptions) (ImportSample, error) {
	lines, err := textlines.New(r, o.Charset)
	if err != nil {
		return ImportSample{}, wrongFile("file", err)
	}
	csv := &csvRows{lines: lines}
	if csv.comma, err = commaOf(o.Delimiter, lines); err != nil {
		return ImportSample{}, wrongFile("delimiter", err)
	}
	var rows [][]string
	for len(rows) <= sampleRows {
		cells, err := csv.next()
		if err == io.EOF || err != nil && len(rows) > 0 {
			break // the sample may end within a row
		}
		if err != nil {
			return ImportSample{}, wrongFile("file", fmt.Errorf("its first line %w", err))
		}
		if len(cells) > 0 && !blank(cells) {
			rows = append(rows, slices.Clone(cells))
		}
	}
	if len(rows) == 0 {
		return ImportSample{}, wrongFile("file", textlines.ErrEmpty)
	}
	return sampleOf(rows), nil
}

func sampleOf(rows [][]string) ImportSample {
	var s ImportSample
	l, data, err := layoutOf(rows[0], "")
	if err != nil {
		s.Wrong = err.Error()
	}
	if data { // addresses without headings
		return ImportSample{Columns: []ImportColumn{{Target: "email"}}, Rows: rows[:min(len(rows), sampleRows)]}
	}
	for i, heading := range rows[0] {
		heading = strings.TrimSpace(api.CSVText(heading))
		one := ImportColumn{Heading: heading, Offered: attributeOf(heading)}
		if l != nil {
			one.Target = l.columns[i].option()
		} else if c, ok, err := columnNamed(heading); ok && err == nil {
			one.Target = c.option()
		}
		s.Columns = append(s.Columns, one)
	}
	for _, row := range rows[1:] {
		cells := make([]string, len(s.Columns))
		for i := range cells {
			if i < len(row) {
				cells[i] = message.Clip(api.CSVText(row[i]), 60)
			}
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// option returns a column as the option columns names it; empty: it isn't imported.
func (c column) option() string {
	switch c.target {
	case "-", mayBeEmail:
		return ""
	case "attribute":
		return "attributes." + c.attribute + ":" + c.kind
	}
	return c.target
}

// attributeOf makes the name of an attribute from a heading; empty: it can't be one.
func attributeOf(heading string) string {
	name := strings.Trim(strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return c
		}
		return '_'
	}, strings.TrimPrefix(heading, "attributes.")), "_0123456789")
	if name = message.Clip(name, 64); !attributeNames.MatchString(name) {
		return ""
	}
	return name
}
