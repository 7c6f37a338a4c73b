package api

import (
	"encoding/json"
	"time"
)

// EndpointRequest describes a webhook endpoint: a URL and its events.
type EndpointRequest struct {
	URL         string            `json:"url" minLength:"1" maxLength:"2048"`
	Events      []string          `json:"events,omitempty" doc:"Event types; all when absent or *"`
	Accounts    []string          `json:"accounts,omitempty" doc:"Accounts; all when absent"`
	Headers     map[string]string `json:"headers,omitempty" doc:"Added to every request; values are masked in answers"`
	Secret      string            `json:"secret,omitempty" maxLength:"256" doc:"whsec_ and base64 of 24 to 64 bytes; made when absent. A new one keeps the old one valid for 24 hours"`
	RateLimit   int               `json:"rateLimit,omitempty" minimum:"1" maximum:"10000" doc:"Requests a second; no limit when absent"`
	Enabled     *bool             `json:"enabled,omitempty" doc:"true when absent"`
	Description string            `json:"description,omitempty" maxLength:"1024"`
}

// Endpoint is a webhook endpoint as in responses. Secret is complete in the response that creates it, masked
// in others.
type Endpoint struct {
	ID             string            `json:"id"`
	URL            string            `json:"url"`
	Events         []string          `json:"events"`
	Accounts       []string          `json:"accounts"`
	Headers        map[string]string `json:"headers,omitempty"`
	Secret         string            `json:"secret"`
	RateLimit      int               `json:"rateLimit,omitempty"`
	Enabled        bool              `json:"enabled"`
	Description    string            `json:"description,omitempty"`
	Created        time.Time         `json:"created"`
	Updated        time.Time         `json:"updated"`
	DisabledReason string            `json:"disabledReason,omitempty" doc:"Why Postroom switched it off"`
	FailingSince   *time.Time        `json:"failingSince,omitempty" doc:"Since when no delivery has succeeded"`
	Deliveries     int               `json:"deliveries" doc:"Deliveries that were made for it, those of replays among them"`
}

// EndpointPage is a page of endpoints.
type EndpointPage struct {
	Total     int        `json:"total"`
	Page      int        `json:"page"`
	Pages     int        `json:"pages"`
	Endpoints []Endpoint `json:"endpoints"`
}

func (p EndpointPage) rows() ([]Endpoint, string, int) { return p.Endpoints, "", p.Pages }

// WebhookRoute is a webhook endpoint with EmailEngine's field names.
type WebhookRoute struct {
	ID            string               `json:"id"`
	Name          string               `json:"name" doc:"Its description, or the host of its URL"`
	Description   string               `json:"description"`
	Created       time.Time            `json:"created"`
	Updated       time.Time            `json:"updated"`
	Enabled       bool                 `json:"enabled"`
	TargetURL     string               `json:"targetUrl"`
	TCount        int                  `json:"tcount" doc:"Deliveries that were made for it"`
	Error         *WebhookRouteError   `json:"webhookErrorFlag" doc:"null: deliveries succeed"`
	CustomHeaders []CustomHeader       `json:"customHeaders" doc:"Values are masked"`
	Content       *WebhookRouteContent `json:"content,omitempty" doc:"Of a single route only"`
}

// WebhookRouteError is why deliveries of a route fail.
type WebhookRouteError struct {
	Message string     `json:"message"`
	Created *time.Time `json:"created,omitempty" doc:"Since when"`
}

// WebhookRouteContent has the functions of a route of EmailEngine. Postroom has none: both are null. The
// events and accounts of the endpoint select what it gets.
type WebhookRouteContent struct {
	Fn  *string `json:"fn"`
	Map *string `json:"map"`
}

// WebhookRoutePage is a page of webhook routes.
type WebhookRoutePage struct {
	Total    int            `json:"total"`
	Page     int            `json:"page"`
	Pages    int            `json:"pages"`
	Webhooks []WebhookRoute `json:"webhooks"`
}

func (p WebhookRoutePage) rows() ([]WebhookRoute, string, int) { return p.Webhooks, "", p.Pages }

// Delivery is the delivery of one event to one endpoint.
type Delivery struct {
	ID          string          `json:"id"`
	Endpoint    string          `json:"endpoint"`
	EventID     string          `json:"eventId"`
	Event       string          `json:"event"`
	Account     string          `json:"account,omitempty"`
	QueueID     string          `json:"queueId,omitempty" doc:"The message the event is about"`
	Status      string          `json:"status" enum:"pending,delivered,failed,skipped"`
	Attempts    int             `json:"attempts"`
	StatusCode  int             `json:"statusCode,omitempty" doc:"Of the last answer"`
	Latency     int             `json:"latency,omitempty" doc:"Of the last request, in milliseconds"`
	Response    string          `json:"response,omitempty" doc:"Beginning of the last answer"`
	Error       string          `json:"error,omitempty"`
	Created     time.Time       `json:"created"`
	LastAttempt *time.Time      `json:"lastAttempt,omitempty"`
	NextAttempt TimeOrFalse     `json:"nextAttempt"`
	Body        json.RawMessage `json:"body,omitempty" doc:"What is sent (single delivery only)"`
	Explanation *Explanation    `json:"explanation,omitempty" doc:"Where the last request failed: what that means, and what to do about it"`
}

// DeliveryPage is a page of deliveries, newest first.
type DeliveryPage struct {
	Total      int        `json:"total"`
	Page       int        `json:"page"`
	Pages      int        `json:"pages"`
	Partial    bool       `json:"partial,omitempty" doc:"Of a search: only the newest 2,000 deliveries were searched, and there are older ones"`
	Deliveries []Delivery `json:"deliveries"`
}

func (p DeliveryPage) rows() ([]Delivery, string, int) { return p.Deliveries, "", p.Pages }

// DeliveryQuery selects deliveries of an endpoint.
type DeliveryQuery struct {
	Q        string // only those of messages that SearchDocuments finds; empty: all
	Page     int    // from 0
	PageSize int    // 0: 20
}

// EndpointReplay selects the events to send again.
type EndpointReplay struct {
	Since time.Time
}

// EndpointTested is the result of a test delivery.
type EndpointTested struct {
	Success    bool   `json:"success"`
	StatusCode int    `json:"statusCode,omitempty"`
	Latency    int    `json:"latency" doc:"Milliseconds"`
	Response   string `json:"response,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Redelivered is the response to a redelivery.
type Redelivered struct {
	ID string `json:"id" doc:"The new delivery"`
}

// Replayed is the response to the replay of an endpoint's events.
type Replayed struct {
	Replayed int `json:"replayed" doc:"Events queued again for this endpoint"`
}

// Deleted is the response to a deletion.
type Deleted struct {
	Deleted bool `json:"deleted"`
}
