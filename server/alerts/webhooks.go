package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/webhooks"
)

// askWebhooks judges the endpoints without a success, and those that Postroom switched off.
func (w *Watch) askWebhooks(ctx context.Context, _ time.Time) ([]finding, error) {
	failing, err := w.failing(ctx)
	if err != nil {
		return nil, err
	}
	all := []finding{judgeOff(failing)}
	if w.opts.WebhookFailing > 0 {
		all = append(all, judgeWebhooks(failing, w.opts.WebhookFailing))
	}
	return all, nil
}

func judgeOff(failing []webhooks.Failure) finding {
	var off []string
	for _, f := range failing {
		if f.Off != "" {
			off = append(off, fmt.Sprintf("%s (%s)", f.Endpoint, f.Off))
		}
	}
	return finding{
		alert: webhookOff, wrong: len(off) > 0, value: float64(len(off)), threshold: 1,
		text: fmt.Sprintf("Postroom switched these webhook endpoints off, and they get no events: %s. Correct the receiver, "+
			"switch it on with postroom webhook edit ID --on, and send what it missed with postroom webhook replay ID.",
			some(off)),
	}
}

// judgeWebhooks judges from the first to the last failed attempt: one event that an endpoint refused does not
// count for longer because no other came.
func judgeWebhooks(failing []webhooks.Failure, most time.Duration) finding {
	var ids []string
	var longest time.Duration
	for _, f := range failing {
		if f.Off != "" {
			continue
		}
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
