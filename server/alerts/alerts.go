package alerts

import (
	"context"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
)

// PlaybooksPath is the page of the playbooks. An alert's link has the id of its section.
const PlaybooksPath = "/playbooks"

// remedy is what can be done about an alert.
type remedy struct {
	section string // of docs/playbooks.md
	step    api.WhyStep
}

// remedies are those of all alerts of package alerts.
var remedies = map[string]remedy{
	"queueAge": {"the-queue-grows", api.WhyStep{Text: "See the queue", Command: "postroom queue",
		Page: "/outbox?state=waiting"}},
	"queuePaused": {"the-queue-grows", api.WhyStep{Text: "Resume the queue", Command: "postroom queue resume",
		Page: "/outbox"}},
	"mailFails": {"mail-fails", api.WhyStep{Text: "See what failed",
		Command: "postroom outbox list --state failed", Page: "/outbox?state=failed"}},
	"accountTrouble": {"an-account-cant-log-in", api.WhyStep{Text: "See the accounts",
		Command: "postroom account list", Page: "/accounts"}},
	"outboxFull": {"the-queue-grows", api.WhyStep{Text: "See what waits", Command: "postroom outbox list",
		Page: "/outbox"}},
	"redisMemory":  mendRedis("redis-is-away-full-or-forgetful"),
	"redisEvicts":  mendRedis("redis-is-away-full-or-forgetful"),
	"redisForgets": mendRedis("redis-is-away-full-or-forgetful"),
	"redisAway":    mendRedis("redis-is-away-full-or-forgetful"),
	"relayAway": {"a-relay-rests", api.WhyStep{Text: "See the relay", Command: "postroom gateway list",
		Page: "/gateways"}},
	"recordsRefused": mendRedis("records-are-refused"),
	"bounceRate": {"bounces-and-complaints", api.WhyStep{Text: "See whose mail it is",
		Command: "postroom rates --by tag", Page: "/rates?by=tag&days=1"}},
	"complaintRate": {"bounces-and-complaints", api.WhyStep{Text: "See whose mail it is",
		Command: "postroom rates --by tag", Page: "/rates?by=tag&days=1"}},
	"auditBroken": {"the-audit-log-was-tampered-with", api.WhyStep{Text: "See the audit log",
		Command: "postroom audit --verify", Page: "/audit"}},
	"campaignHeld": {"a-campaign-is-held", api.WhyStep{Text: "See the campaigns",
		Command: "postroom campaign list", Page: "/campaigns"}},
	"webhookFailing": {"a-webhook-endpoint-fails", api.WhyStep{Text: "See the endpoints",
		Command: "postroom webhook list", Page: "/webhooks"}},
	"webhookOff": {"a-webhook-endpoint-is-switched-off", api.WhyStep{Text: "See the endpoints",
		Command: "postroom webhook list", Page: "/webhooks"}},
	"digestsLate": {"digests-are-late", api.WhyStep{Text: "See the digests", Command: "postroom digest",
		Page: "/digests"}},
}

// mendRedis is the remedy of what only the machine of Redis can mend.
func mendRedis(section string) remedy {
	return remedy{section, api.WhyStep{Text: "See the state of Redis", Command: "postroom doctor",
		Page: "/status"}}
}

// alerts fills in the alerts of the instance. An account has none.
func (o *Overview) alerts(ctx context.Context, out *api.Overview) error {
	if out.Account != "" {
		return nil
	}
	on, err := o.Alerts(ctx)
	if err != nil {
		return err
	}
	for _, a := range on {
		r := remedies[a.Alert] // of an alert of another version: none
		one := api.OverviewAlert{Alert: a, Playbook: PlaybooksPath, Do: []api.WhyStep{}}
		if r.section != "" {
			one.Playbook += "#" + r.section
			one.Do = append(one.Do, about(a, r.step))
		}
		out.Alerts = append(out.Alerts, one)
	}
	return nil
}

// about returns the step for an alert that names a queue, a gateway or an account.
func about(a api.Alert, s api.WhyStep) api.WhyStep {
	kind, id, _ := strings.Cut(a.Queue, ":")
	switch {
	case a.Alert == "queuePaused":
		s.Command += " " + a.Queue
		fallthrough
	case a.Alert == "queueAge":
		if page := map[string]string{"notify": "/webhooks", "digests": "/digests"}[a.Queue]; page != "" {
			s.Page = page
		}
	case a.Alert == "relayAway" && kind == "relay":
		s.Command, s.Page = "postroom account verify "+id, "/accounts/"+id
	case a.Alert == "relayAway":
		s.Command, s.Page = "postroom gateway verify "+id, "/gateways/"+id
	case a.Alert == "bounceRate" || a.Alert == "complaintRate":
		if a.Queue != "" {
			s.Page = "/rates?by=gateway&days=1&name=" + url.QueryEscape(a.Queue)
		}
	}
	return s
}
