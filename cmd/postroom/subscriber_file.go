package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

type subscribersImportCmd struct {
	File string `arg:"" help:"CSV file with headings (email, name, locale, tz, tags, attributes.NAME), JSONL file (.jsonl or .ndjson), or - for standard input."`
	ofAccount
	List        []string `placeholder:"ID" help:"List to add all subscribers to. Repeat the flag for several."`
	State       string   `enum:"subscribed,pending,left" default:"subscribed" help:"Status on these lists: subscribed (the default; needs --consent), pending, or left (also suppresses them)."`
	Consent     string   `placeholder:"TEXT" help:"Consent text."`
	Confirm     bool     `help:"Send each a confirmation email. Needs --state pending."`
	Existing    string   `enum:"merge,skip,replace" default:"merge" help:"Existing subscribers: merge (the default) updates the given fields, replace also clears all others, skip leaves them unchanged."`
	Columns     string   `placeholder:"LIST" help:"Mapping of CSV columns, for example Mail:email,Seats:attributes.seats:number,Member:state. Defaults to the headings."`
	Delimiter   string   `placeholder:"CHAR" help:"CSV delimiter: , ; | or tab. Detected by default."`
	Charset     string   `enum:",utf-8,utf-16le,utf-16be,windows-1252" default:"" placeholder:"NAME" help:"Character set. Detected by default."`
	Tag         string   `placeholder:"TAG" help:"Tag for all subscribers."`
	Resubscribe bool     `help:"Resubscribe people who unsubscribed. Needs --consent."`
	DryRun      bool     `help:"Show the changes without making them."`
	JSONL       bool     `name:"jsonl" help:"Read the file as JSONL."`
	Yes         bool     `short:"y" help:"Don't ask about unknown columns."`
	ID          string   `placeholder:"ID" help:"ID of the import. Import the same file with the same ID to continue an interrupted import. Defaults to a new ID."`
}

func (c *subscribersImportCmd) options() api.SubscriberImportOptions {
	id := c.ID
	id = cmp.Or(id, strings.ToLower(rand.Text()))
	return api.SubscriberImportOptions{ID: id, Account: c.Account, ListID: c.List, State: c.State,
		Consent: c.Consent, Confirm: c.Confirm, Existing: c.Existing, Columns: c.Columns, Delimiter: c.Delimiter,
		Charset: c.Charset, Tag: c.Tag, Resubscribe: c.Resubscribe, DryRun: c.DryRun}
}

// askFrom is how many bytes of a file are looked at for its columns.
const askFrom = 64 << 10

// asked tries the beginning of a file in a dry run, says which of its columns mean nothing, and asks.
func (c *subscribersImportCmd) asked(s *session, head []byte, o api.SubscriberImportOptions) error {
	o.DryRun, o.ID = true, ""
	tried, err := api.ImportSubscribers.Do(s, s.client, bytes.NewReader(head), o)
	if err != nil {
		return err
	}
	_, _ = api.StopSubscriberImport.Do(s, s.client, api.SubscriberAccount{Account: c.Account}, tried.ID)
	if len(tried.Ignored) == 0 {
		return nil
	}
	s.note("columns that mean nothing: %s", clean(strings.Join(tried.Ignored, ", ")))
	if !s.confirm("Import the file without them? name them with --columns.") {
		return errors.New("nothing was imported")
	}
	return nil
}

// Run sends the file as it is read. At a terminal it asks before, if there are columns that mean nothing.
func (c *subscribersImportCmd) Run(s *session) error {
	file, size, err := s.open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	route, o := api.ImportSubscribers, c.options()
	if c.JSONL || strings.HasSuffix(c.File, ".jsonl") || strings.HasSuffix(c.File, ".ndjson") {
		route = api.ImportSubscribersJSONL
	}
	var in io.Reader = file
	if s.inTTY && s.errTTY && !c.Yes && !c.DryRun && c.File != "-" && route == api.ImportSubscribers {
		head, err := io.ReadAll(io.LimitReader(file, askFrom))
		if err == nil {
			err = c.asked(s, head, o)
		}
		if err != nil {
			return err
		}
		in = io.MultiReader(bytes.NewReader(head), file)
	}
	stop := s.applied(size, func(ctx context.Context) (int64, error) {
		so, err := api.GetSubscriberImport.Do(ctx, s.client, api.SubscriberAccount{Account: c.Account}, o.ID)
		return so.Bytes, err
	})
	answer, err := route.Do(s, s.client, in, o)
	stop()
	if err != nil {
		return c.brokenOff(s, o, err)
	}
	return s.done(answer, answer.Bad > 0 || answer.State != "done", func() { s.sayImport(answer) })
}

func (s *session) sayImport(answer api.SubscriberImport) {
	s.say("%s: %d added, %d changed, %d known already, %d repeated, %d left out",
		plural(answer.Lines, "line"), answer.Added, answer.Changed, answer.Known, answer.Repeated, answer.Bad)
	if answer.State != "done" {
		s.note("interrupted: %s; to continue, import the same file with --id %s", clean(answer.Error), answer.ID)
	}
	for _, reason := range slices.Sorted(maps.Keys(answer.Skipped)) {
		s.note("%d not put on a list: %s", answer.Skipped[reason], reason)
	}
	if answer.Unsubscribed > 0 {
		s.note("%d unsubscribed, as a column of the file says", answer.Unsubscribed)
	}
	if answer.Pending > 0 {
		s.note("%d pending, as a column of the file says", answer.Pending)
	}
	if len(answer.Ignored) > 0 {
		s.note("columns that mean nothing: %s", clean(strings.Join(answer.Ignored, ", ")))
	}
	s.badLines(answer.Errors, answer.Bad)
}

func (s *session) badLines(first []api.BadLine, all int) {
	for _, bad := range first {
		s.note("line %d: %s", bad.Line, clean(bad.Reason))
	}
	if more := all - len(first); more > 0 {
		s.note("and %d more", more)
	}
}

// brokenOff adds to an error how far a failed import came.
func (c *subscribersImportCmd) brokenOff(s *session, o api.SubscriberImportOptions, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s), 5*time.Second)
	defer cancel()
	so, unknown := api.GetSubscriberImport.Do(ctx, s.client, api.SubscriberAccount{Account: c.Account}, o.ID)
	if unknown != nil || so.Lines == 0 {
		return err
	}
	return fmt.Errorf("%w\napplied by then: %s; to continue, import the same file with --id %s", err,
		plural(so.Lines, "line"), o.ID)
}

type subscribersExportCmd struct {
	File string `arg:"" optional:"" default:"-" help:"File to write. It must not exist, unless you give --force. Defaults to standard output."`
	filter[api.SubscriberQuery]
	Format string `enum:"csv,jsonl" default:"csv" help:"csv (the default) or jsonl."`
	Force  bool   `help:"Overwrite an existing file."`
}

func (c *subscribersExportCmd) Run(s *session) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	export := func(w io.Writer) error {
		return api.ExportSubscribers.Do(s, s.client, api.SubscriberExportQuery{SubscriberQuery: q,
			Format: c.Format}, w)
	}
	if c.File == "-" {
		return export(s.out)
	}
	size, err := s.export(c.File, c.Force, export)
	out := struct {
		Bytes int64 `json:"bytes"`
	}{size}
	return s.said(out, err, "the subscribers are in %s", c.File)
}
