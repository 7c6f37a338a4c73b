package feedback

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/provider"
)

// confirmTimeout is shorter than the 15 seconds after which SNS gives up on our answer.
const confirmTimeout = 10 * time.Second

// confirmingClient returns the client that confirms an SNS subscription. The URL came in a request. The
// request was signed and the host is Amazon's, but a name server may resolve it to anything. So only public
// addresses are dialed, no redirect is followed, and no proxy of the environment is used.
func confirmingClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		guard := ssrf.New(ssrf.WithPorts(443))
		dialer := net.Dialer{Timeout: 5 * time.Second, Control: func(network, address string,
			c syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%s is no address: %w", address, err)
			}
			return guard.SafeAddrPort(target)
		}}
		transport = &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
			DisableKeepAlives: true}
	}
	return &http.Client{
		Transport: transport, Timeout: confirmTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// confirm fetches the URL of a confirmation. Its request was proven, and its topic is one that the operator
// named.
func (f *Feedback) confirm(ctx context.Context, name provider.Name, c provider.Confirmation) (
	api.FeedbackReceipt, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return api.FeedbackReceipt{}, fault.Wrap(err, fault.Invalid, "ProviderBody",
			"The address that confirms the subscription is not one")
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
