package server

import (
	"cmp"
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

type createCampaignInput struct {
	api.AccountQuery
	Body api.Campaign
}

func (r campaignRoutes) createCampaign(ctx context.Context, in *createCampaignInput) (api.CampaignInfo,
	error) {
	return r.campaigns.Create(ctx, boundTo(ctx), in.Body)
}

func (r campaignRoutes) listCampaigns(ctx context.Context, in *api.CampaignQuery) (api.CampaignPage, error) {
	return r.campaigns.Page(ctx, boundTo(ctx), *in)
}

type campaignInput struct {
	Campaign string `path:"campaign" maxLength:"63" doc:"Id of the campaign"`
}

func (r campaignRoutes) getCampaign(ctx context.Context, in *campaignInput) (api.CampaignInfo, error) {
	return r.campaigns.Get(ctx, boundTo(ctx), in.Campaign)
}

type updateCampaignInput struct {
	campaignInput
	Body api.CampaignPatch
}

func (r campaignRoutes) updateCampaign(ctx context.Context, in *updateCampaignInput) (api.CampaignInfo,
	error) {
	return r.campaigns.Update(ctx, boundTo(ctx), in.Campaign, in.Body)
}

func (r campaignRoutes) deleteCampaign(ctx context.Context, in *campaignInput) (api.Deleted, error) {
	deleted, err := r.campaigns.Delete(ctx, boundTo(ctx), in.Campaign)
	return api.Deleted{Deleted: deleted}, err
}

// copyCampaignInput names the campaign that is copied Source: in the audit log the entry is about the copy.
type copyCampaignInput struct {
	Source string `path:"campaign" maxLength:"63" doc:"Id of the campaign"`
	Body   *api.CampaignCopy
}

func (r campaignRoutes) copyCampaign(ctx context.Context, in *copyCampaignInput) (api.CampaignInfo, error) {
	return r.campaigns.Copy(ctx, boundTo(ctx), in.Source, orZero(in.Body))
}

// orZero returns what a pointer of a body that may be absent points to.
func orZero[T any](body *T) T { return *cmp.Or(body, new(T)) }

type sendCampaignInput struct {
	campaignInput
	api.CampaignStart
}

func (r campaignRoutes) sendCampaign(ctx context.Context, in *sendCampaignInput) (api.CampaignRun, error) {
	start := in.CampaignStart
	start.Token, start.TokenQuota = grantOf(ctx).QuotaID, grantOf(ctx).Quota
	return r.campaigns.Send(ctx, boundTo(ctx), in.Campaign, start)
}

func (r campaignRoutes) pauseCampaign(ctx context.Context, in *campaignInput) (api.CampaignRun, error) {
	return r.campaigns.Pause(ctx, boundTo(ctx), in.Campaign)
}

func (r campaignRoutes) resumeCampaign(ctx context.Context, in *campaignInput) (api.CampaignRun, error) {
	return r.campaigns.Resume(ctx, boundTo(ctx), in.Campaign)
}

func (r campaignRoutes) cancelCampaign(ctx context.Context, in *campaignInput) (api.CampaignRun, error) {
	return r.campaigns.Cancel(ctx, boundTo(ctx), in.Campaign)
}

type previewCampaignInput struct {
	campaignInput
	Body *api.CampaignSample
}

func (r campaignRoutes) previewCampaign(ctx context.Context, in *previewCampaignInput) (api.CampaignPreview,
	error) {
	return r.campaigns.Preview(ctx, boundTo(ctx), in.Campaign, orZero(in.Body))
}

func (r campaignRoutes) checkCampaign(ctx context.Context, in *campaignInput) (api.CampaignCheck, error) {
	return r.campaigns.Check(ctx, boundTo(ctx), in.Campaign)
}

type testCampaignInput struct {
	campaignInput
	Body api.CampaignTest
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
	campaignInput
	Body api.CampaignSettle
}

func (*settleCampaignInput) namesPeople() {}

func (r campaignRoutes) settleCampaign(ctx context.Context, in *settleCampaignInput) (api.CampaignSettled,
	error) {
	return r.campaigns.Settle(ctx, boundTo(ctx), in.Campaign, in.Body)
}

type decideCampaignInput struct {
	campaignInput
	Body api.CampaignWinner
}

func (r campaignRoutes) decideCampaign(ctx context.Context, in *decideCampaignInput) (api.CampaignRun,
	error) {
	return r.campaigns.Winner(ctx, boundTo(ctx), in.Campaign, in.Body)
}

type resendCampaignInput struct {
	campaignInput
	Body api.CampaignResend
}

func (r campaignRoutes) resendCampaign(ctx context.Context, in *resendCampaignInput) (api.CampaignRun,
	error) {
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

// liveStats has a last event when nothing more happens by itself, or the process is about to end.
func (r campaignRoutes) liveStats(_ context.Context, in *campaignStatsInput) (live, error) {
	return live{func(ctx context.Context) (any, bool, error) {
		stats, err := r.campaigns.Stats(ctx, boundTo(ctx), in.Campaign, in.Run)
		return &stats, api.CampaignUnderWay(stats.State) && !r.draining.Load(), err
	}}, nil
}

func (r campaignRoutes) recountCampaign(ctx context.Context, in *campaignInput) (api.CampaignRecount, error) {
	return r.campaigns.Recount(ctx, boundTo(ctx), in.Campaign)
}

// campaignState is what the audit log compares of a campaign: not its numbers, which change by themselves.
type campaignState struct {
	api.Campaign
	State   string     `json:"state"`
	Run     int        `json:"run"`
	At      *time.Time `json:"at,omitempty"`
	Version int        `json:"version"`
}

// campaignSeen returns what the audit log compares of a campaign; nil: there is none.
func campaignSeen(ctx context.Context, all *newsletter.Campaigns, id string) (any, error) {
	c, err := all.Get(ctx, "", id)
	return found(campaignState{c.Campaign, c.State, c.Run, c.At, c.Version}, err)
}
