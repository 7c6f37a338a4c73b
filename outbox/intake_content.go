package outbox

import (
	"context"

	"github.com/postroom/postroom/fault"
)

// errContentLost says that a content was gone before its message was accepted, with the Redis that had it.
var errContentLost = fault.New(fault.Unavailable, "ContentLost", "The message store lost this message as it came in; send it again")

// bringIn puts a large content into Redis ahead of the script that accepts its message, which finds it there. A script would take it along as an
// argument and copy it twice, and Redis would answer nobody else in the meantime: 40 ms for 20 MB.
func (in *Intake) bringIn(ctx context.Context, a acceptance) error {
	content := a.args[argContent].([]byte)
	if len(content) <= small {
		return nil
	}
	a.args[argContent] = ""
	return in.lay(ctx, a.partition, a.answer.QueueID, content)
}

// takeOut forgets a content that was brought in for a message that is not accepted after all. What stays expires.
func (in *Intake) takeOut(ctx context.Context, a acceptance) {
	if a.args[argContent] != "" {
		return
	}
	if err := in.DB.Client().Del(ctx, in.keys.incoming(a.partition, a.id)).Err(); err != nil {
		in.log.DebugContext(ctx, "content left behind", "message_id", a.id, "error", err)
	}
}
