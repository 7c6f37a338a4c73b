package newsletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
)

type faults struct{ fault.Fields }

// mostTo bounds the lists, segments and campaigns that a campaign names of each kind.
const mostTo = 50

// check returns an error that names the wrong fields of a campaign. Whether its content can be sent, faultsOf
// says.
func (c *Campaigns) check(ctx context.Context, in api.Campaign) error {
	var f faults
	if !ids.MatchString(in.Campaign) {
		f.Add("campaign", "must be up to 63 letters, digits, dots, - and _, starting with a letter or digit")
	} else if in.Campaign == idOfForm || in.Campaign == idOfFeed {
		f.Add("campaign", "must not be %q, which names a page", in.Campaign)
	}
	if strings.TrimSpace(in.Name) == "" {
		f.Add("name", "is required")
	}
	f.line("name", in.Name)
	switch in.Events {
	case "none", "ends", "all":
	default:
		f.Add("events", "must be none, ends or all")
	}
	if in.Rate < 0 || in.Rate > 1e6 {
		f.Add("rate", "must be from 0 to 1000000 emails per second")
	}
	f.object("fallbacks", in.Fallbacks)
	f.object("metadata", in.Metadata)
	if in.Render != nil && len(in.Render.Params) > 0 && json.Unmarshal(in.Render.Params,
		&map[string]any{}) != nil {
		f.Add("render.params", "must be an object")
	}
	if in.Template != "" && (in.HTML != "" || in.Text != "") {
		f.Add("template", "can't be combined with html or text")
	}
	if in.TZ != "" {
		if _, err := schedule.Zone(in.TZ); err != nil {
			f.Add("tz", "%s", err)
		}
	}
	f.addresses(in)
	f.variants(in)
	f.window(in.Window)
	if err := c.checkAudience(ctx, in, &f); err != nil {
		return err
	}
	return fault.InvalidFields(f.Fields)
}

// mayName returns Forbidden if a campaign names a sender or a gateway that its account may not use. bound is
// stored.Bound.
func (c *Campaigns) mayName(ctx context.Context, in api.Campaign, bound bool) error {
	froms := []*api.Address{in.From}
	for _, v := range in.Variants {
		froms = append(froms, v.From)
	}
	for i, from := range froms {
		key := "from"
		if i > 0 {
			key = fmt.Sprintf("variants[%d].from", i-1)
		}
		in.From = from
		if err := c.Outbox.Mailings.MayName(ctx, shared(in, "", bound), key); err != nil {
			return err
		}
	}
	return nil
}

// object checks that a field is an object of at most 4 KB.
func (f *faults) object(key string, raw json.RawMessage) {
	var object map[string]any
	if len(raw) > 4<<10 {
		f.Add(key, "must be at most 4096 bytes of JSON")
	} else if len(raw) > 0 && json.Unmarshal(raw, &object) != nil {
		f.Add(key, "must be an object")
	}
}

func (f *faults) addresses(in api.Campaign) {
	if in.From != nil {
		f.address("from", *in.From)
	}
	for i, one := range in.ReplyTo {
		f.address(fmt.Sprintf("replyTo[%d]", i), one)
	}
}

func (f *faults) address(key string, a api.Address) {
	if _, err := message.NormalizeAddress(a.Address); err != nil {
		f.Add(key+".address", "%s", err)
	}
	f.line(key+".name", a.Name)
}

// line checks a name that people see.
func (f *faults) line(key, name string) {
	if !message.IsLine(name) {
		f.Add(key, "must be one line without control characters")
	}
}

func (f *faults) window(w *api.CampaignWindow) {
	if w == nil {
		return
	}
	_, wrong := schedule.ParseWindow(w.Days, w.From, w.Until)
	for _, field := range wrong {
		f.Add("window."+field.Key, "%s", field.Message)
	}
	if w.Of != "" && w.Of != "sender" && w.Of != "recipient" {
		f.Add("window.of", "must be sender or recipient")
	}
}

// checkAudience finds lists, segments and campaigns that do not exist in the account.
func (c *Campaigns) checkAudience(ctx context.Context, in api.Campaign, f *faults) error {
	each := func(key, noun string, names []string, find func(id string) error) error {
		if len(names) > mostTo {
			f.Add(key, "must be at most %d", mostTo)
			return nil
		}
		for i, id := range names {
			err := find(id)
			wrong, ok := errors.AsType[*fault.Error](err)
			switch {
			case ok && wrong.Kind == fault.NotFound:
				f.Add(fmt.Sprintf("%s[%d]", key, i), "there is no %s %q in account %s", noun, id, in.Account)
			case ok && wrong.Kind == fault.Invalid:
				f.Add(fmt.Sprintf("%s[%d]", key, i), "%s", wrong.Fields[0].Message)
			case err != nil:
				return err
			}
		}
		return nil
	}
	choose := func(sel audience.Selection) error {
		sel.Account = in.Account
		_, err := c.choose(ctx, in.Campaign, sel)
		return err
	}
	list := func(id string) error { return choose(audience.Selection{Lists: []string{id}}) }
	part := func(id string) error { return choose(audience.Selection{Segments: []string{id}}) }
	other := func(id string) error { _, err := c.find(ctx, in.Account, id); return err }
	for _, one := range []struct {
		key, noun string
		names     []string
		find      func(id string) error
	}{
		{"lists", "list", in.Lists, list}, {"excludeLists", "list", in.ExcludeLists, list},
		{"segments", "segment", in.Segments, part}, {"excludeSegments", "segment", in.ExcludeSegments, part},
		{"excludeCampaigns", "campaign", in.ExcludeCampaigns, other},
	} {
		if err := each(one.key, one.noun, one.names, one.find); err != nil {
			return err
		}
	}
	return nil
}

// choose prepares a selection of a campaign. Invalid: its segments select by the campaign itself, or by one
// that does not exist. Then "did not get it" would select everybody.
func (c *Campaigns) choose(ctx context.Context, id string, sel audience.Selection) (*audience.Choice, error) {
	choice, err := c.Audience.Choose(ctx, sel)
	if err != nil {
		return nil, err
	}
	var f faults
	for _, other := range choice.Campaigns() {
		if other == id {
			f.Add("segments", "selects by the results of campaign %q itself, which has none before it is "+
				"sent", id)
			continue
		}
		_, err := c.find(ctx, sel.Account, other)
		if fault.Is(err, fault.NotFound) {
			f.Add("segments", "selects by the results of campaign %q, which account %s doesn't "+
				"have", other, sel.Account)
		} else if err != nil {
			return nil, err
		}
	}
	return choice, fault.InvalidFields(f.Fields)
}

// selection returns a campaign's audience.
func selection(in api.Campaign) audience.Selection {
	return audience.Selection{Account: in.Account, Lists: in.Lists, ExcludeLists: in.ExcludeLists,
		Segments: in.Segments, ExcludeSegments: in.ExcludeSegments}
}
