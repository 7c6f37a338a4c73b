package outbox

import (
	"cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/traces"
)

// tracedSubmit notes what a submit was about.
func tracedSubmit(span *traces.Span, req api.SubmitRequest, answer api.SubmitAnswer, err error) {
	if span == nil {
		return
	}
	span.Set("postroom.account", req.Account)
	span.Set("postroom.message_id", answer.QueueID)
	span.SetInt("postroom.messages", max(1, len(req.MailMerge)))
	if err != nil {
		span.Fail(cmp.Or(fault.CodeOf(err), "error"))
	}
}
