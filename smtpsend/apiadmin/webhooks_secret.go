package apiadmin

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/smtpsend/apisend"
)

// These providers sign nothing: their webhooks carry a secret of ours.

// tokenHeader is the header with the secret, and hookUser the user of a secret that is a password.
const tokenHeader, hookUser = "X-Webhook-Token", "postroom"

type postmarkHook struct {
	ID            int64 `json:",omitempty"`
	Url           string
	MessageStream string `json:",omitempty"`
	HttpHeaders   []postmarkField
	Triggers      map[string]postmarkTrigger
}

type postmarkField struct{ Name, Value string }

type postmarkTrigger struct{ Enabled bool }

// postmarkTriggers are the events that Postroom reads.
var postmarkTriggers = []string{"Delivery", "Bounce", "SpamComplaint", "SubscriptionChange"}

func postmarkStream(t apisend.Target) string {
	if t.Stream == "" {
		return "outbound"
	}
	return t.Stream
}

func findPostmark(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Webhooks []postmarkHook }
	err := c.call(ctx, t, apisend.Call{Path: "/webhooks?MessageStream=" + url.QueryEscape(postmarkStream(t))},
		&all)
	for _, h := range all.Webhooks {
		if !sameAddress(h.Url, w.url) {
			continue
		}
		p := present{id: decimal(h.ID), right: true, state: h.HttpHeaders}
		for _, name := range postmarkTriggers {
			p.right = p.right && h.Triggers[name].Enabled
		}
		for _, f := range h.HttpHeaders {
			if strings.EqualFold(f.Name, tokenHeader) {
				p.secret = f.Value
			}
		}
		p.right = p.right && p.secret == w.secret
		return p, nil
	}
	return present{}, err
}

func putPostmark(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := postmarkHook{Url: w.url, HttpHeaders: []postmarkField{{tokenHeader, w.secret}},
		Triggers: map[string]postmarkTrigger{}}
	for _, name := range postmarkTriggers {
		h.Triggers[name] = postmarkTrigger{true}
	}
	q := apisend.Call{Path: "/webhooks", Body: &h}
	if p.id == "" {
		h.MessageStream = postmarkStream(t)
	} else {
		q.Method, q.Path = http.MethodPut, "/webhooks/"+p.id
	}
	return w.secret, c.call(ctx, t, q, nil)
}

type mailjetHook struct {
	ID        int64 `json:",omitempty"`
	EventType string
	IsBackup  bool
	Status    string
	Url       string
	Version   int
}

// mailjetEvents are the events that Postroom reads. Each has one address.
var mailjetEvents = []string{"sent", "bounce", "blocked", "spam", "unsub"}

// mailjetAddress returns the address with the secret: Mailjet has no other place for it.
func mailjetAddress(w wanted) string {
	u, err := url.Parse(w.url)
	if err != nil {
		return w.url
	}
	u.User = url.UserPassword(hookUser, w.secret)
	return u.String()
}

func findMailjet(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Data []mailjetHook }
	if err := c.call(ctx, t, apisend.Call{Path: "/v3/REST/eventcallbackurl?Limit=100"}, &all); err != nil {
		return present{}, err
	}
	p, have := present{}, map[string]mailjetHook{}
	for _, h := range all.Data {
		if !h.IsBackup {
			have[h.EventType] = h
		}
	}
	right := 0
	for _, name := range mailjetEvents {
		h := have[name]
		if !sameAddress(h.Url, w.url) {
			continue
		}
		p.id = "each event has its own"
		if h.Url == mailjetAddress(w) && h.Status != "dead" && h.Version == 2 {
			right++
		}
	}
	if p.state = have; right == len(mailjetEvents) {
		p.right, p.secret = true, w.secret
	}
	return p, nil
}

func putMailjet(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	have, _ := p.state.(map[string]mailjetHook)
	for _, name := range mailjetEvents {
		if h := have[name]; h.ID != 0 && !sameAddress(h.Url, w.url) {
			u, _ := url.Parse(h.Url)
			return "", conflict("another address at %s gets the events %q; Mailjet has one for each. Remove it there",
				u.Host, name)
		}
	}
	for _, name := range mailjetEvents {
		h := mailjetHook{EventType: name, Url: mailjetAddress(w), Version: 2, Status: "alive"}
		q := apisend.Call{Path: "/v3/REST/eventcallbackurl", Body: h}
		if old := have[name]; old.ID != 0 {
			q.Method, q.Path = http.MethodPut, q.Path+"/"+decimal(old.ID)
		}
		if err := c.call(ctx, t, q, nil); err != nil {
			return "", err
		}
	}
	return w.secret, nil
}

type sparkPostHook struct {
	ID          anyID             `json:"id,omitempty"`
	Name        string            `json:"name"`
	Target      string            `json:"target"`
	Events      []string          `json:"events"`
	Active      *bool             `json:"active,omitempty"`
	AuthType    string            `json:"auth_type"`
	Credentials map[string]string `json:"auth_credentials,omitempty"`
}

// sparkPostEvents are the events that Postroom reads.
var sparkPostEvents = []string{"delivery", "delay", "bounce", "out_of_band", "policy_rejection",
	"generation_failure", "generation_rejection", "spam_complaint", "list_unsubscribe", "link_unsubscribe"}

func findSparkPost(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Results []sparkPostHook }
	err := c.call(ctx, t, apisend.Call{Path: "/api/v1/webhooks"}, &all)
	for _, h := range all.Results {
		if sameAddress(h.Target, w.url) {
			p := present{id: string(h.ID), secret: h.Credentials["password"]}
			p.right = hasAll(h.Events, sparkPostEvents) && (h.Active == nil || *h.Active) &&
				(p.secret == "" || p.secret == w.secret)
			return p, nil
		}
	}
	return present{}, err
}

// putSparkPost creates the webhook, or changes it. SparkPost posts an empty batch to a new address, which has
// to be answered with 200: the secret must be stored before.
func putSparkPost(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := sparkPostHook{Name: described, Target: w.url, Events: sparkPostEvents, Active: new(true),
		AuthType: "basic", Credentials: map[string]string{"username": hookUser, "password": w.secret}}
	q := apisend.Call{Path: "/api/v1/webhooks", Body: h}
	if p.id != "" {
		q.Method, q.Path = http.MethodPut, q.Path+"/"+url.PathEscape(p.id)
	}
	return w.secret, c.call(ctx, t, q, nil)
}

type brevoHook struct {
	ID          int64      `json:"id,omitempty"`
	URL         string     `json:"url"`
	Description string     `json:"description,omitempty"`
	Type        string     `json:"type,omitempty"`
	Events      []string   `json:"events"`
	Auth        *brevoAuth `json:"auth,omitempty"`
}

type brevoAuth struct {
	Type  string `json:"type"`
	Token string `json:"token"`
}

// brevoEvents are the events that Postroom reads.
var brevoEvents = []string{"delivered", "deferred", "softBounce", "hardBounce", "blocked", "invalid", "spam",
	"unsubscribed"}

func findBrevo(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Webhooks []brevoHook }
	err := c.call(ctx, t, apisend.Call{Path: "/v3/webhooks?type=transactional"}, &all)
	if status(err) == http.StatusNotFound {
		return present{}, nil // an empty list
	}
	for _, h := range all.Webhooks {
		if sameAddress(h.URL, w.url) {
			p := present{id: decimal(h.ID), right: hasAll(h.Events, brevoEvents)}
			if h.Auth != nil {
				p.secret = h.Auth.Token
				p.right = p.right && p.secret == w.secret
			}
			return p, nil
		}
	}
	return present{}, err
}

func putBrevo(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := brevoHook{URL: w.url, Description: described, Events: brevoEvents, Auth: &brevoAuth{"bearer", w.secret}}
	q := apisend.Call{Path: "/v3/webhooks", Body: &h}
	if p.id == "" {
		h.Type = "transactional"
	} else {
		q.Method, q.Path = http.MethodPut, q.Path+"/"+p.id
	}
	return w.secret, c.call(ctx, t, q, nil)
}
