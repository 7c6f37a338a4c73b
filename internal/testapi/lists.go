package testapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// withLists adds a provider's suppression list and its events API.
func withLists(name string, p provider) provider {
	p.routes = append(append(p.routes, listRoutes[name]...), eventRoutes[name]...)
	return p
}

// listRoutes are the suppression lists. They list [Options].Inactive, whose reasons are in the provider's
// words.
var listRoutes = map[string][]route{
	"ses":      {{"GET", "/v2/email/suppression/addresses", sesSuppressed}},
	"sendgrid": {{"GET", "/v3/suppression/{}", sendgridSuppressed}},
	"mailgun": {{"GET", "/v3/{}/bounces", mailgunList}, {"GET", "/v3/{}/complaints", mailgunList},
		{"GET", "/v3/{}/unsubscribes", mailgunList}},
	"postmark":  {{"GET", "/message-streams/{}/suppressions/dump", postmarkSuppressions}},
	"sparkpost": {{"GET", "/api/v1/suppression-list", sparkpostSuppressed}},
	"brevo":     {{"GET", "/v3/smtp/blockedContacts", brevoBlocked}},
	"resend":    {{"GET", "/suppressions", resendSuppressions}},
	"mandrill":  {{"POST", "/api/1.0/rejects/list.json", mandrillRejects}},
}

// inactiveOf lists the addresses with one of some reasons. An empty reason is hard.
func (o Options) inactiveOf(hard string, reasons ...string) (found []string) {
	for _, a := range o.dead() {
		for _, r := range reasons {
			if strings.EqualFold(cmp.Or(o.Inactive[a], hard), r) {
				found = append(found, a)
			}
		}
	}
	return found
}

func sesSuppressed(c *call) answer {
	rows, next := page(c, c.o.dead(), c.askNumber("NextToken"), c.ask("PageSize"), 1000)
	body := object{"SuppressedDestinationSummaries": objects(rows, func(a string) any {
		return object{"EmailAddress": a, "Reason": cmp.Or(c.o.Inactive[a], "BOUNCE"),
			"LastUpdateTime": float64(c.now.Unix()) + 0.5}
	})}
	if next > 0 {
		body["NextToken"] = strconv.Itoa(next)
	}
	return answer{200, nil, body}
}

// sendgridSuppressed lists addresses whose reason is the name of the list.
func sendgridSuppressed(c *call) answer {
	rows, _ := page(c, c.o.inactiveOf("bounces", c.args[0]), c.askNumber("offset"), c.ask("limit"), 500)
	return answer{200, nil, objects(rows, func(a string) any {
		return object{"email": a, "created": c.now.Unix(), "reason": "550 5.1.1", "status": "5.1.1"}
	})}
}

// mailgunList lists addresses whose reason is the name of the list, or a tag. Its last page is empty.
func mailgunList(c *call) answer {
	name := c.r.URL.Path[strings.LastIndexByte(c.r.URL.Path, '/')+1:]
	return mailgunDomain(func(c *call) any {
		names := []string{name}
		if name == "unsubscribes" {
			names = append(names, "tag")
		}
		at := c.askNumber("page")
		rows, _ := page(c, c.o.inactiveOf("bounces", names...), at, c.ask("limit"), 1000)
		next := fmt.Sprintf("%s%s?page=%d&limit=%s", c.URL, c.r.URL.Path, at+len(rows), c.ask("limit"))
		return object{"paging": object{"next": next}, "items": objects(rows, func(a string) any {
			e := object{"address": a, "created_at": c.now.UTC().Format(time.RFC1123)}
			switch c.o.Inactive[a] {
			case "tag":
				e["tags"] = []string{"newsletter"}
			case "unsubscribes":
				e["tags"] = []string{"*"}
			case "", "bounces":
				e["code"], e["error"] = "550", "No such mailbox"
			}
			return e
		})}
	})(c)
}

func postmarkSuppressions(c *call) answer {
	all := c.o.dead()
	if reason := c.ask("SuppressionReason"); reason != "" {
		all = c.o.inactiveOf("HardBounce", reason)
	}
	return answer{200, nil, object{"Suppressions": objects(all, func(a string) any {
		return object{"EmailAddress": a, "SuppressionReason": cmp.Or(c.o.Inactive[a], "HardBounce"),
			"Origin": "Recipient", "CreatedAt": c.now.Format("2006-01-02T15:04:05-07:00")}
	})}}
}

func sparkpostSuppressed(c *call) answer {
	rows, next := page(c, c.o.dead(), c.askNumber("cursor"), c.ask("per_page"), 10000)
	links := []any{}
	if next > 0 {
		links = append(links, object{"rel": "next", "href": fmt.Sprintf(
			"/api/v1/suppression-list?cursor=%d&per_page=%s", next, c.ask("per_page"))})
	}
	return answer{200, nil, object{"links": links, "total_count": len(c.o.Inactive),
		"results": objects(rows, func(a string) any {
			return object{"recipient": a, "type": "transactional", "source": cmp.Or(c.o.Inactive[a], "Bounce Rule"),
				"created": c.now.UTC().Format(time.RFC3339)}
		})}}
}

func brevoBlocked(c *call) answer {
	if c.askNumber("limit") > 100 {
		return brevoError(http.StatusBadRequest, "out_of_range", "Limit exceeds max value")
	}
	rows, _ := page(c, c.o.dead(), c.askNumber("offset"), c.ask("limit"), 100)
	return answer{200, nil, object{"count": len(c.o.Inactive), "contacts": objects(rows, func(a string) any {
		return object{"email": a, "senderEmail": "", "blockedAt": c.now.Format(time.RFC3339), "reason": object{
			"code": cmp.Or(c.o.Inactive[a], "hardBounce"), "message": "Hard bounced"}}
	})}}
}

func resendSuppressions(c *call) answer {
	all, at := c.o.dead(), 0
	for i, a := range all {
		if a == c.ask("after") {
			at = i + 1
		}
	}
	rows, next := page(c, all, at, c.ask("limit"), 100)
	list := objects(rows, func(a string) any {
		return object{"object": "suppression", "id": a, "email": a, "origin": cmp.Or(c.o.Inactive[a], "bounce"),
			"created_at": c.now.UTC().Format(time.RFC3339)}
	})
	return answer{200, nil, object{"object": "list", "has_more": next > 0, "data": list}}
}

func mandrillRejects(c *call) answer {
	rows, _ := page(c, c.o.dead(), 0, "", 1000)
	return answer{200, nil, objects(rows, func(a string) any {
		at := c.now.UTC().Format(time.DateTime)
		return object{"email": a, "reason": cmp.Or(c.o.Inactive[a], "hard-bounce"), "detail": unknown,
			"created_at": at, "last_event_at": at, "expires_at": c.now.AddDate(0, 0, 7).UTC().Format(time.DateTime),
			"expired": false}
	})}
}
