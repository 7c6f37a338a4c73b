package ui

// twins are the API requests and the commands that do the same as a page, by the page's template. Forms and
// pages about one object name their own.
var twins = map[string]string{
	"overview":     "GET /v1/overview · postroom overview",
	"outbox":       "GET /v1/outbox · postroom outbox list",
	"log":          "GET /v1/messages · postroom log list",
	"search":       "GET /v1/documents/search · postroom search",
	"why":          "GET /v1/to/{address} · postroom why",
	"replay":       "POST /v1/dead-letters/replay · postroom dead-letter replay",
	"rates":        "GET /v1/rates · postroom rates",
	"suppressions": "GET /v1/suppressions · postroom suppressions list",
	"queues":       "GET /v1/settings/queue/{queue} · postroom queue status",
	"accounts":     "GET /v1/accounts · postroom account list",
	"gateways":     "GET /v1/gateways · postroom gateway list",
	"webhooks":     "GET /v1/webhook-endpoints · postroom webhook list",
	"audit":        "GET /v1/audit · postroom audit",
	"campaigns":    "GET /v1/campaigns · postroom campaign list",
	"lists":        "GET /v1/lists · postroom list list",
	"segments":     "GET /v1/segments · postroom segment list",
	"subscribers":  "GET /v1/subscribers · postroom subscribers list",
	"templates":    "GET /v1/templates · postroom template list",
	"digestruns":   "GET /v1/digests/runs · postroom digest runs",
	"status":       "GET /ready · postroom doctor",
}
