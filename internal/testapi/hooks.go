package testapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hooks describes how a provider's webhooks are listed, created and changed.
type hooks struct {
	list, create string // paths; an empty list: it is asked for in another way
	change       string // method that changes one; empty: PUT
	id, url      string // names of fields
	fields       string // those that a request may have
	number       bool   // ids are numbers
	listed       func(*call, []object) any
	created      func(*call, object) answer
	changed      func(*call, object) answer // nil if they are changed in another way
	wrong        func(*call, object) string // what is wrong with a request besides
	refusal      func(text string) answer
}

// routes returns the operations on webhooks, and others.
func (h hooks) routes(others ...route) []route {
	one, change := h.create+"/{}", h.change
	if change == "" {
		change = http.MethodPut
	}
	if h.list != "" {
		others = append(others, route{"GET", h.list, func(c *call) answer {
			return answer{200, nil, h.listed(c, c.allHooks())}
		}})
	}
	others = append(others, route{"POST", h.create, func(c *call) answer {
		hook, refusal, ok := h.read(c)
		if !ok {
			return refusal
		}
		if hook[h.url] == nil {
			return h.refusal(h.url + " is required")
		}
		hook[h.id] = uuid()
		c.mu.Lock()
		defer c.mu.Unlock()
		if h.number {
			hook[h.id] = len(c.hooks) + 1
		}
		c.Server.hooks = append(c.Server.hooks, hook)
		return h.created(c, hook)
	}})
	if h.changed == nil {
		return others
	}
	return append(others, route{change, one, func(c *call) answer {
		hook, refusal, ok := h.read(c)
		if !ok {
			return refusal
		}
		changed := c.changeHook(h.id, c.args[len(c.args)-1], hook)
		if changed == nil {
			return c.provider.lost(c, http.StatusNotFound)
		}
		return h.changed(c, changed)
	}})
}

// read reads a request, and refuses fields that the provider doesn't have.
func (h hooks) read(c *call) (hook object, refusal answer, ok bool) {
	if err := c.decode(&hook, true); err != nil {
		return nil, h.refusal(err.Error()), false
	}
	for name := range hook {
		if !slices.Contains(strings.Fields(h.fields), name) {
			return nil, h.refusal("unknown field " + name), false
		}
	}
	if address, given := hook[h.url].(string); given {
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			return nil, h.refusal("not a URL: " + address), false
		}
	}
	if h.wrong != nil {
		if text := h.wrong(c, hook); text != "" {
			return nil, h.refusal(text), false
		}
	}
	return hook, answer{}, true
}

func (s *Server) allHooks() []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []object{} // an empty list isn't null
	for _, h := range s.hooks {
		all = append(all, maps.Clone(h))
	}
	return all
}

// changeHook lays fields over a webhook, and returns it; nil if there is none of this id.
func (s *Server) changeHook(name, id string, fields object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hooks {
		if fmt.Sprint(h[name]) == id {
			maps.Copy(h, fields)
			return maps.Clone(h)
		}
	}
	return nil
}

// Webhooks returns the webhooks that were created, with the provider's own names of fields.
func (s *Server) Webhooks() []map[string]any { return s.allHooks() }

// AddWebhook adds one that somebody else created.
func (s *Server) AddWebhook(hook map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, hook)
}

// shown returns webhooks in an object, without fields that a list doesn't have.
func shown(name string, hidden ...string) func(*call, []object) any {
	return func(_ *call, all []object) any {
		for _, h := range all {
			for _, field := range hidden {
				delete(h, field)
			}
		}
		return object{name: all}
	}
}

var postmarkHooks = hooks{list: "/webhooks", create: "/webhooks", id: "ID", url: "Url", number: true,
	fields: "Url MessageStream HttpAuth HttpHeaders Triggers",
	listed: func(c *call, all []object) any {
		stream := c.r.URL.Query().Get("MessageStream")
		return object{"Webhooks": slices.DeleteFunc(all, func(h object) bool {
			return stream != "" && h["MessageStream"] != stream
		})}
	},
	created: func(_ *call, h object) answer { return answer{200, nil, h} },
	changed: func(_ *call, h object) answer { return answer{200, nil, h} },
	wrong: func(c *call, h object) string {
		if _, stream := h["MessageStream"]; stream && c.r.Method == http.MethodPut {
			return "The MessageStream of a webhook can't be changed."
		}
		return ""
	},
	refusal: func(text string) answer { return postmarkError(422, 600, text) },
}

var resendHooks = hooks{list: "/webhooks", create: "/webhooks", change: http.MethodPatch, id: "id",
	url: "endpoint", fields: "endpoint events status", listed: shown("data", "signing_secret"),
	created: func(c *call, h object) answer {
		h["status"], h["signing_secret"] = "enabled", c.o.Secret
		return answer{201, nil, object{"object": "webhook", "id": h["id"], "signing_secret": c.o.Secret}}
	},
	changed: func(_ *call, h object) answer {
		return answer{200, nil, object{"object": "webhook", "id": h["id"]}}
	},
	refusal: func(text string) answer { return resendError(422, "validation_error", text) },
}

func resendHook(c *call) answer {
	if h := c.changeHook("id", c.args[0], nil); h != nil {
		return answer{200, nil, h}
	}
	return resendError(404, "not_found", "Webhook not found")
}

var sendgridHooks = hooks{list: "/v3/user/webhooks/event/settings/all", change: http.MethodPatch,
	create: "/v3/user/webhooks/event/settings", id: "id", url: "url", listed: shown("webhooks"),
	fields: "enabled url group_resubscribe group_unsubscribe delivered spam_report bounce unsubscribe processed " +
		"open click dropped deferred account_status_change friendly_name",
	created: func(_ *call, h object) answer {
		h["public_key"] = ""
		return answer{http.StatusCreated, nil, h}
	},
	changed: func(_ *call, h object) answer { return answer{200, nil, h} },
	refusal: func(text string) answer { return sendgridError(400, text) },
}

// sendgridSigned has a webhook be signed, or not.
func sendgridSigned(c *call) answer {
	var wish struct{ Enabled bool }
	if c.decode(&wish, false) != nil {
		return sendgridError(400, "enabled is required")
	}
	key := ""
	if wish.Enabled {
		key = c.VerificationKey()
	}
	if c.changeHook("id", c.args[0], object{"public_key": key}) == nil {
		return sendgridError(404, "webhook not found")
	}
	return answer{200, nil, object{"id": c.args[0], "public_key": key}}
}

var mailjetHooks = hooks{list: "/v3/REST/eventcallbackurl", create: "/v3/REST/eventcallbackurl", id: "ID",
	url: "Url", number: true, fields: "EventType IsBackup Status Url Version",
	listed: func(_ *call, all []object) any {
		list := []any{}
		for _, h := range all {
			list = append(list, h)
		}
		return mailjetList(list)
	},
	created: func(_ *call, h object) answer { return answer{201, nil, mailjetList([]any{h})} },
	changed: func(_ *call, h object) answer { return answer{200, nil, mailjetList([]any{h})} },
	wrong: func(c *call, hook object) string {
		if c.r.Method == http.MethodPut {
			return ""
		}
		for _, h := range c.allHooks() {
			if h["EventType"] == hook["EventType"] && h["IsBackup"] == hook["IsBackup"] {
				return "A resource with the EventType already exists."
			}
		}
		return ""
	},
	refusal: func(text string) answer { return mailjetError("mj-0003", text) },
}

var sparkpostHooks = hooks{list: "/api/v1/webhooks", create: "/api/v1/webhooks", id: "id", url: "target",
	fields: "name target events active auth_type auth_credentials custom_headers",
	listed: shown("results", "auth_credentials"),
	created: func(_ *call, h object) answer {
		return answer{200, nil, object{"results": object{"id": h["id"]}}}
	},
	changed: func(_ *call, h object) answer {
		return answer{200, nil, object{"results": object{"id": h["id"]}}}
	},
	wrong: func(_ *call, h object) string {
		if h["auth_type"] == "basic" && h["auth_credentials"] == nil {
			return "auth_credentials are required"
		}
		return ""
	},
	refusal: func(text string) answer {
		return sparkpostError(422, "1300", "invalid data format/type", text)
	},
}

var brevoHooks = hooks{list: "/v3/webhooks", create: "/v3/webhooks", id: "id", url: "url", number: true,
	fields:  "url description events type channel domain batched auth headers",
	listed:  shown("webhooks", "auth"),
	created: func(_ *call, h object) answer { return answer{201, nil, object{"id": h["id"]}} },
	changed: func(*call, object) answer { return answer{http.StatusNoContent, nil, ""} },
	wrong: func(c *call, h object) string {
		if _, typed := h["type"]; typed && c.r.Method == http.MethodPut {
			return "type can't be changed"
		}
		return ""
	},
	refusal: func(text string) answer { return brevoError(400, "invalid_parameter", text) },
}

var mandrillHooks = hooks{create: "/api/1.0/webhooks/add.json", id: "id", url: "url", number: true,
	fields: "key url description events",
	created: func(c *call, h object) answer {
		delete(h, "key")
		h["auth_key"] = c.o.Secret
		return answer{200, nil, h}
	},
	refusal: func(text string) answer { return mandrillError(-2, "ValidationError", text) },
}

func mandrillListHooks(c *call) answer { return answer{200, nil, c.allHooks()} }

func mandrillChangeHook(c *call) answer {
	var hook object
	if c.decode(&hook, true) != nil || hook["id"] == nil {
		return mandrillError(-2, "ValidationError", "You must specify a id value")
	}
	id := fmt.Sprint(hook["id"])
	delete(hook, "key")
	delete(hook, "id")
	if h := c.changeHook("id", id, hook); h != nil {
		return answer{200, nil, h}
	}
	return mandrillError(1, "Unknown_Webhook", "Unknown webhook")
}

// mailgunWebhooks are the webhooks of a domain: up to three addresses for each event.
type mailgunWebhooks struct{}

var mailgunHooks mailgunWebhooks

func (mailgunWebhooks) routes(others ...route) []route {
	return append(others,
		route{"GET", "/v3/domains/{}/webhooks", mailgunDomain(func(c *call) any {
			all := object{}
			for _, h := range c.allHooks() {
				all[fmt.Sprint(h["id"])] = object{"urls": h["urls"]}
			}
			return object{"webhooks": all}
		})},
		route{"POST", "/v3/domains/{}/webhooks", func(c *call) answer { return c.mailgunHook("") }},
		route{"PUT", "/v3/domains/{}/webhooks/{}", func(c *call) answer { return c.mailgunHook(c.args[1]) }})
}

// mailgunHook creates the webhook of an event, or replaces its addresses.
func (c *call) mailgunHook(event string) answer {
	form, err := url.ParseQuery(string(c.body))
	urls := form["url"]
	created := event == ""
	if created {
		event = form.Get("id")
	}
	known := slices.Contains(strings.Fields("accepted clicked opened unsubscribed delivered permanent_fail "+
		"temporary_fail complained"), event)
	switch {
	case c.args[0] != c.o.Domain:
		return mailgunError(404, "Domain not found: "+c.args[0])
	case err != nil || len(urls) == 0 || len(urls) > 3 || !known:
		return mailgunError(400, "id or url is invalid")
	case created == (c.changeHook("id", event, nil) != nil):
		return mailgunError(map[bool]int{true: 400, false: 404}[created], "Webhook exists already, or not yet")
	case created:
		c.AddWebhook(object{"id": event, "urls": urls})
	default:
		c.changeHook("id", event, object{"urls": urls})
	}
	return answer{200, nil, object{"message": "Webhook has been saved", "webhook": object{"urls": urls}}}
}

// sesHooks are the event destinations of configuration sets.
var sesHooks = []route{
	{"GET", "/v2/email/configuration-sets/{}/event-destinations", func(c *call) answer {
		return answer{200, nil, object{"EventDestinations": c.allHooks()}}
	}},
	{"POST", "/v2/email/configuration-sets/{}/event-destinations", func(c *call) answer {
		var m struct {
			EventDestinationName string
			EventDestination     object
		}
		if c.decode(&m, false) != nil || m.EventDestinationName == "" || m.EventDestination == nil {
			return sesError(400, "BadRequestException", "EventDestinationName and EventDestination are required.")
		}
		if c.changeHook("Name", m.EventDestinationName, nil) != nil {
			return sesError(400, "AlreadyExistsException", "Event destination exists.")
		}
		m.EventDestination["Name"] = m.EventDestinationName
		c.AddWebhook(m.EventDestination)
		return answer{200, nil, object{}}
	}},
	{"PUT", "/v2/email/configuration-sets/{}/event-destinations/{}", func(c *call) answer {
		var m struct{ EventDestination object }
		if c.decode(&m, false) != nil || c.changeHook("Name", c.args[1], m.EventDestination) == nil {
			return sesError(404, "NotFoundException", "Event destination does not exist.")
		}
		return answer{200, nil, object{}}
	}},
}

// SpoilWebhook takes a field from a webhook, as a person does at the console.
func (s *Server) SpoilWebhook(n int, field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hooks[n], field)
}
