package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/postroom/postroom/bench/rig"
)

// options are the flags.
type options struct {
	only     string
	rounds   int
	messages int
	before   string
	profile  string
}

// row is a row of the table: a scenario that is measured in each round.
type row struct {
	name, what string
	of         string // the bare row that its rate is divided by; empty: none
	bare       func(context.Context, options) (values, error)
	run        func(context.Context, *bed, int) (values, error) // with so many messages, through a Postroom
	settings   map[string]string
}

func rows() []row {
	html, text := campaign("html"), campaign("text")
	return []row{
		{name: "smtp", what: "the SMTP client alone: no queue, no record", bare: rawSMTP},
		{name: "set", what: "SET of 4 KiB in Redis, 50 clients", bare: rawSet},
		{name: "enqueue", what: "asynq alone: enqueue, 50 clients", bare: rawEnqueue},
		{name: "process", what: "asynq alone: process, 50 workers", bare: rawProcess},
		{name: "rest", what: "nothing to do, a second of it", run: atRest},
		{name: "accept", what: "submits over HTTP, 50 clients; nothing is delivered", of: "enqueue", run: accept},
		{name: "drain", what: "what waits goes to the sink", of: "process", run: drain},
		{name: "submit", what: "submits over HTTP to the sink, 50 clients", of: "smtp", run: submit},
		{name: "steady100", what: "100 submits a second to the sink", run: steadily(100)},
		{name: "steady500", what: "500 submits a second to the sink", run: steadily(500)},
		{name: "pickup", what: "one message at a time, from its submit to the sink", run: pickup},
		{name: "list", what: "pages of GET /v1/outbox with 10,000 messages", run: list},
		{name: "slow", what: "submits to a relay that takes 10 ms for each, 10 connections", of: "smtp-slow",
			run: submit, settings: map[string]string{slowRelay: "yes"}},
		{name: "smtp-slow", what: "the SMTP client alone to that relay", bare: rawSlowSMTP},
		{name: "bulk", what: "mail merges of 1,000 to the sink", of: "smtp", run: bulk},
		{name: "campaign-text", what: "a campaign of 4 KiB of text", of: "smtp", run: text,
			settings: map[string]string{"serviceUrl": "https://news.example.com"}},
		{name: "campaign-html", what: "a campaign of 2.2 KB of HTML with two values and a link", of: "smtp",
			run: html, settings: map[string]string{"serviceUrl": "https://news.example.com"}},
		{name: "digest", what: "digests of five events to the sink", run: digests},
	}
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "rows to measure, separated by commas, such as smtp,submit (default all)")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each row is measured, in turns with the others")
	flag.IntVar(&o.messages, "messages", 10_000, "messages of a row")
	flag.StringVar(&o.before, "before", "", "another build of this `program`, measured in turns with this one")
	flag.StringVar(&o.profile, "profile", "", "`directory` for profiles of each row; Postroom runs in this process")
	rig.Main("bench", func(ctx context.Context) error {
		chosen, err := choose(rows(), o.only)
		if err != nil {
			return err
		}
		if o.profile != "" {
			if err := os.MkdirAll(o.profile, 0o750); err != nil {
				return err
			}
			o.rounds, o.before = 1, ""
		}
		return measure(ctx, chosen, o)
	})
}

// choose returns the rows of these names, or all.
func choose(all []row, only string) ([]row, error) {
	if only == "" {
		return all, nil
	}
	var chosen []row
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(r row) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no row %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// measure measures the rows in turns and prints the table.
func measure(ctx context.Context, chosen []row, o options) error {
	subjects := []string{""}
	if o.before != "" {
		subjects = []string{o.before, ""}
	}
	t := newTable(chosen, o.before != "")
	for round := range o.rounds {
		for _, r := range chosen {
			for _, program := range subjects {
				if r.bare != nil && program != "" {
					continue // it has no Postroom
				}
				fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, o.rounds, r.name)
				got, err := once(ctx, r, program, o)
				if err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
				t.add(r.name, program != "", got)
			}
		}
	}
	t.print()
	return nil
}

// once measures a row once.
func once(ctx context.Context, r row, program string, o options) (values, error) {
	if r.bare != nil {
		return r.bare(ctx, o)
	}
	b, err := openBed(ctx, program, o.profile, r)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return r.run(ctx, b, o.messages)
}
