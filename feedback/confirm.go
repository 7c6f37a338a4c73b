package feedback

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/provider"
)

// confirmTimeout is shorter than the 15 seconds after which SNS gives up on our answer.
const confirmTimeout = 10 * time.Second

// confirmingClient returns the client that confirms an SNS subscription. The URL came in a request. The
// request was signed and the host is Amazon's, but a name server may resolve it to anything. So only public
// addresses are dialed, no redirect is followed, and no proxy of the environment is used.
func confirmingClient(transport http.RoundTripper) *http.Client {
	client := dialing.New(dialing.Options{}).Client(dialing.HTTP{Timeout: confirmTimeout})
	client.Transport = cmp.Or(transport, client.Transport)
	return client
}

// confirm fetches the URL of a confirmation. Its request was proven, and its topic is one that the operator
// named.
func (f *Feedback) confirm(ctx context.Context, name provider.Name, c provider.Confirmation) (
	api.FeedbackReceipt, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return api.FeedbackReceipt{}, fault.Wrap(err, fault.Invalid, "ProviderBody",
			"The URL that confirms the subscription is invalid")
	}
	answer, err := f.confirmer.Do(request)
	if err == nil {
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", answer.StatusCode)
		}
	}
	if err != nil {
		return api.FeedbackReceipt{}, fault.Wrap(err, fault.Unavailable, "SubscriptionNotConfirmed",
			"The subscription could not be confirmed; try again later")
	}
	f.log.Info("confirmed a subscription", "provider", name, "topic", c.Topic)
	return api.FeedbackReceipt{Confirmed: true}, nil
}
