package apiadmin

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/postroom/postroom/smtpsend/apisend"
)

// These providers sign their webhooks.

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

type resendHook struct {
	ID       string   `json:"id,omitempty"`
	Endpoint string   `json:"endpoint"`
	Events   []string `json:"events"`
	Status   string   `json:"status,omitempty"`
	Secret   string   `json:"signing_secret,omitempty"`
}

// resendEvents are the events that Postroom reads.
var resendEvents = []string{"email.delivered", "email.delivery_delayed", "email.bounced", "email.complained",
	"email.failed", "email.suppressed"}

func findResend(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Data []resendHook }
	if err := c.call(ctx, t, apisend.Call{Path: "/webhooks?limit=100"}, &all); err != nil {
		return present{}, err
	}
	for _, h := range all.Data {
		if !sameAddress(h.Endpoint, w.url) {
			continue
		}
		id := h.ID
		if err := c.call(ctx, t, apisend.Call{Path: "/webhooks/" + url.PathEscape(id)}, &h); err != nil {
			return present{}, err // only this answer has the secret
		}
		return present{id: id, right: h.Status != "disabled" && hasAll(h.Events, resendEvents),
			secret: h.Secret}, nil
	}
	return present{}, nil
}

func putResend(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := resendHook{Endpoint: w.url, Events: resendEvents}
	q := apisend.Call{Path: "/webhooks", Body: &h}
	if p.id != "" {
		h.Status = "enabled"
		q.Method, q.Path = http.MethodPatch, q.Path+"/"+url.PathEscape(p.id)
		return p.secret, c.call(ctx, t, q, nil)
	}
	var made resendHook
	err := c.call(ctx, t, q, &made)
	return made.Secret, err
}

const sendGridHooks = "/v3/user/webhooks/event/settings"

// sendGridEvents are the events that Postroom reads.
var sendGridEvents = []string{"delivered", "deferred", "bounce", "dropped", "spam_report", "unsubscribe",
	"group_unsubscribe"}

func findSendGrid(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct{ Webhooks []map[string]any }
	err := c.call(ctx, t, apisend.Call{Path: sendGridHooks + "/all"}, &all)
	for _, h := range all.Webhooks {
		address, _ := h["url"].(string)
		if !sameAddress(address, w.url) {
			continue
		}
		p := present{right: h["enabled"] == true}
		p.id, _ = h["id"].(string)
		p.secret, _ = h["public_key"].(string)
		for _, name := range sendGridEvents {
			p.right = p.right && h[name] == true
		}
		return p, nil
	}
	return present{}, err
}

// putSendGrid creates the webhook, or changes it. Then it has SendGrid sign: the answer has the key that
// verifies the signatures.
func putSendGrid(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := map[string]any{"enabled": true, "url": w.url}
	for _, name := range sendGridEvents {
		h[name] = true
	}
	q := apisend.Call{Path: sendGridHooks, Body: h}
	if p.id == "" {
		h["friendly_name"] = described
	} else {
		q.Method, q.Path = http.MethodPatch, q.Path+"/"+url.PathEscape(p.id)
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, t, q, &made); err != nil {
		return "", err
	}
	var signed struct {
		Key string `json:"public_key"`
	}
	err := c.call(ctx, t, apisend.Call{Method: http.MethodPatch, Body: map[string]bool{"enabled": true},
		Path: sendGridHooks + "/signed/" + url.PathEscape(made.ID)}, &signed)
	return signed.Key, err
}

// mailgunEvents are the events that Postroom reads. Each has up to three addresses.
var mailgunEvents = []string{"delivered", "temporary_fail", "permanent_fail", "complained", "unsubscribed"}

func mailgunHooks(t apisend.Target) string {
	return "/v3/domains/" + url.PathEscape(t.Domain) + "/webhooks"
}

func findMailgun(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all struct {
		Webhooks map[string]struct{ URLs []string }
	}
	if err := c.call(ctx, t, apisend.Call{Path: mailgunHooks(t)}, &all); err != nil {
		return present{}, err
	}
	lacks := map[string][]string{} // the addresses of the events that don't come here
	for _, name := range mailgunEvents {
		if urls := all.Webhooks[name].URLs; !slices.Contains(urls, w.url) {
			lacks[name] = urls
		}
	}
	p := present{right: len(lacks) == 0, secret: w.secret, state: lacks}
	if len(lacks) < len(mailgunEvents) {
		p.id = "each event has its own"
	}
	return p, nil
}

func putMailgun(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	lacks, _ := p.state.(map[string][]string)
	for _, name := range mailgunEvents {
		if len(lacks[name]) >= 3 {
			return "", conflict("three other addresses get the events %q, and Mailgun permits no more. Remove one "+
				"there", name)
		}
	}
	for _, name := range mailgunEvents {
		others, lacking := lacks[name]
		if !lacking {
			continue
		}
		q := apisend.Call{Path: mailgunHooks(t), Body: url.Values{"id": {name}, "url": {w.url}}}
		if len(others) > 0 { // all of them are replaced
			q = apisend.Call{Method: http.MethodPut, Path: mailgunHooks(t) + "/" + name,
				Body: url.Values{"url": append(slices.Clone(others), w.url)}}
		}
		if err := c.call(ctx, t, q, nil); err != nil {
			return "", err
		}
	}
	return w.secret, nil
}

type mandrillHook struct {
	Key         string   `json:"key,omitempty"` // the account's
	ID          int64    `json:"id,omitempty"`
	URL         string   `json:"url,omitempty"`
	Description string   `json:"description,omitempty"`
	Events      []string `json:"events,omitempty"`
	Secret      string   `json:"auth_key,omitempty"`
}

// mandrillEvents are the events that Postroom reads.
var mandrillEvents = []string{"delivered", "deferral", "hard_bounce", "soft_bounce", "reject", "spam",
	"unsub"}

func mandrillCall(name string, body any) apisend.Call {
	return apisend.Call{Path: "/api/1.0/" + name + ".json", Body: body}
}

func findMandrill(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all []mandrillHook
	err := c.call(ctx, t, mandrillCall("webhooks/list", mandrillHook{Key: t.Key}), &all)
	for _, h := range all {
		if h.URL == w.url { // it signs the address as it was entered
			return present{id: decimal(h.ID), right: hasAll(h.Events, mandrillEvents), secret: h.Secret}, nil
		}
	}
	return present{}, err
}

// putMandrill creates the webhook, or changes it. Mandrill asks for a new address with HEAD first.
func putMandrill(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	h := mandrillHook{Key: t.Key, URL: w.url, Description: described, Events: mandrillEvents}
	name := "webhooks/add"
	if p.id != "" {
		name = "webhooks/update"
		h.ID, _ = strconv.ParseInt(p.id, 10, 64) // it was a number
	}
	var made mandrillHook
	err := c.call(ctx, t, mandrillCall(name, h), &made)
	return made.Secret, err
}

type sesDestinations struct{ EventDestinations []sesDestination }

type sesDestination struct {
	Name               string `json:",omitempty"`
	Enabled            bool
	MatchingEventTypes []string
	SnsDestination     *sesTopic `json:",omitempty"`
}

type sesTopic struct{ TopicArn string }

// sesEvents are the events that Postroom reads.
var sesEvents = []string{"DELIVERY", "DELIVERY_DELAY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE",
	"SUBSCRIPTION"}

func sesHooks(t apisend.Target) string {
	return "/v2/email/configuration-sets/" + url.PathEscape(t.Pool) + "/event-destinations"
}

// findSES looks for the destination that reports to the topic. Whether the address is subscribed to the topic
// is a matter of SNS: Postroom confirms the subscription when SNS asks.
func findSES(c *Client, ctx context.Context, t apisend.Target, w wanted) (present, error) {
	var all sesDestinations
	err := c.call(ctx, t, apisend.Call{Path: sesHooks(t)}, &all)
	for _, d := range all.EventDestinations {
		if d.SnsDestination != nil && d.SnsDestination.TopicArn == w.secret {
			return present{id: d.Name, right: d.Enabled && hasAll(d.MatchingEventTypes, sesEvents),
				secret: w.secret}, nil
		}
	}
	return present{}, err
}

func putSES(c *Client, ctx context.Context, t apisend.Target, w wanted, p present) (string, error) {
	destination := sesDestination{Enabled: true, MatchingEventTypes: sesEvents,
		SnsDestination: &sesTopic{w.secret}}
	q := apisend.Call{Path: sesHooks(t), Body: map[string]any{"EventDestinationName": "postroom",
		"EventDestination": destination}}
	if p.id != "" {
		q = apisend.Call{Method: http.MethodPut, Path: sesHooks(t) + "/" + url.PathEscape(p.id),
			Body: map[string]any{"EventDestination": destination}}
	}
	return w.secret, c.call(ctx, t, q, nil)
}
