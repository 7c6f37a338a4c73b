package testapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

type mailjetMessage struct {
	From, Sender, ReplyTo                                               *person
	To, Cc, Bcc                                                         []person
	Subject, TextPart, HTMLPart, CustomID, EventPayload, CustomCampaign string
	TrackOpens, TrackClicks                                             string
	Headers                                                             map[string]string
	Attachments, InlinedAttachments                                     []mailjetFile
	DeduplicateCampaign, TemplateLanguage                               bool
	Variables                                                           object
	Priority                                                            int
}

type mailjetFile struct{ ContentType, Filename, Base64Content, ContentID string }

func mailjet() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			user, password, _ := c.r.BasicAuth()
			return answer{http.StatusUnauthorized, map[string]string{"Content-Type": "text/plain"}, ""},
				user == c.o.Key && password == c.o.Secret
		},
		routes: mailjetHooks.routes(
			route{"POST", "/v3.1/send", mailjetSend},
			route{"GET", "/v3/REST/sender", func(c *call) answer {
				return answer{200, nil, mailjetList(objects(c.o.Verified, func(v string) any {
					return object{"Email": v, "Status": "Active", "EmailType": "transactional"}
				}))}
			}},
			route{"GET", "/v3/REST/dns", func(c *call) answer {
				return answer{200, nil, mailjetList(objects(c.o.domains(), func(d string) any {
					return object{"Domain": d, "DKIMStatus": "OK", "SPFStatus": "OK"}
				}))}
			}},
		),
		lost: func(_ *call, status int) answer {
			return answer{status, nil, object{"ErrorMessage": "Unknown resource", "StatusCode": status}}
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: {429, map[string]string{"Content-Type": "text/html"}, "Rate limit exceeded"},
				Spent:     {403, nil, object{"ErrorMessage": "Your account quota is reached.", "StatusCode": 403}},
				Down:      {500, nil, ""},
			}
		},
	}
}

// mailjetList is an answer of the REST API.
func mailjetList(data []any) any { return object{"Count": len(data), "Data": data, "Total": len(data)} }

// mailjetError refuses a whole request.
func mailjetError(code, text string) answer {
	return answer{400, nil, object{"ErrorIdentifier": uuid(), "ErrorCode": code, "ErrorMessage": text,
		"StatusCode": 400}}
}

func mailjetSend(c *call) answer {
	var all struct {
		Globals                           json.RawMessage
		Messages                          []json.RawMessage
		SandboxMode, AdvanceErrorHandling bool
	}
	const malformed = "Malformed JSON, please review the syntax and properties types."
	if !c.isJSON() || c.decode(&all, false) != nil {
		return mailjetError("mj-0002", malformed)
	}
	if len(all.Messages) == 0 || len(all.Messages) > 50 {
		return mailjetError("mj-0003", "There must be 1 to 50 Messages.")
	}
	var messages []mailjetMessage
	for _, raw := range all.Messages {
		var m mailjetMessage
		if all.Globals != nil && decode(all.Globals, &m, false) != nil || decode(raw, &m, false) != nil {
			return mailjetError("mj-0002", malformed)
		}
		messages = append(messages, m)
	}
	status := 200
	results := []any{}
	for _, m := range messages {
		if code, text, about := c.mailjetWrong(m); code != 0 {
			status = code
			name, text, _ := strings.Cut(text, " ")
			results = append(results, object{"Status": "error", "Errors": []any{object{
				"ErrorIdentifier": uuid(), "ErrorCode": name, "StatusCode": code, "ErrorMessage": text,
				"ErrorRelatedTo": []string{about}}}})
			continue
		}
		results = append(results, c.mailjetTake(m, all.SandboxMode))
	}
	return answer{status, nil, object{"Messages": results}}
}

// mailjetWrong says what is wrong with a message: the status, the code with its text, and the property.
func (c *call) mailjetWrong(m mailjetMessage) (status int, text, about string) {
	if m.From == nil || len(m.To) == 0 {
		return 400, "mj-0003 Missing mandatory property.", map[bool]string{true: "From", false: "To"}[m.From == nil]
	}
	for _, list := range []struct {
		name string
		all  []person
	}{{"From", []person{*m.From}}, {"To", m.To}, {"Cc", m.Cc}, {"Bcc", m.Bcc}} {
		for i, p := range list.all {
			if address(p.Email) == "" {
				about = fmt.Sprintf("%s[%d].Email", list.name, i)
				return 400, fmt.Sprintf("mj-0013 %q is an invalid email address.", p.Email),
					strings.Replace(about, "From[0]", "From", 1)
			}
		}
	}
	for name, value := range m.Headers {
		if reserved(name, "from sender subject to cc bcc reply-to return-path delivered-to date dkim-signature "+
			"domainkey-status received-spf authentication-results received message-id list-id x-csa-complaints") {
			return 400, "send-0011 Header cannot be customized using the \"Headers\" collection.",
				"Headers[" + name + "]"
		}
		if !field(name, value) {
			return 400, "mj-0004 Type mismatch. Expected type \"header\".", "Headers[" + name + "]"
		}
	}
	size := 0
	for _, f := range append(append([]mailjetFile{}, m.Attachments...), m.InlinedAttachments...) {
		raw, ok := decoded(f.Base64Content)
		if !ok || f.Filename == "" || f.ContentType == "" {
			return 400, "mj-0003 Missing mandatory property.", "Attachments"
		}
		size += len(raw)
	}
	switch {
	case m.TextPart == "" && m.HTMLPart == "":
		return 400, "send-0003 At least \"HTMLPart\", \"TextPart\" or \"TemplateID\" must be provided.", "HTMLPart"
	case len(m.To)+len(m.Cc)+len(m.Bcc) > 50:
		return 400, "mj-0020 There can be 50 recipients.", "To"
	case len(m.CustomID) > 64 || size > 15<<20 || len(m.Subject) > 255:
		return 400, "mj-0005 The property is too long.", "CustomID"
	case !c.o.sender(m.From.Email):
		return http.StatusForbidden, fmt.Sprintf("send-0008 %q is not an authorized sender email address for your "+
			"account.", m.From.Email), "From"
	}
	return 0, "", ""
}

func (c *call) mailjetTake(m mailjetMessage, sandbox bool) object {
	out := content{from: m.From.String(), subject: m.Subject, text: m.TextPart, html: m.HTMLPart,
		to: people(m.To), cc: people(m.Cc), headers: pairs(m.Headers)}
	if m.ReplyTo != nil {
		out.replyTo = []string{m.ReplyTo.String()}
	}
	for _, f := range m.Attachments {
		out.attach(f.ContentType, f.Filename, "", f.Base64Content)
	}
	for _, f := range m.InlinedAttachments {
		out.attach(f.ContentType, f.Filename, f.ContentID, f.Base64Content)
	}
	result := object{"Status": "success", "CustomID": m.CustomID}
	for name, list := range map[string][]person{"To": m.To, "Cc": m.Cc, "Bcc": m.Bcc} {
		told := []any{}
		for _, p := range list {
			id := int64(0)
			if !sandbox {
				id = 70650219165027411 + c.serial()
			}
			told = append(told, object{"Email": p.Email, "MessageUUID": uuid(), "MessageID": id,
				"MessageHref": fmt.Sprint("https://api.mailjet.com/v3/REST/message/", id)})
			d := Delivery{From: m.From.Email, ID: strconv.FormatInt(id, 10), Sandbox: sandbox,
				Metadata: map[string]string{"postroom_id": m.CustomID}, MIME: out.join(fmt.Sprint(id), c.now)}
			if m.CustomCampaign != "" {
				d.Tags = []string{m.CustomCampaign}
			}
			c.later(d, p.Email)
		}
		result[name] = told
	}
	return result
}
