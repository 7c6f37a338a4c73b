package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/bench/rig"
)

// digestSettings let digests be sent within seconds, and all lines of an email be shown. If several events
// wait, most are folded. A run whose template fails has failed.
var digestSettings = map[string]string{
	"digest.gap": "1s", "digest.grace": "2s", "digest.stagger": "3s", "digest.cap": "1000",
	"digest.capCategory": "1000", "digest.keep": "20", "digest.attempts": "1",
}

// alarmTemplate is the template of alarms. It comes and goes.
var alarmTemplate = api.TemplateRequest{ID: alarms, Name: alarms, TemplateDefinition: api.TemplateDefinition{
	Content: api.TemplateContent{Subject: "Alarms",
		Text: "{{#each params.digest.groups}}{{title}}\n{{/each}}"}}}

// acquaint stores the kinds of digests.
func (h *testbed) acquaint(ctx context.Context) error {
	if h.o.digests == 0 {
		return nil
	}
	client, now := h.apis[0].client, time.Now()
	if _, err := api.CreateTemplate.Do(ctx, client, alarmTemplate); err != nil {
		return err
	}
	kinds := []api.DigestKind{
		{Category: comments, Preference: &api.DigestPreference{Mode: "immediate"}},
		{Category: unwanted, Preference: &api.DigestPreference{Mode: "off"}},
		{Category: alarms, Preference: &api.DigestPreference{Mode: "immediate", Gap: "2s"}, Template: alarms,
			Lane: api.Transactional},
		{Category: quarters, Preference: &api.DigestPreference{Mode: "custom", Cron: "*/15 * * * *"}},
	}
	for n := range mostHour {
		at := now.Add(time.Minute + time.Duration(n)*h.o.length/mostHour).Minute()
		kinds = append(kinds, api.DigestKind{Category: hourlyCategory(n),
			Preference: &api.DigestPreference{Mode: "hourly", Minute: &at}})
	}
	for _, k := range kinds {
		if _, err := api.CreateDigestKind.Do(ctx, client, k); err != nil {
			return fmt.Errorf("store the kind %s: %w", k.Category, err)
		}
	}
	return nil
}

// notify submits digest events, evenly over the storm, and lets readers change their mind. all reports when
// everybody is answered.
func (c *clients) notify(ctx, weather context.Context) {
	if c.h.o.digests == 0 {
		return
	}
	c.all.Go(func() { c.handIn(ctx, weather) })
	c.all.Go(func() { c.prefer(ctx, weather) })
	c.all.Go(func() { c.redecorate(ctx, weather) })
}

// handIn submits events, up to mostAtOnce of them in a request.
func (c *clients) handIn(ctx, weather context.Context) {
	const mostAtOnce = 6
	r, o, began := random(c.seed, "notices"), c.h.o, time.Now()
	for n := 0; n < o.digests; {
		if rig.Wait(weather, time.Duration(n)*o.length/time.Duration(o.digests)-time.Since(began)) != nil {
			return
		}
		select {
		case c.busy <- struct{}{}:
		case <-weather.Done():
			return
		}
		first, many := n, min(1+r.IntN(mostAtOnce), o.digests-n)
		c.all.Go(func() {
			c.post(ctx, first, many)
			<-c.busy
		})
		n += many
	}
}

// post submits some events until they are answered, and withdraws a few of them.
func (c *clients) post(ctx context.Context, first, many int) {
	r := random(c.seed, "post "+strconv.Itoa(first))
	var req api.DigestEventsRequest
	for n := first; n < first+many; n++ {
		e := planNotice(c.seed, n, c.h.o.readers)
		c.ledger.handsIn(n, e)
		req.Events = append(req.Events, e)
	}
	if many == 1 {
		req.DigestEvent, req.Events = req.Events[0], nil
	}
	var answer api.DigestEventsAnswer
	if !c.insist(ctx, r, "digest events taken in", func(door *api.Client) (err error) {
		answer, err = api.TakeDigestEvents.Do(ctx, door, req)
		return err
	}) {
		return
	}
	results := answer.Events
	if many == 1 {
		results = []api.DigestEventResult{*answer.DigestEventResult}
	}
	for i, result := range results {
		c.ledger.answeredNotice(first+i, "API", result)
		if later := time.Duration(r.IntN(3000)) * time.Millisecond; r.IntN(20) == 0 && result.Success {
			c.all.Go(func() {
				if rig.Wait(ctx, later) == nil {
					c.takeBack(ctx, first+i)
				}
			})
		}
	}
}

// takeBack takes an event back. If an answer was lost, it is not known whether it was.
func (c *clients) takeBack(ctx context.Context, number int) {
	r, tries, deleted := random(c.seed, "take back "+strconv.Itoa(number)), 0, 0
	who := planNotice(c.seed, number, c.h.o.readers).Recipient
	done := c.insist(ctx, r, "digest event taken back", func(door *api.Client) error {
		tries++
		answer, err := api.DeleteDigestEvents.Do(ctx, door, api.DigestEventRemoval{Recipients: []string{who},
			Key: noticeKey(number)})
		deleted = answer.Deleted
		return err
	})
	c.ledger.ofNotice(number, func(n *notice) string {
		n.takenBack = done && deleted > 0
		n.perhapsBack = !n.takenBack && (tries > 1 || !done)
		return fmt.Sprintf("client: takes it back: %d, after %d requests", deleted, tries)
	})
}

// prefer lets readers change their preferences, suppresses a few, sends to some immediately, and retries
// failed runs.
func (c *clients) prefer(ctx, weather context.Context) {
	r, o := random(c.seed, "preferences"), c.h.o
	for step := 0; rig.Wait(weather, 150*time.Millisecond) == nil; step++ {
		who := r.IntN(o.readers)
		mind := random(c.seed, "mind "+strconv.Itoa(step))
		switch dice := r.IntN(100); {
		case dice < 2 && step > o.readers/10:
			c.insist(weather, mind, "reader suppressed", func(door *api.Client) error {
				_, err := api.AddSuppressions.Do(ctx, door, api.SuppressionRequest{
					NewSuppression: api.NewSuppression{Email: readerAddress(who)}})
				return err
			})
		case dice < 20:
			c.insist(weather, mind, "digest sent now", func(door *api.Client) error {
				_, err := api.SendDigest.Do(ctx, door, api.DigestAccount{}, reader(who))
				return err
			})
		case dice < 30:
			c.retryRun(weather, mind)
		default:
			category := []string{comments, hourlyCategory(r.IntN(mostHour))}[r.IntN(2)]
			wanted := map[string]*api.DigestPreference{category: planPreference(r, time.Now())}
			c.insist(weather, mind, "preference changed", func(door *api.Client) error {
				_, err := api.PatchDigestRecipient.Do(ctx, door, api.DigestRecipientRequest{Preferences: wanted},
					reader(who))
				return err
			})
		}
	}
}

// retryRun retries a run that failed, as an impatient operator does.
func (c *clients) retryRun(ctx context.Context, r *rand.Rand) {
	page, err := api.ListDigestRuns.Do(ctx, c.some(r).client, api.DigestRunQuery{State: api.DigestFailed,
		CursorQuery: api.CursorQuery{PageSize: 5}})
	if err != nil || len(page.Runs) == 0 {
		return
	}
	_, err = api.RetryDigestRun.Do(ctx, c.some(r).client, page.Runs[0].Run)
	if err != nil {
		c.ledger.count("failed digest retried: " + kindOf(err))
		return
	}
	c.ledger.count("failed digest retried")
}

// redecorate deletes the template of alarms now and then, so that runs fail, and stores it again.
func (c *clients) redecorate(ctx, weather context.Context) {
	r := random(c.seed, "template")
	for rig.Wait(weather, time.Duration(4+r.IntN(6))*time.Second) == nil {
		c.insist(ctx, r, "template of digests deleted", func(door *api.Client) error {
			_, err := api.DeleteTemplate.Do(ctx, door, alarms)
			return err
		})
		_ = rig.Wait(weather, time.Duration(2+r.IntN(4))*time.Second)
		c.insist(ctx, r, "template of digests stored", func(door *api.Client) error {
			_, err := api.CreateTemplate.Do(ctx, door, alarmTemplate)
			return err
		})
	}
}

// openRuns are the states of runs that have not ended.
var openRuns = []string{api.DigestPending, api.DigestProcessing, api.DigestSubmitted}

// told reports whether no event of digests waits any more, and then reads all runs. What waits for a schedule
// is mailed now.
func (r *round) told(ctx context.Context) bool {
	o, client := r.h.o, r.h.apis[0].client
	if o.digests == 0 {
		return true
	}
	for _, state := range openRuns {
		page, err := api.ListDigestRuns.Do(ctx, client, api.DigestRunQuery{State: state,
			CursorQuery: api.CursorQuery{PageSize: 1}})
		if err != nil || len(page.Runs) > 0 {
			return false
		}
	}
	quiet := true
	for n := range o.readers {
		one, err := api.GetDigestRecipient.Do(ctx, client, api.DigestAccount{}, reader(n))
		if kindOf(err) == "404" {
			continue // nobody had anything to tell
		}
		if err == nil && len(one.Waiting) > 0 {
			_, err = api.SendDigest.Do(ctx, client, api.DigestAccount{}, reader(n))
			quiet = false
		}
		if err != nil {
			return false
		}
	}
	if !quiet {
		return false
	}
	runs, err := allRuns(ctx, client)
	if err != nil || r.h.redis.catchUp(ctx) != nil {
		return false
	}
	return r.h.ledger.ends(runs)
}

// ends notes the runs, and reports whether all have ended and an event reports each.
func (l *ledger) ends(runs []api.DigestRun) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.digests.runs = runs
	f := digestFacts{queued: map[string]*fact{}, mails: map[string][]*fact{},
		words: map[string]map[event.Type]bool{}, told: map[string]int{}}
	for _, one := range l.order {
		f.add(one)
	}
	return !slices.ContainsFunc(runs, func(run api.DigestRun) bool {
		said := wordOf(run)
		return said == "" || !f.words[run.Run][said]
	})
}

// wordOf returns the event that reports a run's end, or "" if it has not ended.
func wordOf(run api.DigestRun) event.Type {
	return map[string]event.Type{api.DigestSent: event.DigestSent, api.DigestSkipped: event.DigestSkipped,
		api.DigestFailed: event.DigestFailed}[run.State]
}

func allRuns(ctx context.Context, client *api.Client) (all []api.DigestRun, _ error) {
	seen := map[string]bool{} // the cursor is a time, at which there may be several
	for q := (api.DigestRunQuery{CursorQuery: api.CursorQuery{PageSize: 1000}}); ; {
		page, err := api.ListDigestRuns.Do(ctx, client, q)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Runs {
			if !seen[one.Run] {
				seen[one.Run] = true
				all = append(all, one)
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return all, nil
		}
	}
}

// askDigests asks Postroom which attempts were in doubt, of emails that relays took twice, or that did not
// end as sent.
func (r *round) askDigests(ctx context.Context) {
	l := r.h.ledger
	l.mu.Lock()
	ids, sent := map[string]string{}, map[string]bool{}
	for _, f := range l.order {
		if f.messageID != "" {
			ids[f.messageID] = f.queueID
		}
		sent[f.queueID] = sent[f.queueID] || f.kind == event.MessageSent
	}
	var suspects []*digestMail
	for _, one := range l.digests.digestMails {
		if one.copies > 1 || !sent[ids[one.messageID]] {
			suspects = append(suspects, one)
		}
	}
	l.mu.Unlock()
	for _, one := range suspects {
		one.doubts = r.doubts(ctx, ids[one.messageID])
	}
}

// explainDigests prints the data about readers with whom a promise was broken.
func (h *testbed) explainDigests(v digested) []string {
	var out []string
	l := h.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range v.readers[:min(len(v.readers), storiesAtMost)] {
		out = append(out, fmt.Sprintf("reader %d:", who))
		var notes []note
		for _, n := range l.digests.all {
			if n == nil || n.reader != who || !slices.Contains(v.suspects, n.number) {
				continue
			}
			for _, one := range n.notes {
				one.text = fmt.Sprintf("event %d, %s: %s", n.number, n.category, one.text)
				notes = append(notes, one)
			}
		}
		for _, f := range l.order {
			if f.run != "" && f.reader == who {
				notes = append(notes, note{f.at, fmt.Sprintf("event: %s of run %s, mail %s %s %s, %d events, %d returned",
					f.kind, f.run, f.queueID, f.messageID, f.detail, f.events, f.returned)})
			}
		}
		slices.SortStableFunc(notes, func(a, b note) int { return a.at.Compare(b.at) })
		for _, n := range notes {
			out = append(out, fmt.Sprintf("%s  %s", l.since(n.at), n.text))
		}
		for _, run := range l.digests.runs {
			if run.Recipient == reader(who) {
				out = append(out, fmt.Sprintf("run %s of %s, period %s: %s %s, %d events, %d attempts, mail %s", run.Run,
					run.Schedule, run.Period, run.State, run.Reason, run.Events, run.Attempts,
					cmp.Or(run.QueueID, "none")))
			}
		}
	}
	return out
}

// modeOf is the mode of a schedule that has periods; empty: it has none.
func modeOf(schedule string) string {
	mode, _, found := strings.Cut(schedule, "@")
	if !found || mode == "immediate" {
		return ""
	}
	return mode
}
