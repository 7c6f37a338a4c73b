// Package apiadmin does at a provider's API what you would do at the provider's console. It creates a
// gateway's webhook, lists sender domains, and reads the suppression list and the events.
//
// It changes nothing at a provider but the one webhook whose address it is given, and it deletes nothing. It
// repeats no request, and follows no address that an answer names to another host: the key would go with it.
// A provider that lacks a function is [ErrLacking]; whatever else fails is an *smtpsend.Error.
package apiadmin

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// ErrLacking is the error of a function that a provider's API doesn't have.
var ErrLacking = errors.New("the provider's API has no such function")

// Client speaks to the APIs of providers. It is safe for concurrent use.
type Client struct {
	sender *apisend.Sender

	// Wait waits before a gateway's list is read again, for tests; nil waits by the clock
	Wait func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	turns map[string]time.Time // when the next request about a list may leave, by gateway
}

// New returns a client whose requests go over the connections of a sender.
func New(s *apisend.Sender) *Client { return &Client{sender: s} }

// call makes a request, and reads the JSON of its answer into a value, unless that is nil.
func (c *Client) call(ctx context.Context, t apisend.Target, q apisend.Call, into any) error {
	answer, err := c.sender.Call(ctx, t, q)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return strange(notTheAPI)
	}
	return nil
}

const notTheAPI = "the answer isn't from the provider's API"

// strange is the error of an answer that isn't what the provider documents.
func strange(text string) error {
	return &smtpsend.Error{Protocol: "http", Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft,
		Scope: smtpsend.ScopeAccount, Err: errors.New(text)}
}

// after returns the path of the next page, which an answer names as a whole URL or as a path. It is "" if
// there is none, or if it leads to another host.
func after(t apisend.Target, next string) string {
	if next == "" || strings.HasPrefix(next, "/") && !strings.HasPrefix(next, "//") {
		return next
	}
	u, err := url.Parse(next)
	base, wrong := url.Parse(t.Base())
	if err != nil || wrong != nil || u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil {
		return ""
	}
	return strings.TrimPrefix(u.RequestURI(), strings.TrimSuffix(base.Path, "/"))
}
