package newsletter

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// usesOf returns what a campaign needs of a kind.
func usesOf(one *campaign, kind string) []string {
	switch kind {
	case "account":
		return []string{one.Account}
	case "list":
		return slices.Concat(one.Lists, one.ExcludeLists)
	case "segment":
		return slices.Concat(one.Segments, one.ExcludeSegments)
	case "campaign":
		return one.ExcludeCampaigns
	case "template":
		used := []string{one.Template}
		for _, v := range one.Variants {
			used = append(used, v.Template)
		}
		return used
	case "gateway":
		return []string{one.Gateway}
	}
	return nil
}

// InUse returns an error if a campaign that is scheduled, being sent, paused or held needs the list, segment,
// template, account, gateway or campaign that a caller wants to delete. It is a Conflict, with the campaigns
// in its details.
func (c *Campaigns) InUse(ctx context.Context, kind, id string) error {
	ids, err := c.DB.Client().SMembers(ctx, liveKey()).Result()
	if err != nil {
		return redisdb.Failed(err, "list the live campaigns")
	}
	var users []string
	for _, user := range ids {
		one, err := c.find(ctx, "", user)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if live(one.State) && slices.Contains(usesOf(one, kind), id) {
			users = append(users, user)
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	name := strings.ToUpper(kind[:1]) + kind[1:]
	f := fault.New(fault.Conflict, name+"InUse",
		"%s %q is in use by the campaign %s. Cancel it, or wait until it is finished",
		name, id, strings.Join(users, ", "))
	f.Details = map[string]any{"campaigns": users}
	return f
}

// needed returns an error if a campaign can't be deleted because its send log is needed. It is a Conflict,
// code CampaignInUse, with the segments or the live campaigns in its details.
func (c *Campaigns) needed(ctx context.Context, one *campaign) error {
	segments, err := c.Audience.Segments.Naming(ctx, one.Account, one.id)
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		return c.InUse(ctx, "campaign", one.id)
	}
	f := fault.New(fault.Conflict, "CampaignInUse",
		"Campaign %q is used by the segment %s. Change or delete the segment first",
		one.id, strings.Join(segments, ", "))
	f.Details = map[string]any{"segments": segments}
	return f
}

// Held returns the campaigns that stopped automatically.
func (c *Campaigns) Held(ctx context.Context) ([]string, error) {
	ids, err := c.DB.Client().SMembers(ctx, liveKey()).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "list the live campaigns")
	}
	var held []string
	for _, id := range ids {
		one, err := c.known(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if one.State == api.CampaignHeld {
			held = append(held, id)
		}
	}
	slices.Sort(held)
	return held, nil
}
