package ui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/peers"
)

// first are the requests that fill an empty page, by the page.
var first = map[string]struct {
	route string
	body  any
}{
	"outbox":      {"/v1/submit", firstMail},
	"log":         {"/v1/submit", firstMail},
	"digests":     {"/v1/digests/events", firstEvent},
	"templates":   {"/v1/templates/template", firstTemplate},
	"lists":       {"/v1/lists", api.List{ListID: "news", Name: "Weekly news"}},
	"webhooks":    {"/v1/webhook-endpoints", api.EndpointRequest{URL: "https://app.example.com/hooks/mail"}},
	"subscribers": {"/v1/subscribers", api.SubscriberRequest{Email: "reader@example.com", Name: "Reader"}},
}

var (
	firstMail = api.SubmitRequest{To: api.Addresses{{Name: "Ann", Address: "ann@example.com"}}, Subject: "Hello",
		Text: "Hi Ann"}
	firstEvent = api.DigestEventsRequest{DigestEvent: api.DigestEvent{Recipient: "u1", Email: "ann@example.com",
		Category: "comment", EntityType: "post", EntityID: "7", Title: "My holidays"}}
	firstTemplate = api.TemplateRequest{ID: "welcome", Name: "Welcome",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{
			Subject: "Welcome, {{params.name}}", HTML: "<p>Hello {{params.name}}</p>"}}}
)

// firstCurl returns the command that makes the first request of a page, with the token in TOKEN. It is empty
// for viewers, and for those who act for an account that the request does not name.
func firstCurl(seen frame, page string) (string, error) {
	f := first[page]
	if seen.ReadOnly || seen.Account != "" {
		return "", nil
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(f.body); err != nil {
		return "", err
	}
	return "curl " + quoted(seen.Base+f.route) + ` -H "Authorization: Bearer $TOKEN" \` + "\n" +
		"  -H 'Content-Type: application/json' -d " + quoted(strings.TrimSpace(body.String())), nil
}

// quoted returns a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// baseOf returns the address of this Postroom as the browser knows it.
func baseOf(r *http.Request) string {
	if peers.Of(r).TLS {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
