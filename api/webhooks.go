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
	Resting        *EndpointRest     `json:"resting,omitempty" doc:"It failed several times in a row, or asked to wait, and gets no request for now"`
	// until when an earlier secret signs too; nil: none does
	OldSecretUntil *time.Time `json:"oldSecretUntil,omitempty" doc:"Until when requests carry a signature by an earlier secret, too"`
	Deliveries     int        `json:"deliveries" doc:"Deliveries that were made for it, those of replays among them"`
}

// EndpointRest is the pause of an endpoint that fails. Each process has its own; this is the latest one.
type EndpointRest struct {
	Until    time.Time `json:"until" doc:"When one request is made to see whether it is back"`
	Failures int       `json:"failures" doc:"Failures in a row"`
	Error    string    `json:"error" doc:"The last failure"`
}

// EndpointWoken is the response to ending the rest of an endpoint.
type EndpointWoken struct {
	Woken int `json:"woken" doc:"Deliveries that were made due now, at most 100"`
}

// EndpointPatch changes fields of an endpoint. Absent ones stay.
type EndpointPatch struct {
	URL         *string            `json:"url,omitempty" minLength:"1" maxLength:"2048" doc:"A new one needs secret and the values of all headers, too"`
	Events      *[]string          `json:"events,omitempty" doc:"Event types; empty or *: all"`
	Accounts    *[]string          `json:"accounts,omitempty" doc:"Accounts; empty: all"`
	Headers     *map[string]string `json:"headers,omitempty" doc:"All of them; a masked value stays as it is"`
	Secret      *string            `json:"secret,omitempty" minLength:"1" maxLength:"256" doc:"whsec_ and base64 of 24 to 64 bytes. The old one is valid for 24 hours more"`
	RateLimit   *int               `json:"rateLimit,omitempty" minimum:"0" maximum:"10000" doc:"Requests a second; 0: no limit"`
	Enabled     *bool              `json:"enabled,omitempty"`
	Description *string            `json:"description,omitempty" maxLength:"1024"`
}

// SecretRotation asks for another secret of an endpoint.
type SecretRotation struct {
	Secret  string `json:"secret,omitempty" maxLength:"256" doc:"whsec_ and base64 of 24 to 64 bytes; made when absent"`
	Overlap *int   `json:"overlap,omitempty" minimum:"0" maximum:"2592000" doc:"Seconds for which the old secret signs, too; 86400 when absent"`
}

// SecretRotated is the response to a rotation.
type SecretRotated struct {
	Secret         string     `json:"secret" doc:"The new secret, shown only here"`
	OldSecretUntil *time.Time `json:"oldSecretUntil,omitempty" doc:"Until when requests carry a signature by an earlier secret, too; absent: they do not"`
}

// EndpointStatsQuery selects the hours of an endpoint's numbers.
type EndpointStatsQuery struct {
	Hours int `query:"hours" minimum:"1" maximum:"720" doc:"How many hours, back from now and with the current one; 24 when absent"`
}

// EndpointStats are the numbers of the requests to an endpoint.
type EndpointStats struct {
	Endpoint string    `json:"endpoint"`
	From     time.Time `json:"from" doc:"Beginning of the first hour"`
	EndpointCounts
	Hours []EndpointHour `json:"hours" doc:"The hours with a request, oldest first"`
}

// EndpointHour are the numbers of one hour.
type EndpointHour struct {
	Hour time.Time `json:"hour" doc:"Its beginning"`
	EndpointCounts
}

// EndpointCounts counts requests by what came of them.
type EndpointCounts struct {
	Requests    int     `json:"requests"`
	Delivered   int     `json:"delivered" doc:"Answered with 2xx"`
	Retried     int     `json:"retried" doc:"Failed, and another one follows"`
	Failed      int     `json:"failed" doc:"Failed for good"`
	SuccessRate float64 `json:"successRate" doc:"Share of the requests that were answered with 2xx; 0 without any"`
	Latency     int     `json:"latency" doc:"Mean duration of a request in milliseconds"`
	Slowest     int     `json:"slowest" doc:"Longest duration of a request in milliseconds"`
}

// EndpointPage is a page of endpoints.
type EndpointPage struct {
	PageNumbers
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
	PageNumbers
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
	WaitsUntil  *time.Time      `json:"waitsUntil,omitempty" doc:"Until when the endpoint rests, for which the delivery waits; in the past: one request asks now whether the endpoint is back"`
	Body        json.RawMessage `json:"body,omitempty" doc:"What is sent (single delivery only)"`
	Explanation *Explanation    `json:"explanation,omitempty" doc:"Where the last request failed: what that means, and what to do about it"`
	// the last 10, oldest first; single delivery only
	Log []DeliveryAttempt `json:"log,omitempty" doc:"The last 10 attempts, oldest first (single delivery only)"`
}

// DeliveryAttempt is one request of a delivery, and its answer.
type DeliveryAttempt struct {
	Number     int       `json:"number" doc:"From 1"`
	Date       time.Time `json:"date" doc:"When the request was made"`
	StatusCode int       `json:"statusCode,omitempty" doc:"Of the answer; absent: there was none"`
	Latency    int       `json:"latency,omitempty" doc:"In milliseconds"`
	Response   string    `json:"response,omitempty" doc:"Beginning of the answer: 512 bytes, of the last one 4 kB"`
	Error      string    `json:"error,omitempty" doc:"Why the attempt failed"`
}

// DeliveryPage is a page of deliveries, newest first.
type DeliveryPage struct {
	PageNumbers
	Partial    bool       `json:"partial,omitempty" doc:"With q, status or event: only the newest 2,000 deliveries were looked at, and there are older ones"`
	Deliveries []Delivery `json:"deliveries"`
}

func (p DeliveryPage) rows() ([]Delivery, string, int) { return p.Deliveries, "", p.Pages }

// MessageDeliveries are the deliveries of the events of a message, oldest first.
type MessageDeliveries struct {
	Deliveries []Delivery `json:"deliveries" doc:"Of those that were made again, by hand or by a replay, the last one to each endpoint"`
	Partial    bool       `json:"partial,omitempty" doc:"There are more than 5,000 pairs of an event and an endpoint"`
}

// DeliveryQuery selects deliveries of an endpoint.
type DeliveryQuery struct {
	Page     int    `query:"page" minimum:"0" doc:"Page, from 0"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows a page; 20 when absent"`
	Q        string `query:"q" maxLength:"4096" doc:"Only deliveries about messages that match this query: words, to:, subject:, status:… see docs/missing-mail.md"`
	Status   string `query:"status" enum:"pending,delivered,failed,skipped" doc:"Only deliveries in this state"`
	Event    string `query:"event" maxLength:"64" doc:"Only deliveries of events of this type, such as messageSent"`
}

// EndpointReplay selects the events to send again.
type EndpointReplay struct {
	Since      time.Time `query:"since" doc:"Send the events of this time and later; required"`
	Background bool      `query:"background" doc:"Answer at once; GET shows how far it is, and it waits while too many deliveries do"`
}

// EndpointReplayState is how far the last replay in the background is.
type EndpointReplayState struct {
	State    string     `json:"state" enum:"running,done,stopped,interrupted" doc:"stopped: the endpoint was switched off or deleted; interrupted: its task is gone"`
	Since    time.Time  `json:"since" doc:"Events of this time and later are replayed"`
	Reached  *time.Time `json:"reached,omitempty" doc:"Time of the last event that was read"`
	Progress int        `json:"progress" doc:"Percent"`
	Replayed int        `json:"replayed" doc:"Events queued again for this endpoint"`
	Started  time.Time  `json:"started"`
	Ended    *time.Time `json:"ended,omitempty"`
	Error    string     `json:"error,omitempty" doc:"Why it was stopped"`
}

// EndpointTest asks for a test delivery.
type EndpointTest struct {
	Event string `query:"event" maxLength:"64" doc:"Type of the event, such as messageBounce: a sample of it is sent, with test true in its data; webhookTest when absent"`
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
	Replayed int  `json:"replayed" doc:"Events queued again for this endpoint"`
	Running  bool `json:"running,omitempty" doc:"It goes on in the background"`
}

// Deleted is the response to a deletion.
type Deleted struct {
	Deleted bool `json:"deleted"`
}
