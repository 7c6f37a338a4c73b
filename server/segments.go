package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// segmentBody is the size limit of bodies with a rule.
const segmentBody = 128 << 10

type segmentRoutes struct{ segments *audience.Segments }

type segmentInput struct {
	Segment string `path:"segment" maxLength:"63" doc:"ID of the segment"`
}

func (in segmentInput) id() string { return in.Segment }

type updateSegmentInput struct {
	segmentInput
	body[api.SegmentPatch]
}

type explainSegmentInput struct {
	segmentInput
	api.SegmentSubject
}

func (s segmentRoutes) explainSegment(ctx context.Context, in *explainSegmentInput) (api.SegmentExplanation,
	error) {
	return s.segments.Explain(ctx, boundTo(ctx), in.Segment, in.Subscriber)
}
