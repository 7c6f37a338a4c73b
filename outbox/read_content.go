package outbox

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
)

// ContentNotKept is the code of the fault of Mail about a message that is in the log without its content. Its
// message says why.
const ContentNotKept = "ContentNotKept"

// Mail returns a message as it is sent to the relay, for as long as its content is stored: of a live message,
// of a dead letter, and for Options.KeepContent of a message that was sent. After that it is NotFound.
func (rd *Reader) Mail(ctx context.Context, id string) ([]byte, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.ended == 0 {
		return rd.contentOf(ctx, r)
	}
	until, err := contentUntil(ctx, rd.store, r)
	if err != nil {
		return nil, err
	}
	if until == nil {
		return nil, notKept(r, rd.opts)
	}
	raw, err := rd.contentOf(ctx, r)
	switch {
	case fault.CodeOf(err) == "AccountNotFound":
		return nil, fault.New(fault.NotFound, ContentNotKept,
			"The content can't be shown: the account of the message was deleted")
	case fault.Is(err, fault.NotFound), fault.CodeOf(err) == contentGone: // its time ended just now
		return nil, notKept(r, rd.opts)
	}
	return raw, err
}

// contentUntil returns when the content of an ended message expires, to the second; nil if it is not kept.
func contentUntil(ctx context.Context, s *store, r row) (*time.Time, error) {
	if r.ended == 0 || r.state != resultSent {
		return nil, nil
	}
	if err := s.clock.ready(ctx, s.DB.Client()); err != nil {
		return nil, redisError(err, "read message "+r.id)
	}
	pipe := s.DB.Client().Pipeline()
	own := pipe.PTTL(ctx, s.keys.content(r.partition, r.id))
	var shared *redis.IntCmd
	if r.shared != "" {
		shared = pipe.Exists(ctx, s.keys.shared(r.partition, r.shared))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, redisError(err, "read until when the content of message "+r.id+" is kept")
	}
	// without a time to live it stays for the search index alone
	if own.Val() <= 0 || shared != nil && shared.Val() == 0 {
		return nil, nil
	}
	return new(s.clock.Now().Add(own.Val()).Round(time.Second).UTC()), nil
}

// notKept is the fault of an ended message whose content is not stored.
func notKept(r row, o Options) error {
	why := "The content of a message is not kept after sending (outbox.keepContent)"
	switch {
	case r.state == resultCancelled:
		why = "The content of a message that was cancelled is not kept"
	case r.state != resultSent:
		why = "The content of a message that was not sent is not kept after its end"
	case o.KeepContent > 0:
		why = "The content of this message is not kept any more: its time after sending is over " +
			"(outbox.keepContent), or it was deleted before"
	}
	return fault.New(fault.NotFound, ContentNotKept, "%s", why)
}
