package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// segmentBody is the size limit of bodies with a rule.
const segmentBody = 128 << 10

type segmentRoutes struct{ segments *audience.Segments }

type createSegmentInput struct {
	accountQuery
	Body api.Segment
}

func (s segmentRoutes) createSegment(ctx context.Context, in *createSegmentInput) (api.SegmentInfo, error) {
	account, err := in.named(in.Body.Account)
	if err != nil {
		return api.SegmentInfo{}, err
	}
	in.Body.Account = account
	return s.segments.Create(ctx, boundTo(ctx), in.Body)
}

type listSegmentsInput struct {
	pageInput
	Account string `query:"account" maxLength:"256" doc:"Only segments of this account; when absent that of the token, else all"`
}

func (s segmentRoutes) listSegments(ctx context.Context, in *listSegmentsInput) (api.SegmentPage, error) {
	return s.segments.Page(ctx, boundTo(ctx), api.SegmentQuery{Account: in.Account,
		PageQuery: api.PageQuery{Page: in.Page, PageSize: in.size()}})
}

type segmentInput struct {
	Segment string `path:"segment" maxLength:"63" doc:"Id of the segment"`
}

func (s segmentRoutes) getSegment(ctx context.Context, in *segmentInput) (api.SegmentInfo, error) {
	return s.segments.Get(ctx, boundTo(ctx), in.Segment)
}

type updateSegmentInput struct {
	segmentInput
	Body api.SegmentPatch
}

func (s segmentRoutes) updateSegment(ctx context.Context, in *updateSegmentInput) (api.SegmentInfo, error) {
	return s.segments.Update(ctx, boundTo(ctx), in.Segment, in.Body)
}

func (s segmentRoutes) deleteSegment(ctx context.Context, in *segmentInput) (api.Deleted, error) {
	deleted, err := s.segments.Delete(ctx, boundTo(ctx), in.Segment)
	return api.Deleted{Deleted: deleted}, err
}

func (s segmentRoutes) countSegment(ctx context.Context, in *segmentInput) (api.SegmentCount, error) {
	return s.segments.StartCount(ctx, boundTo(ctx), in.Segment)
}

func (s segmentRoutes) segmentCount(ctx context.Context, in *segmentInput) (api.SegmentCount, error) {
	return s.segments.Count(ctx, boundTo(ctx), in.Segment)
}

type explainSegmentInput struct {
	segmentInput
	Subscriber string `query:"subscriber" minLength:"1" maxLength:"512" doc:"Id or address of the subscriber"`
}

func (s segmentRoutes) explainSegment(ctx context.Context, in *explainSegmentInput) (api.SegmentExplanation,
	error) {
	return s.segments.Explain(ctx, boundTo(ctx), in.Segment, in.Subscriber)
}
