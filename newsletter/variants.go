package newsletter

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// The criteria for a winning variant.
const (
	byClicks = "clicks"
	byOpens  = "opens"
	byHand   = "manual"
)

// reasonWinner is the reason of a campaign that is held because its test had too few people.
const reasonWinner = "winner"

// undecided replaces a variant for people who wait for the winner.
const undecided = -1

// forWinner is when chunks whose people wait for the winner are scanned again: never automatically.
var forWinner = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// trial is how the winner is found.
type trial struct {
	share   float64
	metric  string
	wait    time.Duration
	minimum int
}

func trialOf(in api.Campaign) trial {
	set := *cmp.Or(in.Test, &api.CampaignTrial{})
	wait, err := schedule.ParseDuration(set.Wait)
	if err != nil { // it is absent
		wait = 4 * time.Hour
	}
	return trial{share: cmp.Or(set.Share, 0.1), metric: cmp.Or(set.Metric, byClicks), wait: wait,
		minimum: cmp.Or(set.Minimum, 100)}
}

// as returns a campaign with the content of one of its variants.
func as(in api.Campaign, variant int) api.Campaign {
	if len(in.Variants) == 0 {
		return in
	}
	v := in.Variants[variant]
	in.Subject, in.PreviewText = cmp.Or(v.Subject, in.Subject), cmp.Or(v.PreviewText, in.PreviewText)
	in.From = cmp.Or(v.From, in.From)
	if v.Template+v.HTML+v.Text != "" {
		in.Template, in.HTML, in.Text = v.Template, v.HTML, v.Text
	}
	return in
}

// contentsOf returns a campaign with the content of each of its variants, or as it is if it has none.
func contentsOf(in api.Campaign) []api.Campaign {
	all := make([]api.Campaign, max(1, len(in.Variants)))
	for i := range all {
		all[i] = as(in, i)
	}
	return all
}

// chosen returns a campaign with a variant's content. If variant is empty, it is the first.
func chosen(in api.Campaign, variant string) (api.Campaign, error) {
	if variant == "" {
		return as(in, 0), nil
	}
	i := indexOf(in, variant)
	if i < 0 {
		return in, fault.InvalidField("variant", "campaign %q has no variant %q", in.Campaign, variant)
	}
	return as(in, i), nil
}

func indexOf(in api.Campaign, variant string) int {
	return slices.IndexFunc(in.Variants, func(v api.CampaignVariant) bool { return v.Variant == variant })
}

// variantOf returns which variant a person gets in a run. It is drawn once: whoever asks gets the same
// answer.
func (s *stored) variantOf(run int, ordinal uint32) int {
	n := len(s.Variants)
	if n == 0 {
		return 0
	}
	winner, share := indexOf(s.Campaign, s.Runs[run-1].Winner), trialOf(s.Campaign).share
	if run > 1 { // the test's people have had theirs
		share = 0
		if winner < 0 {
			share = 1
		}
	}
	if drawn := lot(s.Number, ordinal); drawn < share {
		return min(int(drawn/share*float64(n)), n-1)
	}
	return winner
}

// lot draws a number from 0 to 1 for a person.
func lot(campaign, ordinal uint32) float64 {
	return rand.New(rand.NewPCG(uint64(campaign), uint64(ordinal))).Float64()
}

// nameOf returns the id of the variant that a person gets; empty if there are none, or it is not decided.
func (s *stored) nameOf(run int, ordinal uint32) string {
	if i := s.variantOf(run, ordinal); i >= 0 && i < len(s.Variants) {
		return s.Variants[i].Variant
	}
	return ""
}

// open reports whether people of the last run wait for the winner.
func (s *stored) open() bool {
	return len(s.Variants) > 0 && len(s.Runs) == 1 && s.Runs[0].Winner == "" && trialOf(s.Campaign).share < 1
}

// mailings prepares the content of each variant.
func (c *Campaigns) mailings(ctx context.Context, s *stored, subject string) ([]*outbox.Mailing, error) {
	var all []*outbox.Mailing
	for _, one := range contentsOf(s.Campaign) {
		mailing, err := c.Outbox.Mailings.Mailing(ctx, shared(one, subject, s.Bound))
		if err != nil {
			return nil, err
		}
		all = append(all, mailing)
	}
	return all, nil
}

// save stores the contents of the last run.
func (c *Campaigns) save(ctx context.Context, s *stored, subject string) ([]outbox.Snapshot, error) {
	mailings, err := c.mailings(ctx, s, subject)
	if err != nil {
		return nil, err
	}
	all := make([]outbox.Snapshot, len(mailings))
	for i, mailing := range mailings {
		if all[i], err = mailing.Save(ctx, mailingName(s.key(), i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mailingName names a content of a run.
func mailingName(run sendlog.Run, variant int) string {
	return fmt.Sprintf("campaign.%s.%d", run, variant)
}

// release releases a run's contents, except for one; if that is empty, all.
func (c *Campaigns) release(ctx context.Context, key sendlog.Run, run *sending, but string) error {
	for i := range run.Snapshots {
		name := mailingName(key, i)
		if name == but {
			continue
		}
		if err := c.Outbox.Mailings.Release(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// try checks whether a run's test has ended, and decides the winner when it is time. Every process does: the
// first decides.
func (c *Campaigns) try(ctx context.Context, one *campaign, chunks []sendlog.Chunk, now time.Time) error {
	if !one.open() || !tested(chunks) {
		return nil
	}
	run, t := one.run(), trialOf(one.Campaign)
	if run.Tested == nil {
		_, err := c.change(ctx, "", one.id, func(s *stored) error {
			s.Version--
			if s.Runs[0].Tested == nil {
				s.Runs[0].Tested = &now
			}
			return nil
		})
		return err
	}
	if t.metric == byHand || now.Before(run.Tested.Add(t.wait)) {
		return nil
	}
	all := outcomes(one, sendlog.Sum(chunks))
	for _, o := range all {
		if o.States.Sent < t.minimum && !slices.Contains(run.Forgiven, reasonWinner) {
			c.hold(ctx, one, reasonWinner, fmt.Sprintf("%d people got variant %s, fewer than %d: choose with "+
				"postroom campaign winner, or resume to take the best", o.States.Sent, o.Variant, t.minimum))
			return nil
		}
	}
	best := best(all, t.metric)
	_, err := c.decide(ctx, "", one.id, best)
	if fault.CodeOf(err) == codeDecided {
		return nil
	}
	if err == nil {
		c.log.InfoContext(ctx, "winner of a test decided", "campaign", one.id, "variant", best, "metric", t.metric)
	}
	return err
}

// tested reports whether all mail of the test was tried.
func tested(chunks []sendlog.Chunk) bool {
	return !slices.ContainsFunc(chunks, func(c sendlog.Chunk) bool {
		return !c.Done && c.Again.Before(forWinner) || c.Batches > 0 || c.Counts.Sending() > 0
	})
}

// best returns the variant that the largest share of its people clicked or opened, or the first in a tie.
func best(outcomes []api.CampaignOutcome, metric string) string {
	name, most := "", -1.0
	for _, o := range outcomes {
		n := o.Clicked
		if metric == byOpens {
			n = o.Opened
		}
		if share := float64(n) / float64(max(1, o.States.Sent)); share > most {
			name, most = o.Variant, share
		}
	}
	return name
}

// codeDecided is of the error about a test that has its winner.
const codeDecided = "WinnerDecided"

// Winner decides which variant the waiting people get. A campaign that was held because it had no winner
// continues. If a winner was decided already, Winner returns Conflict, code WinnerDecided.
func (c *Campaigns) Winner(ctx context.Context, bound, id string, in api.CampaignWinner) (api.CampaignRun,
	error) {
	one, err := c.find(ctx, bound, id)
	if err == nil {
		_, err = chosen(one.Campaign, cmp.Or(in.Variant, "?"))
	}
	if err != nil {
		return api.CampaignRun{}, err
	}
	return c.decide(ctx, bound, id, in.Variant)
}

// decide stores the winner. It renews the permission, so that no scan continues without knowing the winner.
func (c *Campaigns) decide(ctx context.Context, bound, id, variant string) (api.CampaignRun, error) {
	one, err := c.change(ctx, bound, id, func(s *stored) error {
		if len(s.Runs) > 0 && s.Runs[0].Winner != "" {
			f := fault.New(fault.Conflict, codeDecided, "Campaign %q already has the winner "+
				"%s", id, s.Runs[0].Winner)
			f.Details = map[string]any{"variant": s.Runs[0].Winner}
			return f
		}
		if !s.open() || !live(s.State) {
			return wrongState(s, "choose a winner")
		}
		now := c.opts.Now().UTC().Truncate(time.Millisecond)
		s.Runs[0].Winner, s.Runs[0].Decided = variant, &now
		s.Permission++
		if s.State == api.CampaignHeld && s.Reason == reasonWinner {
			s.State, s.Reason, s.Detail = api.CampaignSending, "", ""
		}
		return nil
	})
	if err != nil {
		return api.CampaignRun{}, err
	}
	return ran(one), c.settled(ctx, one)
}

// groupOf returns the group in which the send log counts a person: each variant has one for the test, and one
// for all others.
func (s *stored) groupOf(run int, ordinal uint32) sendlog.Group {
	group := sendlog.Group(max(0, s.variantOf(run, ordinal)))
	if run > 1 || lot(s.Number, ordinal) >= trialOf(s.Campaign).share {
		group += mostVariants
	}
	return group
}

// outcomes returns the results of each variant of the last run, from its counters.
func outcomes(one *campaign, sum sendlog.Counts) []api.CampaignOutcome {
	all := make([]api.CampaignOutcome, len(one.Variants))
	for i, v := range one.Variants {
		test, both := sum.Groups[sendlog.Group(i)], sendlog.Sum(nil)
		both.Add(test)
		both.Add(sum.Groups[sendlog.Group(i+mostVariants)])
		n := func(bit sendlog.Bit) int { return both.Fields[string(bit)] }
		all[i] = api.CampaignOutcome{Variant: v.Variant, Test: test.States[sendlog.Sent], States: named(both),
			Delivered: n(sendlog.Delivered), Complained: n(sendlog.Complained), Left: n(sendlog.Left),
			Opened: n(sendlog.Opened), OpenedBots: n(sendlog.OpenedBots), Clicked: n(sendlog.Clicked),
			ClickedBots: n(sendlog.ClickedBots)}
	}
	return all
}

// variantIDs matches the ids of variants.
var variantIDs = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Bounds of a test.
const (
	mostVariants = 8
	leastShare   = 0.01
	mostWait     = 168 * time.Hour
)

// variants checks variants and their test.
func (f *faults) variants(in api.Campaign) {
	if n := len(in.Variants); n == 1 || n > mostVariants {
		f.Add("variants", "must be 2 to %d or none", mostVariants)
	}
	seen := map[string]bool{}
	for i, v := range in.Variants {
		key := fmt.Sprintf("variants[%d].", i)
		switch {
		case !variantIDs.MatchString(v.Variant):
			f.Add(key+"variant", "must be 1 to 32 letters, digits, - and _")
		case seen[v.Variant]:
			f.Add(key+"variant", "is there twice")
		}
		seen[v.Variant] = true
		if v.Template != "" && (v.HTML != "" || v.Text != "") {
			f.Add(key+"template", "can't be combined with html or text")
		}
		if v.From != nil {
			f.address(key+"from", *v.From)
		}
	}
	t := in.Test
	if t == nil {
		return
	}
	if len(in.Variants) == 0 {
		f.Add("test", "needs variants")
	}
	if t.Share != 0 && (t.Share < leastShare || t.Share > 1) {
		f.Add("test.share", "must be %g to 1", leastShare)
	}
	if t.Metric != "" && !slices.Contains([]string{byClicks, byOpens, byHand}, t.Metric) {
		f.Add("test.metric", "must be clicks, opens or manual")
	}
	if d, err := schedule.ParseDuration(t.Wait); t.Wait != "" && (err != nil || d < time.Second ||
		d > mostWait) {
		f.Add("test.wait", "must be a duration from 1s to %s, such as 4h", mostWait)
	}
	if t.Minimum < 0 {
		f.Add("test.minimum", "must not be negative")
	}
}

// sameTest reports whether two campaigns have the same variants, except for their content.
func sameTest(a, b api.Campaign) bool {
	return slices.EqualFunc(a.Variants, b.Variants, func(v, w api.CampaignVariant) bool {
		return v.Variant == w.Variant
	}) && trialOf(a) == trialOf(b)
}
