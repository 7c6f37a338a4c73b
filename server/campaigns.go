package server

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter"
)

type campaignRoutes struct {
	campaigns *newsletter.Campaigns
	draining  *atomic.Bool
}

type campaignInput struct {
	Campaign string `path:"campaign" maxLength:"63" doc:"ID of the campaign"`
}

func (in campaignInput) id() string { return in.Campaign }

type campaignChange[B any] struct {
	campaignInput
	body[B]
}

type previewCampaignInput struct {
	campaignInput
	optionalBody[api.CampaignSample]
}

// copyCampaignInput names the campaign that is copied Source: in the audit log the entry is about the copy.
type copyCampaignInput struct {
	Source string `path:"campaign" maxLength:"63" doc:"ID of the campaign"`
	optionalBody[api.CampaignCopy]
}

func (in copyCampaignInput) id() string { return in.Source }

type sendCampaignInput struct {
	campaignInput
	api.CampaignStart
}

func (r campaignRoutes) sendCampaign(ctx context.Context, in *sendCampaignInput) (api.CampaignRun, error) {
	start := in.CampaignStart
	start.Token, start.TokenQuota = grantOf(ctx).QuotaID, grantOf(ctx).Quota
	return r.campaigns.Send(ctx, boundTo(ctx), in.Campaign, start)
}

type testCampaignInput struct {
	campaignChange[api.CampaignTest]
}

func (*testCampaignInput) namesPeople() {}

func (r campaignRoutes) testCampaign(ctx context.Context, in *testCampaignInput) (api.CampaignTested, error) {
	in.Body.Token, in.Body.TokenQuota = grantOf(ctx).QuotaID, grantOf(ctx).Quota
	return r.campaigns.Test(ctx, boundTo(ctx), in.Campaign, in.Body)
}

type campaignRecipientsInput struct {
	campaignInput
	api.CampaignRecipientQuery
}

func (r campaignRoutes) listCampaignRecipients(ctx context.Context, in *campaignRecipientsInput) (
	api.CampaignRecipientPage, error) {
	return r.campaigns.Recipients(ctx, boundTo(ctx), in.Campaign, in.CampaignRecipientQuery)
}

func (r campaignRoutes) exportCampaignRecipients(ctx context.Context, in *campaignRecipientsInput) (download,
	error) {
	return download{Name: "recipients.csv", ContentType: "text/csv; charset=utf-8",
		Write: func(w io.Writer) error {
			return r.campaigns.ExportRecipients(ctx, boundTo(ctx), in.Campaign, in.CampaignRecipientQuery, w)
		}}, nil
}

type settleCampaignInput struct {
	campaignChange[api.CampaignSettle]
}

func (*settleCampaignInput) namesPeople() {}

func (r campaignRoutes) resendCampaign(ctx context.Context, in *campaignChange[api.CampaignResend]) (
	api.CampaignRun, error) {
	in.Body.Token, in.Body.TokenQuota = grantOf(ctx).QuotaID, grantOf(ctx).Quota
	return r.campaigns.Resend(ctx, boundTo(ctx), in.Campaign, in.Body)
}

type campaignStatsInput struct {
	campaignInput
	api.CampaignStatsQuery
}

func (r campaignRoutes) campaignStats(ctx context.Context, in *campaignStatsInput) (api.CampaignStats,
	error) {
	return r.campaigns.Stats(ctx, boundTo(ctx), in.Campaign, in.Run)
}

// liveStats has a last event when nothing more happens automatically, or the process is about to end.
func (r campaignRoutes) liveStats(_ context.Context, in *campaignStatsInput) (live, error) {
	return live{func(ctx context.Context) (any, bool, error) {
		stats, err := r.campaigns.Stats(ctx, boundTo(ctx), in.Campaign, in.Run)
		return &stats, api.CampaignUnderWay(stats.State) && !r.draining.Load(), err
	}}, nil
}

// campaignState is what the audit log compares in a campaign: not its numbers, which always change.
type campaignState struct {
	api.Campaign
	State   string     `json:"state"`
	Run     int        `json:"run"`
	At      *time.Time `json:"at,omitempty"`
	Version int        `json:"version"`
}

// campaignSeen returns what the audit log compares of a campaign; nil if there is none.
func campaignSeen(ctx context.Context, all *newsletter.Campaigns, id string) (any, error) {
	c, err := all.Get(ctx, "", id)
	return found(campaignState{c.Campaign, c.State, c.Run, c.At, c.Version}, err)
}
