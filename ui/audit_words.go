package ui

import (
	"cmp"
	"strings"

	"github.com/postroom/postroom/api"
)

// auditVerbs are the last parts of routes and what happened to the object.
var auditVerbs = map[string]string{
	"add": "added", "archive": "archived", "ask": "asked to confirm", "cancel": "cancelled", "copy": "copied",
	"delete": "deleted", "erase": "erased", "import": "imported", "leave": "unsubscribed",
	"link": "given a sign-in link", "now": "sent", "off": "switched off", "on": "switched on", "pause": "paused",
	"password": "given a new password", "recount": "recounted", "redeliver": "delivered again",
	"remove": "removed", "replay": "replayed", "reschedule": "rescheduled", "resend": "sent again",
	"restore": "restored", "resume": "resumed", "retry": "retried", "rotate": "replaced",
	"secret": "given a new secret", "send": "sent", "sender": "given a sender address",
	"sessions": "signed out everywhere", "settle": "settled", "stop": "stopped", "subscribe": "subscribed",
	"test": "tested", "ticked": "changed", "totp": "given a new second factor", "verify": "verified",
	"wake": "resumed", "webhook": "given a provider webhook", "winner": "given a winner",
}

// auditNouns are kinds of objects as the log names them, where the kind alone isn't clear.
var auditNouns = map[string]string{"endpoint": "webhook endpoint", "person": "user", "digestKind": "category",
	"digestRecipient": "digest recipient", "digestRun": "digest run", "dkim": "DKIM key",
	"documents": "search index"}

// auditSentence says what an entry records.
func auditSentence(e api.AuditEntry) string {
	who := cmp.Or(e.Who.Name, clip(e.Who.TokenID, 12), e.Who.Kind)
	method, route, isRoute := strings.Cut(e.Action, " ")
	switch {
	case e.Action == "login":
		return who + " signed in"
	case e.Action == "logout":
		return who + " signed out"
	case !isRoute || !strings.HasPrefix(route, "/"):
		return who + ": " + e.Action
	case e.Object == nil && e.Result == api.AuditRefused:
		return who + " sent a request that was refused"
	case e.Object == nil:
		return who + " sent a request"
	}
	noun := cmp.Or(auditNouns[e.Object.Kind], e.Object.Kind)
	if e.Object.ID != "" {
		noun += " " + clip(e.Object.ID, 60)
	}
	if e.Object.Account != "" && e.Object.Kind != "account" {
		noun += " of " + e.Object.Account
	}
	verb, was := auditVerb(method, route), " was "
	switch e.Result {
	case api.AuditBegun:
		was = " may have been "
	case api.AuditRefused, api.AuditFailed:
		was = " was not "
	}
	if e.Object.Kind == "settings" {
		was = strings.Replace(was, "was", "were", 1)
	}
	return strings.ToUpper(noun[:1]) + noun[1:] + was + verb + " by " + who
}

// auditVerb returns what a request does to its object.
func auditVerb(method, route string) string {
	last := route[strings.LastIndexAny(route, "/:")+1:]
	if verb := auditVerbs[last]; verb != "" {
		return verb
	}
	switch {
	case method == "DELETE":
		return "deleted"
	case method == "POST" && !strings.HasSuffix(last, "}") && last != "settings":
		return "added"
	}
	return "changed"
}
