package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/webhooks"
)

// askWebhooks judges the endpoints without a success.
func (w *Watch) askWebhooks(ctx context.Context, _ time.Time) ([]finding, error) {
	if w.opts.WebhookFailing <= 0 {
		return nil, nil
	}
	failing, err := w.failing(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{judgeWebhooks(failing, w.opts.WebhookFailing)}, nil
}

// judgeWebhooks judges from the first to the last failed attempt: one event that an endpoint refused does not
// count for longer because no other came.
func judgeWebhooks(failing []webhooks.Failure, most time.Duration) finding {
	var ids []string
	var longest time.Duration
	for _, f := range failing {
		failed := f.Last.Sub(f.Since)
		if longest = max(longest, failed); failed >= most {
			ids = append(ids, f.Endpoint)
		}
	}
	return finding{
		alert: webhookFailing, wrong: len(ids) > 0, value: longest.Seconds(), threshold: most.Seconds(),
		text: fmt.Sprintf("These webhook endpoints took no event for up to %s: %s. Their events wait, and are given up "+
			"after webhooks.attempts. See the answers with postroom webhook deliveries ID.",
			longest.Truncate(time.Second), some(ids)),
	}
}
