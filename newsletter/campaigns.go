package newsletter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// ids matches the ids of campaigns.
var ids = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// idOfForm is not an id: the page /campaigns/new is the form for a new campaign.
const idOfForm = "new"

// codeExists is of the error about an id that is in use.
const codeExists = "CampaignExists"

// codeChanged is of the error about a change that another one preceded.
const codeChanged = "CampaignChanged"

// mostNumber bounds the numbers of campaigns: 24 bits of an id.
const mostNumber = 1<<24 - 1

// Create stores a campaign's draft. bound is the account that the caller is confined to, if any. It returns
// Invalid with the invalid fields, and Conflict, code CampaignExists, if the id is in use.
func (c *Campaigns) Create(ctx context.Context, bound string, in api.Campaign) (api.CampaignInfo, error) {
	in, err := completed(bound, in)
	if err == nil {
		err = c.check(ctx, in)
	}
	if err == nil {
		err = c.mayName(ctx, in, bound != "")
	}
	if err != nil {
		return api.CampaignInfo{}, err
	}
	exists := fault.New(fault.Conflict, codeExists, "There is a campaign %q already", in.Campaign)
	if _, err := c.find(ctx, "", in.Campaign); err == nil {
		return api.CampaignInfo{}, exists
	} else if !fault.Is(err, fault.NotFound) {
		return api.CampaignInfo{}, err
	}
	number, err := c.takeNumber(ctx, in.Campaign)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	_, err = c.store.Change(ctx, in.Campaign, func(old *records.Record[stored]) (stored, error) {
		if old != nil {
			return stored{}, exists
		}
		return stored{Campaign: in, Number: number, Version: 1, State: api.CampaignDraft,
			Bound: bound != ""}, nil
	})
	if err != nil {
		return api.CampaignInfo{}, err
	}
	return c.Get(ctx, bound, in.Campaign)
}

// completed returns a new campaign with the defaults of the fields that are empty. It returns Forbidden for
// another account than the caller's.
func completed(bound string, in api.Campaign) (api.Campaign, error) {
	if bound != "" && in.Account != "" && in.Account != bound {
		return in, fault.New(fault.Forbidden, "", "This token belongs to another account, not to %q", in.Account)
	}
	in.Account = cmp.Or(in.Account, bound, audience.DefaultAccount)
	in.Campaign = cmp.Or(in.Campaign, idOf(in.Name))
	in.Events = cmp.Or(in.Events, "ends")
	return in, nil
}

// takeNumber gives a campaign the next number.
func (c *Campaigns) takeNumber(ctx context.Context, id string) (uint32, error) {
	n, err := audience.TakeNumber(ctx, c.DB, numbersKey(), id)
	if err == nil && n > mostNumber {
		err = fault.New(fault.Conflict, "TooManyCampaigns",
			"This Postroom has had %d campaigns, which is the maximum", n)
	}
	return n, err
}

// idOf makes an id of a name, which is not one that the form of the pages has.
func idOf(name string) string {
	if id := audience.IDFromName("campaign", name); id != idOfForm {
		return id
	}
	return audience.IDFromName("campaign", "")
}

// Get returns a campaign. Unknown, or of another account: NotFound.
func (c *Campaigns) Get(ctx context.Context, bound, id string) (api.CampaignInfo, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	return c.info(ctx, one)
}

// notPublic warns of a campaign for the archive that will have no page there.
var notPublic = api.CampaignFault{Code: "NoArchive",
	Message: "It has no public page, because none of its lists is public"}

// info returns a campaign as the API has it.
func (c *Campaigns) info(ctx context.Context, one *campaign) (api.CampaignInfo, error) {
	info := api.CampaignInfo{Campaign: one.Campaign, State: one.State, Reason: one.Reason, Detail: one.Detail,
		Run: len(one.Runs), At: one.At, Version: one.Version, Created: one.created, Updated: one.updated}
	if one.State == api.CampaignSending {
		info.Waits = one.Waits
	}
	url, err := c.archiveURL(ctx, one.Campaign)
	if err != nil {
		return info, err
	}
	if one.Archive && url == "" {
		info.Warnings = []api.CampaignFault{notPublic}
	}
	run := one.run()
	if run == nil {
		return info, nil
	}
	info.Started, info.Ended = &run.Began, run.Ended
	if one.shown() > 0 {
		info.ArchiveURL = url
	}
	_, info.States, _, err = c.totals(ctx, one)
	return info, err
}

// Page returns a page of campaigns of one account or all, most recently changed first.
func (c *Campaigns) Page(ctx context.Context, bound string, q api.CampaignQuery) (api.CampaignPage, error) {
	account := cmp.Or(q.Account, bound)
	if bound != "" && account != bound {
		return api.CampaignPage{}, fault.New(fault.Forbidden, "", "This token belongs to another account, "+
			"not to %q",
			account)
	}
	var mine []*campaign
	search := strings.ToLower(q.Search)
	err := c.store.Each(ctx, func(r *records.Record[stored]) error {
		v := r.Value
		if (account == "" || v.Account == account) && (q.State == "" || v.State == q.State) &&
			(q.ListID == "" || slices.Contains(v.Lists, q.ListID)) &&
			(search == "" || strings.Contains(strings.ToLower(r.ID+" "+v.Name), search)) {
			mine = append(mine, used(r))
		}
		return nil
	})
	if err != nil {
		return api.CampaignPage{}, err
	}
	slices.SortFunc(mine, func(a, b *campaign) int {
		return cmp.Or(b.updated.Compare(a.updated), strings.Compare(a.id, b.id))
	})
	numbers, from, end := q.Of(len(mine))
	page := api.CampaignPage{PageNumbers: numbers, Campaigns: []api.CampaignInfo{}}
	for _, one := range mine[from:end] {
		info, err := c.info(ctx, one)
		if err != nil {
			return page, err
		}
		page.Campaigns = append(page.Campaigns, info)
	}
	return page, nil
}

// Update changes the fields of a campaign that the patch has. If the campaign was sent, or is being sent,
// only archive can change; otherwise it returns Conflict, code CampaignState. If it is paused or held, the
// remaining recipients get the new content.
func (c *Campaigns) Update(ctx context.Context, bound, id string, p api.CampaignPatch) (api.CampaignInfo,
	error) {
	if publishes(p) {
		return c.publish(ctx, bound, id, p)
	}
	old, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	next := old.Campaign
	patched(&next, p)
	if err = c.check(ctx, next); err == nil {
		err = c.mayName(ctx, next, bindsTo(old.Bound, bound, p))
	}
	if err != nil {
		return api.CampaignInfo{}, err
	}
	changed, err := c.change(ctx, bound, id, func(s *stored) error {
		if err := outdated(s, p.Version); err != nil {
			return err
		}
		if s.State == api.CampaignSending || ended(s.State) {
			return wrongState(s, "change it. Pause it first, or copy it")
		}
		before := s.Campaign
		patched(&s.Campaign, p)
		s.Bound = bindsTo(s.Bound, bound, p)
		if len(s.Runs) > 0 && !sameAudience(before, s.Campaign) {
			return wrongState(s, "change its audience during a run. Cancel it and copy it")
		}
		if len(s.Runs) > 0 && !sameTest(before, s.Campaign) {
			return wrongState(s, "change its variants during a run. Cancel it and copy it")
		}
		return nil
	})
	if err != nil {
		return api.CampaignInfo{}, err
	}
	if run := changed.run(); run != nil && !ended(changed.State) {
		if changed, err = c.saveAgain(ctx, changed); err != nil {
			return api.CampaignInfo{}, err
		}
	}
	return c.info(ctx, changed)
}

// bindsTo reports whether a campaign names only its account's senders after a change. A caller who isn't
// bound and names the senders answers for them.
func bindsTo(was bool, bound string, p api.CampaignPatch) bool {
	return bound != "" || was && p.From == nil && p.Gateway == nil && p.Variants == nil
}

// outdated returns an error if a change is based on another version than the one before it.
func outdated(s *stored, version *int) error {
	if version == nil || *version == s.Version-1 {
		return nil
	}
	return fault.New(fault.Conflict, codeChanged, "Campaign %q is now at version %d, not %d. Read it "+
		"again and repeat your change",
		s.Campaign.Campaign, s.Version-1, *version)
}

// sameAudience reports whether two campaigns go to the same people.
func sameAudience(a, b api.Campaign) bool {
	return slices.Equal(a.Lists, b.Lists) && slices.Equal(a.Segments, b.Segments) &&
		slices.Equal(a.ExcludeLists, b.ExcludeLists) && slices.Equal(a.ExcludeSegments, b.ExcludeSegments) &&
		slices.Equal(a.ExcludeCampaigns, b.ExcludeCampaigns)
}

// patched applies a patch.
func patched(in *api.Campaign, p api.CampaignPatch) {
	api.Patch(in, p)
	if p.From != nil && p.From.Address == "" {
		in.From = nil
	}
	if r := p.Render; r != nil && r.Format == "" && r.Missing == "" && empty(r.Params) {
		in.Render = nil
	}
	if p.Metadata != nil && empty(p.Metadata) {
		in.Metadata = nil
	}
	if p.Fallbacks != nil && empty(p.Fallbacks) {
		in.Fallbacks = nil
	}
	if w := p.Window; w != nil && w.From == "" && w.Until == "" {
		in.Window = nil
	}
	if p.EndAt != nil && p.EndAt.IsZero() {
		in.EndAt = nil
	}
}

// empty reports whether JSON is absent, or an object without fields.
func empty(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return len(raw) == 0 || json.Unmarshal(raw, &fields) == nil && len(fields) == 0
}

// Copy makes a draft of a campaign's content and audience. An id that is made of the name is a free one.
func (c *Campaigns) Copy(ctx context.Context, bound, id string, in api.CampaignCopy) (api.CampaignInfo,
	error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	next := one.Campaign
	next.Name, next.Campaign = cmp.Or(in.Name, "Copy of "+one.Name), in.Campaign
	next.Name = strings.ToValidUTF8(next.Name[:min(len(next.Name), 256)], "")
	made, err := c.Create(ctx, bound, next)
	if in.Campaign == "" && fault.CodeOf(err) == codeExists {
		id := idOf(next.Name)
		next.Campaign = id[:min(len(id), 54)] + "-" + strings.ToLower(rand.Text()[:8])
		made, err = c.Create(ctx, bound, next)
	}
	return made, err
}

// Delete removes a campaign with its recipients' data, and reports whether there was one. It returns
// Conflict, code CampaignState, while the campaign is being sent, paused or held. It returns Conflict, code
// CampaignInUse, while a segment names it, or a live campaign excludes its recipients.
func (c *Campaigns) Delete(ctx context.Context, bound, id string) (bool, error) {
	one, err := c.find(ctx, bound, id)
	if fault.Is(err, fault.NotFound) && bound == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if one.State != api.CampaignDraft && one.State != api.CampaignScheduled && !ended(one.State) {
		return false, wrongState(&one.stored, "delete it. Cancel it first")
	}
	if err := c.needed(ctx, one); err != nil {
		return false, err
	}
	for n, run := range one.Runs {
		key := sendlog.Run{Campaign: one.Number, Number: n + 1}
		if err := c.Log.Forget(ctx, key, run.End); err != nil {
			return false, err
		}
		if err := c.release(ctx, key, &run, ""); err != nil {
			return false, err
		}
	}
	client := c.DB.Client()
	if err := client.SRem(ctx, liveKey(), id).Err(); err != nil {
		return false, redisdb.Failed(err, "delete campaign %s", id)
	}
	if err := c.store.Delete(ctx, id); err != nil {
		return false, err
	}
	err = client.HDel(ctx, numbersKey(), strconv.FormatUint(uint64(one.Number), 10)).Err()
	return true, redisdb.Failed(err, "delete the number of campaign %s", id)
}

func wrongState(s *stored, to string) error {
	f := fault.New(fault.Conflict, "CampaignState", "Campaign %q is %s, so you can't %s", s.Campaign.Campaign,
		s.State, to)
	f.Details = map[string]any{"state": s.State}
	return f
}
