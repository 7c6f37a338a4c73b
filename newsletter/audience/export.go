package audience

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
)

// Export writes a query's subscribers in the order in which they came, as CSV or as JSONL, in the form that
// an import reads. It writes while it reads, so the file may have any size. Subscribers that come or go while
// it runs may be in it or not.
//
// CSV has a column for each attribute and type, so all subscribers are read twice. It leaves out empty texts,
// and attributes that are added in between. No cell begins like a spreadsheet formula: see [api.CSVCell].
func (s *Subscribers) Export(ctx context.Context, bound string, q api.SubscriberExportQuery,
	w io.Writer) error {
	f, err := s.filterOf(ctx, bound, q.SubscriberQuery)
	if err != nil {
		return err
	}
	e := &exporting{s: s, f: f, out: bufio.NewWriterSize(w, 64<<10)}
	switch q.Format {
	case "", "csv":
		err = e.csv(ctx)
	case "jsonl":
		err = e.jsonl(ctx)
	default:
		return invalid("format", "must be csv or jsonl")
	}
	if err != nil {
		return err
	}
	return e.out.Flush()
}

// exporting is an export that runs.
type exporting struct {
	s   *Subscribers
	f   filter
	out *bufio.Writer
}

// each calls fn for the selected subscribers.
func (e *exporting) each(ctx context.Context, fn func(ordinal uint32, r *record) error) error {
	_, _, err := e.s.walk(ctx, e.f.account, e.f.members, 0, 0, func(ordinal uint32, r *record) (bool, error) {
		if selected, err := e.s.selects(ctx, &e.f, ordinal, r); err != nil || !selected {
			return true, err
		}
		return true, fn(ordinal, r)
	})
	return err
}

// exportBatch is how many subscribers are looked up among the suppressions together.
const exportBatch = 500

// lines calls fn for the selected subscribers, with the suppressions that stop their mail.
func (e *exporting) lines(ctx context.Context,
	fn func(ordinal uint32, r *record, stops []string) error) error {
	var ordinals []uint32
	var records []*record
	flush := func() error {
		stops, err := e.stops(ctx, records)
		for i := 0; i < len(records) && err == nil; i++ {
			err = fn(ordinals[i], records[i], stops[i])
		}
		ordinals, records = ordinals[:0], records[:0]
		return err
	}
	err := e.each(ctx, func(ordinal uint32, r *record) error {
		ordinals, records = append(ordinals, ordinal), append(records, r)
		if len(records) < exportBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return err
}

// stops returns the suppressions of subscribers: of all mail first, then of lists that they are still on, as
// [stopsOf] reads them.
func (e *exporting) stops(ctx context.Context, records []*record) ([][]string, error) {
	stops, of := make([][]string, len(records)), map[uint32][]int{0: nil}
	for i, r := range records {
		of[0] = append(of[0], i)
		for _, sub := range r.lists {
			if sub.state != Left {
				of[sub.list] = append(of[sub.list], i)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(of)) {
		q := suppression.Question{Account: e.f.account, Bulk: true}
		if number != 0 {
			list, err := e.s.Lists.numbered(ctx, number)
			if err != nil {
				return nil, err
			}
			if list == nil {
				continue
			}
			q.List = list.ListID
		}
		for _, i := range of[number] {
			q.Addresses = append(q.Addresses, records[i].email)
		}
		found, err := e.s.Suppressions.Check(ctx, q)
		if err != nil {
			return nil, err
		}
		for n, entry := range found {
			if entry != nil && entry.List == q.List {
				stops[of[number][n]] = append(stops[of[number][n]], stopText(entry))
			}
		}
	}
	return stops, nil
}

func (e *exporting) jsonl(ctx context.Context) error {
	lines := json.NewEncoder(e.out)
	lines.SetEscapeHTML(false)
	return e.lines(ctx, func(ordinal uint32, r *record, stops []string) error {
		states, err := e.states(ctx, r)
		if err != nil {
			return err
		}
		line := api.ExportedSubscriber{ID: idOf(ordinal), Email: r.email, Name: r.name, Locale: r.locale, TZ: r.tz,
			Tags: r.tags, Lists: states, Suppressions: stops, Created: timeOf(r.created)}
		if len(r.attributes) > 0 {
			line.Attributes = json.RawMessage(r.attributes)
		}
		return lines.Encode(line)
	})
}

// states returns the states of a subscriber on lists.
func (e *exporting) states(ctx context.Context, r *record) ([]api.Subscription, error) {
	entries, err := e.s.entries(ctx, e.f.account, r.lists)
	if err != nil {
		return nil, err
	}
	states := make([]api.Subscription, len(entries))
	for i, entry := range entries {
		states[i] = api.Subscription{ListID: entry.ListID, State: entry.State, Since: entry.Since,
			Source: entry.Source}
	}
	return states, nil
}

// exportColumns are an export's columns before the attributes.
var exportColumns = []string{"id", "email", "name", "locale", "tz", "tags", "created", "lists",
	"suppressions"}

func (e *exporting) csv(ctx context.Context) error {
	columns, err := e.columns(ctx)
	if err != nil {
		return err
	}
	file := api.NewCSVWriter(e.out)
	row := slices.Clone(exportColumns)
	for _, c := range columns {
		row = append(row, c.heading())
	}
	if err := file.Write(row); err != nil {
		return err
	}
	err = e.lines(ctx, func(ordinal uint32, r *record, stops []string) error {
		states, err := e.states(ctx, r)
		if err != nil {
			return err
		}
		lists := make([]string, len(states))
		for i, state := range states {
			lists[i] = state.ListID + ":" + state.State
		}
		tags := ""
		if len(r.tags) > 0 {
			tags = listCell(r.tags)
		}
		row = append(row[:0], idOf(ordinal), r.email, r.name, r.locale, r.tz, tags,
			timeOf(r.created).Format(time.RFC3339), strings.Join(lists, "|"),
			strings.Join(stops, "|"))
		attributes, err := attributesOf(r)
		if err != nil {
			return err
		}
		for _, c := range columns {
			row = append(row, c.cell(attributes[c.name]))
		}
		return file.Write(row)
	})
	if err != nil {
		return err
	}
	return file.Flush()
}

// attributeColumn is a column of an export: an attribute where it has this type.
type attributeColumn struct{ name, kind string }

func (c *attributeColumn) heading() string {
	if c.kind == "string" {
		return "attributes." + c.name
	}
	return "attributes." + c.name + ":" + c.kind
}

// cell returns the cell of a value; empty if it has another type.
func (c *attributeColumn) cell(value any) string {
	if kindOf(value) != c.kind {
		return ""
	}
	switch v := value.(type) {
	case bool:
		if v {
			return "true"
		}
		return "false"
	case json.Number:
		return v.String()
	case []any:
		texts := make([]string, len(v))
		for i, text := range v {
			texts[i], _ = text.(string) // checked when it was stored
		}
		return listCell(texts)
	case string:
		return v
	}
	return ""
}

// kindOf returns the type of an attribute as imports name it.
func kindOf(value any) string {
	switch value.(type) {
	case bool:
		return "bool"
	case json.Number:
		return "number"
	case []any:
		return "list"
	case string:
		return "string"
	}
	return ""
}

// attributesOf returns the attributes of a record, with numbers as they are written.
func attributesOf(r *record) (map[string]any, error) {
	if len(r.attributes) == 0 {
		return nil, nil
	}
	var attributes map[string]any
	d := json.NewDecoder(bytes.NewReader(r.attributes))
	d.UseNumber()
	if err := d.Decode(&attributes); err != nil {
		return nil, errRecord
	}
	return attributes, nil
}

// columns returns all selected subscribers' attribute columns.
func (e *exporting) columns(ctx context.Context) ([]attributeColumn, error) {
	all := map[attributeColumn]bool{}
	err := e.each(ctx, func(_ uint32, r *record) error {
		attributes, err := attributesOf(r)
		for name, value := range attributes {
			all[attributeColumn{name, kindOf(value)}] = true
		}
		if err == nil && len(all) > maxColumns-len(exportColumns) {
			err = fault.New(fault.Unprocessable, "TooManyColumns",
				"These subscribers have more than %d attributes, too many for the columns of a CSV file. "+
					"Export them as jsonl",
				maxColumns-len(exportColumns))
		}
		return err
	})
	columns := make([]attributeColumn, 0, len(all))
	for c := range all {
		columns = append(columns, c)
	}
	slices.SortFunc(columns, func(a, b attributeColumn) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind))
	})
	return columns, err
}
