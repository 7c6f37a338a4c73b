package alerts

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// The alerts. Their conditions are in checks.go.
const (
	queueAge       = "queueAge"
	queuePaused    = "queuePaused"
	mailFails      = "mailFails"
	accountTrouble = "accountTrouble"
	outboxFull     = "outboxFull"
	redisMemory    = "redisMemory"
	redisEvicts    = "redisEvicts"
	redisForgets   = "redisForgets"
	redisAway      = "redisAway"
	relayAway      = "relayAway"
	recordsRefused = "recordsRefused"
	bounceRate     = "bounceRate"
	complaintRate  = "complaintRate"
	auditBroken    = "auditBroken"
	campaignHeld   = "campaignHeld"
	digestsLate    = "digestsLate"
	webhookFailing = "webhookFailing"
	webhookOff     = "webhookOff"
)

// names are all alerts.
var names = slices.Sorted(maps.Keys(remedies))

// playbooksPath is the page of the playbooks. An alert's link has the id of its section.
const playbooksPath = "/playbooks"

// remedy is how to react to an alert.
type remedy struct {
	section string // heading in docs/playbooks.md
	step    api.WhyStep
}

// Remedies that alerts share. Problems of Redis can only be fixed on its machine.
var (
	fixRedis = remedy{"redis-is-away-full-or-forgetful", step("Show the state of Redis", "doctor", "/status")}
	seeRates = remedy{"bounces-and-complaints", step("Find the messages", "rates --by tag",
		"/rates?by=tag&days=1")}
	seeEndpoints = step("Show the endpoints", "webhook list", "/webhooks")
)

// remedies are the remedies for all alerts.
var remedies = map[string]remedy{
	queueAge:    {"the-queue-grows", step("Show the queue", "queue", "/outbox?state=waiting")},
	queuePaused: {"the-queue-grows", resume("")},
	mailFails: {"mail-fails",
		step("Show failed messages", "outbox list --state failed", "/outbox?state=failed")},
	accountTrouble: {"an-account-cant-log-in", step("Show the accounts", "account list", "/accounts")},
	outboxFull:     {"the-queue-grows", step("Show waiting messages", "outbox list", "/outbox")},
	redisMemory:    fixRedis,
	redisEvicts:    fixRedis,
	redisForgets:   fixRedis,
	redisAway:      fixRedis,
	relayAway:      {"a-relay-rests", step("Show the relay", "gateway list", "/gateways")},
	recordsRefused: {"records-are-refused", fixRedis.step},
	bounceRate:     seeRates,
	complaintRate:  seeRates,
	auditBroken: {"the-audit-log-was-tampered-with", step("Show the audit log", "audit "+
		"--verify", "/audit")},
	campaignHeld:   {"a-campaign-is-held", step("Show the campaigns", "campaign list", "/campaigns")},
	webhookFailing: {"a-webhook-endpoint-fails", seeEndpoints},
	webhookOff:     {"a-webhook-endpoint-is-switched-off", seeEndpoints},
	digestsLate:    {"digests-are-late", step("Show the digests", "digest", "/digests")},
}

// step returns something to do: a command of Postroom, and the path of a page.
func step(text, command, page string) api.WhyStep {
	return api.WhyStep{Text: text, Command: strings.TrimSpace("postroom " + command), Page: page}
}

// resume returns the step that ends the pause of a queue.
func resume(queue string) api.WhyStep {
	return step("Resume the queue", "queue resume "+queue, queuePage(queue, "/outbox"))
}

// queuePage returns the page of the work of a queue; mail is for queues of mail.
func queuePage(queue, mail string) string {
	switch queue {
	case "notify":
		return "/webhooks"
	case "digests":
		return "/digests"
	case "documents":
		return "/status"
	}
	return mail
}

// explain adds to an alert what to do about it. It knows nothing to do about an alert of another version.
func explain(a api.Alert) api.OverviewAlert {
	out := api.OverviewAlert{Alert: a, Playbook: playbooksPath, Do: []api.WhyStep{}}
	r, known := remedies[a.Alert]
	if !known {
		return out
	}
	out.Playbook += "#" + r.section
	s := r.step
	switch kind, id, _ := strings.Cut(a.Queue, ":"); {
	case a.Alert == queuePaused:
		s = resume(a.Queue)
	case a.Alert == queueAge:
		s.Page = queuePage(a.Queue, s.Page)
	case a.Alert == relayAway && kind == "relay":
		s.Command, s.Page = "postroom account verify "+id, "/accounts/"+id
	case a.Alert == relayAway:
		s.Command, s.Page = "postroom gateway verify "+id, "/gateways/"+id
	case (a.Alert == bounceRate || a.Alert == complaintRate) && a.Queue != "":
		s.Page = "/rates?by=gateway&days=1&name=" + url.QueryEscape(a.Queue)
	}
	out.Do = append(out.Do, s)
	return out
}
