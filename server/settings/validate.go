package settings

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

// headerName is a token of RFC 9110 section 5.6.2.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")

// hostName is a name with at least one dot, or localhost.
var hostName = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,62})\.)+[A-Za-z0-9-]{2,63}$|^localhost$`)

// ownHeaders are the headers that Postroom sets in a webhook. A custom header of the same name would break
// the request or its signature.
var ownHeaders = []string{
	"connection", "content-length", "content-type", "host", "trailer", "transfer-encoding", "upgrade",
	"webhook-id", "webhook-signature", "webhook-timestamp",
	"x-ee-wh-attempts-made", "x-ee-wh-event-id", "x-ee-wh-signature",
}

// faults collects a request's invalid fields.
type faults struct{ fault.Fields }

// Check returns Invalid with all wrong fields of a request; nil if there are none.
func Check(req api.Settings) error {
	var f faults
	if req.Webhooks != nil {
		f.url(nameWebhooks, *req.Webhooks)
	}
	if req.ServiceURL != nil {
		f.url(nameServiceURL, *req.ServiceURL)
		if strings.ContainsAny(*req.ServiceURL, "?#") {
			f.Add(nameServiceURL, "must not have a query or fragment")
		}
	}
	if req.WebhookEvents != nil {
		f.events(*req.WebhookEvents)
	}
	if req.WebhooksCustomHeaders != nil {
		f.headers(*req.WebhooksCustomHeaders)
	}
	if n := req.DeliveryAttempts; n != nil && (*n < 1 || *n > 100) {
		f.Add(nameAttempts, "must be 1 to 100")
	}
	if n := req.QueueKeep; n != nil && (*n < 0 || *n > 100_000) {
		f.Add(nameQueueKeep, "must be 0 to 100000")
	}
	if req.BlockedLinks != nil {
		f.blocked(*req.BlockedLinks)
	}
	return fault.InvalidFields(f.Fields)
}

// blocked checks the hosts and messages whose links are blocked. A host is an IP address, or a name as URLs
// have it: with dots, and international ones as A-labels.
func (f *faults) blocked(links []string) {
	if len(links) > 1000 {
		f.Add(nameBlockedLinks, "must not be more than 1000")
	}
	for i, link := range links {
		_, wrong := ulid.ParseStrict(link)
		_, notIP := netip.ParseAddr(link)
		if wrong != nil && notIP != nil && (len(link) > 253 || !hostName.MatchString(link)) {
			f.Add(fmt.Sprintf("%s[%d]", nameBlockedLinks, i),
				"must be a host, such as shop.example.com, or the queueId of a message")
		}
	}
}

// url checks a URL; empty means none. Answers and logs show it, so it must not hold a password.
func (f *faults) url(key, s string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	switch {
	case len(s) > 2048:
		f.Add(key, "must not be longer than 2048 characters")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		f.Add(key, "must be an HTTP or HTTPS URL")
	case u.User != nil:
		f.Add(key, "must not contain a user or password; for a webhook use webhooksCustomHeaders")
	}
}

// eventTypes are the types of events that happen here.
func eventTypes() (all []string) {
	for _, t := range event.Types() {
		all = append(all, string(t))
	}
	return all
}

func (f *faults) events(types []string) {
	known := append(eventTypes(), strings.Fields(mailboxEvents)...)
	for i, t := range types {
		if t != "*" && !slices.Contains(known, t) {
			f.Add(fmt.Sprintf("%s[%d]", nameWebhookEvents, i), "must be * or one of %s", strings.Join(known, ", "))
		}
	}
}

func (f *faults) headers(headers []api.CustomHeader) {
	if len(headers) > 20 {
		f.Add(nameCustomHeaders, "must not be more than 20")
	}
	for i, h := range headers {
		key := fmt.Sprintf("%s[%d]", nameCustomHeaders, i)
		switch {
		case !headerName.MatchString(h.Key):
			f.Add(key+".key", "must be a header's name")
		case slices.Contains(ownHeaders, strings.ToLower(h.Key)):
			f.Add(key+".key", "can't be set, because Postroom sets it")
		}
		switch {
		case len(h.Value) > 2048:
			f.Add(key+".value", "must not be longer than 2048 characters")
		case strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			f.Add(key+".value", "must not contain control characters")
		}
	}
}
