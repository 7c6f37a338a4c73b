package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/postroom/postroom/api"
)

const maxPage = 1000

// session is the context of a command that uses the API of a running Postroom.
type session struct {
	context.Context
	*console
	client *api.Client
	json   bool // the answer is printed as JSON

	listing string // the command that lists what this one is about, as the end of an error; may be empty
}

// answer prints the result of a request: as JSON, or by say.
func (s *session) answer(answer any, err error, say func()) error {
	switch {
	case err != nil:
		return err
	case s.json:
		return s.printJSON(answer)
	}
	say()
	return nil
}

// table is answer with rows, or none if there are none, and a note below them, if it is not empty.
func (s *session) table(answer any, err error, none string, g grid, note string) error {
	return s.answer(answer, err, func() {
		if len(g.rows) == 0 {
			s.say("%s", none)
			return
		}
		s.show(g)
		if note != "" {
			s.note("%s", note)
		}
	})
}

// some is table with the first rows of a list, which JSON has under a key, and whether there are more.
func (s *session) some(key string, rows any, more bool, err error, none string, g grid) error {
	return s.table(map[string]any{key: rows, "more": more}, err, none, g,
		noteIf(more, "there are more rows; for all, use --limit 0"))
}

// noteIf returns a text if it holds.
func noteIf(holds bool, format string, args ...any) string {
	if !holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// said is answer in one line.
func (s *session) said(answer any, err error, format string, args ...any) error {
	return s.answer(answer, err, func() { s.say(format, args...) })
}

// done is answer for a command that fails if failed.
func (s *session) done(answer any, failed bool, say func()) error {
	if err := s.answer(answer, nil, say); err != nil || !failed {
		return err
	}
	return errReported
}

// asks is the command that a function runs. F are its arguments and flags.
func asks[F any](run func(*session, F) error) *doCmd[F] { return &doCmd[F]{run: run} }

type doCmd[F any] struct {
	Flags F `embed:""`

	run func(*session, F) error
}

func (d *doCmd[F]) Run(s *session) error { return d.run(s, d.Flags) }

// byID names one thing.
type byID struct {
	ID string `arg:"" help:"ID, as the list shows it."`
}

// listCmd prints all rows of a list that its flags select.
type listCmd[Q, Row any, Out api.Paged[Row]] struct {
	filter[Q]

	route api.Call[Q, Out]
	none  string // is printed without rows
	grid  func([]Row, time.Time) grid
}

func (l *listCmd[Q, Row, Out]) Run(s *session) error {
	q, err := l.query()
	if err != nil {
		return err
	}
	reflect.ValueOf(&q).Elem().FieldByName("PageSize").SetInt(maxPage)
	rows, err := all(s, l.route, q)
	return s.table(rows, err, l.none, l.grid(rows, time.Now()), "")
}

// list is a listCmd of a route, with the flags of its query.
func list[Q, Row any, Out api.Paged[Row]](
	route api.Call[Q, Out], none string, grid func([]Row, time.Time) grid,
) *listCmd[Q, Row, Out] {
	return &listCmd[Q, Row, Out]{filter: filterOf[Q](), route: route, none: none, grid: grid}
}

// firstCmd prints the first rows of a list that its flags select.
type firstCmd[Q, Row any, Out api.Paged[Row]] struct {
	filter[Q]
	limitFlag

	route api.Call[Q, Out]
	key   string // of the rows in JSON
	grid  func([]Row, time.Time) grid
}

func (f *firstCmd[Q, Row, Out]) Run(s *session) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	reflect.ValueOf(&q).Elem().FieldByName("PageSize").SetInt(int64(f.pageSize(maxPage)))
	rows, more, _, err := fetch(s, f.route, q, f.limitFlag, nil)
	return s.some(f.key, rows, more, err, "no "+f.key, f.grid(rows, time.Now()))
}

// first is a firstCmd of a route, with the flags of its query.
func first[Q, Row any, Out api.Paged[Row]](
	route api.Call[Q, Out], key string, grid func([]Row, time.Time) grid,
) *firstCmd[Q, Row, Out] {
	return &firstCmd[Q, Row, Out]{filter: filterOf[Q](), route: route, key: key, grid: grid}
}

func all[In, Row any, Out api.Paged[Row]](s *session, route api.Call[In, Out], in In) ([]Row, error) {
	rows := []Row{}
	for row, err := range api.All(s, s.client, route, in) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// limitFlag bounds a list.
type limitFlag struct {
	Limit int `short:"n" default:"20" help:"Maximum rows, or 0 for all."`
}

func (l limitFlag) pageSize(most int) int {
	if l.Limit == 0 {
		return most
	}
	return min(most, l.Limit)
}

// fetch returns up to Limit rows that are wanted, whether there are more, and the last page. A nil want wants
// all. The ids replace the braces of the path.
func fetch[In, Row any, Out api.Paged[Row]](
	s *session, route api.Call[In, Out], in In, l limitFlag, want func(Row) bool, ids ...any,
) (rows []Row, more bool, last Out, err error) {
	if l.Limit < 0 {
		return nil, false, last, usage("--limit: %d is not a number of rows; 0 means all", l.Limit)
	}
	rows = []Row{}
	for last, err = range api.Pages(s, s.client, route, in, ids...) {
		if err != nil {
			return nil, false, last, err
		}
		found, cursor := api.Rows(last)
		for _, row := range found {
			if want != nil && !want(row) {
				continue
			}
			if l.Limit > 0 && len(rows) == l.Limit {
				return rows, true, last, nil
			}
			rows = append(rows, row)
		}
		if more = cursor != ""; want == nil && l.Limit > 0 && len(rows) == l.Limit {
			return rows, more, last, nil
		}
	}
	return rows, false, last, nil
}

// show is the command that shows one thing.
func show[Out any](route api.Fetch[Out], grid func(Out, time.Time) grid) *doCmd[byID] {
	return asks(func(s *session, of byID) error {
		answer, err := route.Do(s, s.client, of.ID)
		return s.answer(answer, err, func() { s.show(grid(answer, time.Now())) })
	})
}

// deleteCmd deletes one thing, named by its id. It fails if there is no such thing.
type deleteCmd[Out any] struct {
	byID
	Yes bool `short:"y" help:"Don't ask for confirmation."`

	route       api.Fetch[Out]
	what        string // the kind of thing
	consequence string // the continuation of "delete the account"; empty: no confirmation
	said        func(Out) string
}

func (d *deleteCmd[Out]) Run(s *session) error {
	do := func() (Out, error) { return d.route.Do(s, s.client, d.ID) }
	return deleting(s, d.Yes || d.consequence == "", d.what, d.ID, d.consequence, do, d.said)
}

// deleting asks unless it is sure, and deletes a thing. It fails if there is no such thing. A nil said says
// the usual.
func deleting[Out any](s *session, sure bool, what, id, consequence string, do func() (Out, error),
	said func(Out) string) error {
	if !sure && !s.confirm("Delete the %s %s%s?", what, clean(id), consequence) {
		return fmt.Errorf("nothing was deleted. Add --yes to delete the %s%s", what, consequence)
	}
	answer, err := do()
	if err != nil {
		return err
	}
	gone := api.Deleted{Deleted: true}
	if a, ok := any(answer).(api.Deleted); ok {
		gone = a
	}
	return s.done(answer, !gone.Deleted, func() {
		switch {
		case !gone.Deleted:
			s.note("there is no %s %s%s", what, clean(id), s.listing)
		case said != nil:
			s.say("%s", said(answer))
		default:
			s.say("%s %s deleted", what, clean(id))
		}
	})
}
