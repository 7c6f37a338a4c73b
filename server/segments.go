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
	api.AccountQuery
	Body api.Segment
}

func (s segmentRoutes) createSegment(ctx context.Context, in *createSegmentInput) (api.SegmentInfo, error) {
	return s.segments.Create(ctx, boundTo(ctx), in.Body)
}

func (s segmentRoutes) listSegments(ctx context.Context, in *api.SegmentQuery) (api.SegmentPage, error) {
	return s.segments.Page(ctx, boundTo(ctx), *in)
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
	api.SegmentSubject
}

func (s segmentRoutes) explainSegment(ctx context.Context, in *explainSegmentInput) (api.SegmentExplanation,
	error) {
	return s.segments.Explain(ctx, boundTo(ctx), in.Segment, in.Subscriber)
}
