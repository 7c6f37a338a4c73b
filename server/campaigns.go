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
	accountQuery
	Body api.Campaign
}

func (r campaignRoutes) createCampaign(ctx context.Context, in *createCampaignInput) (api.CampaignInfo,
	error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.CampaignInfo{}, err
	}
	in.Body.Account = account
	return r.campaigns.Create(ctx, boundTo(ctx), in.Body)
}

type listCampaignsInput struct {
	pageInput
	Account string `query:"account" maxLength:"256" doc:"Only campaigns of this account; when absent that of the token, else all"`
	State   string `query:"state" enum:"draft,scheduled,sending,paused,held,sent,cancelled,failed" doc:"Only those in this state"`
	ListID  string `query:"listId" maxLength:"63" doc:"Only those that go to this list"`
	Search  string `query:"search" maxLength:"256" doc:"Only those with this in their id or name; case does not matter"`
}

func (r campaignRoutes) listCampaigns(ctx context.Context, in *listCampaignsInput) (api.CampaignPage, error) {
	return r.campaigns.Page(ctx, boundTo(ctx), api.CampaignQuery{Account: in.Account, State: in.State,
		ListID: in.ListID, Search: in.Search, PageQuery: api.PageQuery{Page: in.Page, PageSize: in.size()}})
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
	At string `query:"at" maxLength:"64" doc:"When it begins: an instant (RFC 3339), or a wall clock such as 2026-12-24T08:00 in its zone; now when absent"`
}

func (r campaignRoutes) sendCampaign(ctx context.Context, in *sendCampaignInput) (api.CampaignRun, error) {
	by := grantOf(ctx)
	return r.campaigns.Send(ctx, boundTo(ctx), in.Campaign, api.CampaignStart{At: in.At, Token: by.QuotaID,
		TokenQuota: by.Quota})
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

// recipientSelection are the filters of the recipients of a campaign.
type recipientSelection struct {
	campaignInput
	State   string `query:"state" enum:"sending,sent,deferred,suppressed,unsubscribed,bounced,failed,inDoubt,cancelled" doc:"Only those in this state"`
	Variant string `query:"variant" maxLength:"32" doc:"Only those who get this variant"`
	Run     int    `query:"run" minimum:"1" doc:"Only those of this run; the last when absent"`
	Search  string `query:"search" maxLength:"256" doc:"Only those with this in their address; case does not matter"`
}

func (in recipientSelection) query() api.CampaignRecipientQuery {
	return api.CampaignRecipientQuery{State: in.State, Variant: in.Variant, Run: in.Run, Search: in.Search}
}

type listCampaignRecipientsInput struct {
	recipientSelection
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Maximum number of rows"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it. If an answer has one, there may be more rows, even if it has no rows itself"`
}

func (r campaignRoutes) listCampaignRecipients(ctx context.Context, in *listCampaignRecipientsInput) (
	api.CampaignRecipientPage, error) {
	q := in.query()
	q.Cursor, q.PageSize = in.Cursor, cmp.Or(in.PageSize, 20)
	return r.campaigns.Recipients(ctx, boundTo(ctx), in.Campaign, q)
}

func (r campaignRoutes) exportCampaignRecipients(ctx context.Context, in *recipientSelection) (download,
	error) {
	return download{Name: "recipients.csv", ContentType: "text/csv; charset=utf-8",
		Write: func(w io.Writer) error {
			return r.campaigns.ExportRecipients(ctx, boundTo(ctx), in.Campaign, in.query(), w)
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
	Run int `query:"run" minimum:"1" doc:"Only this run. Without it, all runs are counted together, and each person once"`
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
