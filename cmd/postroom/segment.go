package main

import (
	"encoding/json"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

func segmentVerbs() []verb {
	return []verb{
		{name: "list", help: "List the segments (the default).", run: list(api.ListSegments,
			"no segments; to add one: postroom segment add --help", segmentsGrid)},
		{name: "show", help: "Show one segment.", run: show(api.GetSegment, segmentFacts)},
		{name: "add", help: "Add a segment.", run: &segmentAddCmd{},
			more: `Examples:
  postroom segment add 'Large customers' --rule '{"attribute":"seats","gte":3}'
  postroom segment add Readers --rule '{"campaign":"spring-news","did":"opened"}'
  postroom segment add Idle --rule '{"and":[{"campaign":"spring-news","did":"got"},{"not":{"campaign":"spring-news","did":"opened"}}]}'`},
		{name: "update", help: "Change a segment.", run: &segmentUpdateCmd{}},
		{name: "count", help: "Count the subscribers of a segment.", run: asks(segmentCount)},
		{name: "explain", help: "Explain why a subscriber is in a segment or not.", run: &segmentExplainCmd{}},
		{name: "delete", help: "Delete a segment. Keeps its subscribers.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteSegment, what: "segment"}},
	}
}

func segmentsGrid(list []api.SegmentInfo, now time.Time) grid {
	g := newGrid("segment", "name", "account", "rule", "changed")
	for _, one := range list {
		g.add(one.Segment.Segment, clip(one.Name, 40), one.Account, clip(one.Sentence, 80),
			moment(one.Updated, now))
	}
	return g
}

func segmentFacts(one api.SegmentInfo, now time.Time) grid {
	g := newGrid("segment", one.Segment.Segment)
	g.add("name", one.Name)
	g.add("account", one.Account)
	g.add("selects", one.Sentence)
	g.add("rule", string(one.Rule))
	for _, warning := range one.Warnings {
		g.add("warning", warning)
	}
	g.add("version", one.Version)
	g.add("created", moment(one.Created, now))
	g.add("changed", moment(one.Updated, now))
	return g
}

type segmentAddCmd struct {
	Name    string `arg:"" help:"Name, for example 'Large customers'."`
	Rule    string `required:"" placeholder:"JSON" help:"Rule: a term, or terms joined by and, or, not."`
	ID      string `placeholder:"ID" help:"ID. Derived from the name by default."`
	Account string `placeholder:"ID" help:"Account of the subscribers. Defaults to the token's account, else default."`
}

func (c *segmentAddCmd) Run(s *session) error {
	made, err := api.CreateSegment.Do(s, s.client, api.Segment{Segment: c.ID, Account: c.Account, Name: c.Name,
		Rule: rule(c.Rule)})
	return s.said(made, err, "segment %s of account %s: %s%s", made.Segment.Segment, clean(made.Account),
		clean(made.Sentence), warned(made))
}

// rule returns the text of a rule as JSON. What is no JSON is handed over as a text, which the server refuses
// with the reason.
func rule(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // of a string
	return quoted
}

// warned returns the warnings of a segment, each on a line.
func warned(one api.SegmentInfo) string {
	text := ""
	for _, warning := range one.Warnings {
		text += "\nwarning: " + clean(warning)
	}
	return text
}

type segmentUpdateCmd struct {
	ID   string  `arg:"" help:"ID of the segment."`
	Name *string `placeholder:"TEXT" help:"Name."`
	Rule string  `placeholder:"JSON" help:"Rule."`
}

func (c *segmentUpdateCmd) Run(s *session) error {
	p := api.SegmentPatch{Name: c.Name}
	if c.Rule != "" {
		p.Rule = rule(c.Rule)
	}
	if p.Name == nil && p.Rule == nil {
		return errNothing
	}
	changed, err := api.UpdateSegment.Do(s, s.client, p, c.ID)
	return s.said(changed, err, "segment %s: %s%s", changed.Segment.Segment, clean(changed.Sentence),
		warned(changed))
}

// segmentCount counts, and prints the number and the sample.
func segmentCount(s *session, c byID) error {
	count, err := api.CountSegment.Do(s, s.client, c.ID)
	bar := s.bar(count.Total, "counting", progressbar.OptionShowCount())
	for err == nil && count.State == "running" {
		if !redisdb.Pause(s, 200*time.Millisecond) {
			return s.Err()
		}
		if count, err = api.GetSegmentCount.Do(s, s.client, c.ID); err == nil {
			_ = bar.Set(count.Done) // only a display
		}
	}
	_ = bar.Finish()
	if err != nil {
		return err
	}
	return s.done(count, count.State != "done", func() {
		if count.State != "done" {
			s.say("%s after %d of %s: %s", count.State, count.Done, plural(count.Total, "subscriber"),
				clean(count.Error))
			return
		}
		s.say("%d of %s", count.Count, plural(count.Done, "subscriber"))
		for _, sub := range count.Sample {
			s.say("  %s %s", sub.ID, clean(sub.Email))
		}
	})
}

// segmentExplainCmd says why a subscriber is in a segment, or not.
type segmentExplainCmd struct {
	ID         string `arg:"" help:"ID of the segment."`
	Subscriber string `arg:"" help:"ID or address of the subscriber."`
}

func (c *segmentExplainCmd) Run(s *session) error {
	why, err := api.ExplainSegment.Do(s, s.client, api.SegmentSubject{Subscriber: c.Subscriber}, c.ID)
	return s.answer(why, err, func() {
		s.say("%s is %sin segment %s", clean(c.Subscriber), noteIf(!why.In, "not "), c.ID)
		for _, t := range why.Terms {
			holds := "no "
			if t.Holds {
				holds = "yes"
			}
			s.say("  %s  %s%s", holds, clean(t.Text), noteIf(t.Value != "", " (has %s)", clean(t.Value)))
		}
	})
}
