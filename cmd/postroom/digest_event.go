package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

type digestEventCmd struct {
	Recipient string `arg:"" optional:"" help:"Your ID for the reader. Not with --file."`
	ofDigests
	Category   string `placeholder:"TEXT" help:"Category of the event, for example comment. Required without --file."`
	EntityType string `placeholder:"TEXT" help:"Type of the event's object, for example post. Required without --file."`
	EntityID   string `placeholder:"ID" help:"ID of the event's object. Required without --file."`
	Title      string `placeholder:"TEXT" help:"Title of the event's object."`
	Link       string `placeholder:"URL" help:"URL of the event's object."`
	Actor      string `placeholder:"NAME" help:"Name of the person who caused the event."`
	ActorID    string `placeholder:"ID" help:"Your ID for the person who caused the event."`
	Payload    string `placeholder:"JSON" help:"Object for templates. @FILE reads it from a file."`
	Priority   string `enum:",low,normal,high,urgent" default:"" placeholder:"PRIORITY" help:"low, normal (the default), high, or urgent, which Postroom sends immediately."`
	Occurred   string `placeholder:"WHEN" help:"Time of the event, or its age (2h). Defaults to now."`
	Key        string `placeholder:"KEY" help:"Idempotency key. Postroom ignores repeated keys of a reader."`
	Email      string `placeholder:"ADDRESS" help:"Reader's address. Ignored if Postroom already has one."`
	Name       string `placeholder:"TEXT" help:"Reader's name. Ignored if Postroom already has one."`
	Locale     string `placeholder:"TAG" help:"Language, for example de-AT. Ignored if Postroom already has one."`
	TZ         string `name:"tz" placeholder:"ZONE" help:"Time zone, for example Europe/Zurich. Ignored if Postroom already has one."`
	File       string `placeholder:"FILE" help:"File with events, one JSON object per line as in the API, or - for standard input."`
	Skip       int    `placeholder:"N" help:"Skip the first lines of --file, for example after an interruption."`
}

// Run hands in the event of the flags, or those of a file.
func (c *digestEventCmd) Run(s *session) error {
	e, err := c.event(s.console)
	if err != nil {
		return err
	}
	if c.File != "" {
		return c.many(s, e)
	}
	if c.Recipient == "" {
		return usage("whose event? Name the reader, or a file of events with --file")
	}
	if c.Skip != 0 {
		return usage("--skip needs --file")
	}
	req := api.DigestEventsRequest{Account: c.Account, DigestEvent: e}
	answer, err := api.TakeDigestEvents.Do(s, s.client, req)
	return s.answer(answer, err, func() {
		if answer.DigestEventResult == nil {
			return
		}
		due := ""
		if answer.Due != nil {
			due = ", due " + moment(*answer.Due, time.Now())
		}
		s.say("event %s: %s%s%s%s", answer.ID, answer.State, due, colon(answer.Reason),
			noteIf(answer.Idempotency != nil && answer.Idempotency.Status == "HIT", " (known by its key already)"))
	})
}

// event returns the event that the flags describe.
func (c *digestEventCmd) event(con *console) (api.DigestEvent, error) {
	e := api.DigestEvent{Recipient: c.Recipient, Email: c.Email, Name: c.Name, Locale: c.Locale, TZ: c.TZ,
		Category: c.Category, EntityType: c.EntityType, EntityID: c.EntityID, Title: c.Title, URL: c.Link,
		Priority: c.Priority, IdempotencyKey: c.Key}
	if c.Actor != "" || c.ActorID != "" {
		e.Actor = &api.DigestActor{ID: c.ActorID, Name: c.Actor}
	}
	var err error
	if c.Payload != "" {
		if e.Payload, err = con.readJSON("--payload", c.Payload); err != nil {
			return e, err
		}
	}
	e.OccurredAt, err = optionalTime("--occurred", c.Occurred, parseSince)
	return e, err
}

const (
	eventsBatch = 1000      // the most that the API takes at a time
	bytesBatch  = 7_000_000 // of them as JSON; the API takes bodies of 8 MiB
	lineBytes   = 100_000   // more than an event can have
	wrongShown  = 20        // lines that are named
)

// eventsTaken is what became of a file of events.
type eventsTaken struct {
	Lines     int           `json:"lines"`
	Waiting   int           `json:"waiting"`
	Immediate int           `json:"immediate"`
	Dropped   int           `json:"dropped"`
	Refused   int           `json:"refused"`
	Errors    []api.BadLine `json:"errors,omitempty"` // of the first lines that were refused
}

func (t *eventsTaken) refuse(line int, reason string) {
	if t.Refused++; len(t.Errors) < wrongShown {
		t.Errors = append(t.Errors, api.BadLine{Line: line, Reason: reason})
	}
}

// add counts the answer to the event of a line.
func (t *eventsTaken) add(line int, r api.DigestEventResult) {
	switch {
	case !r.Success:
		reason := r.Error
		reason = cmp.Or(reason, r.Code)
		t.refuse(line, reason)
	case r.State == "immediate":
		t.Immediate++
	case r.State == "dropped":
		t.Dropped++
	default:
		t.Waiting++
	}
}

// many hands in the events of a file. It fails if one was refused.
func (c *digestEventCmd) many(s *session, flags api.DigestEvent) error {
	if !emptyEvent(flags) {
		return usage("--file contains complete events, so you can only combine it with --account and --skip")
	}
	if c.Skip < 0 {
		return usage("--skip: %d is not a number of lines", c.Skip)
	}
	file, size, err := s.open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was read
	bar := s.bar(int(size), "sending", progressbar.OptionShowBytes(true))
	b := eventBatch{account: c.Account}
	err = b.send(s, new(progressbar.NewReader(file, bar)), c.Skip)
	_ = bar.Clear()
	if err != nil {
		return fmt.Errorf("%w\nthe first %d lines were submitted, and perhaps some later lines; "+
			"to continue, submit the same file with --skip %d. Events with a key aren't added twice", err, b.done, b.done)
	}
	t := b.taken
	return s.done(t, t.Refused > 0, func() {
		s.say("%s: %d waiting, %d immediate, %d dropped, %d refused", plural(t.Lines, "event"), t.Waiting, t.Immediate,
			t.Dropped, t.Refused)
		s.badLines(t.Errors, t.Refused)
	})
}

// emptyEvent reports whether an event says nothing.
func emptyEvent(e api.DigestEvent) bool {
	text, err := json.Marshal(e)
	return err == nil && string(text) == "{}"
}

type eventBatch struct {
	account string
	events  []api.DigestEvent
	lines   []int // of the events
	bytes   int
	done    int // lines that were handed in, or refused
	taken   eventsTaken
}

// send hands in the events of all lines behind the first ones to skip.
func (b *eventBatch) send(s *session, from io.Reader, skip int) error {
	in := bufio.NewScanner(from)
	in.Buffer(nil, lineBytes)
	n := 0
	for in.Scan() {
		if n++; n <= skip {
			b.done = n
			continue
		}
		if err := b.read(s, n, in.Bytes()); err != nil {
			return err
		}
	}
	if err := b.flush(s, n); err != nil {
		return err
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes", n+1, lineBytes)
	}
	return in.Err()
}

// read adds the event of a line, and hands in those before it if there is no room for it. Empty lines are
// no events.
func (b *eventBatch) read(s *session, n int, line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	b.taken.Lines++
	var e api.DigestEvent
	err := strictJSON(line, &e)
	if err != nil {
		b.taken.refuse(n, err.Error())
		return nil
	}
	text, err := json.Marshal(e) // as it will be sent
	if err != nil {
		return err
	}
	if len(b.events) == eventsBatch || b.bytes+len(text) > bytesBatch {
		if err := b.flush(s, n-1); err != nil {
			return err
		}
	}
	b.events, b.lines, b.bytes = append(b.events, e), append(b.lines, n), b.bytes+len(text)
	return nil
}

// flush hands in what was collected, of the lines up to n.
func (b *eventBatch) flush(s *session, n int) error {
	if len(b.events) > 0 {
		answer, err := api.TakeDigestEvents.Do(s, s.client, api.DigestEventsRequest{Account: b.account,
			Events: b.events})
		if err != nil {
			return err
		}
		for i, r := range answer.Events {
			b.taken.add(b.lines[i], r)
		}
	}
	b.events, b.lines, b.bytes, b.done = b.events[:0], b.lines[:0], 0, n
	return nil
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
