package testapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/mail"
	"strings"
)

func mailgun() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			user, key, _ := c.r.BasicAuth()
			return answer{http.StatusUnauthorized, map[string]string{"Content-Type": "text/html"}, "Forbidden"},
				user == "api" && key == c.o.Key
		},
		routes: mailgunHooks.routes(
			route{"POST", "/v3/{}/messages.mime", mailgunSend}, route{"POST", "/v3/{}/messages", mailgunSend},
			route{"GET", "/v4/domains/{}", mailgunDomain(func(c *call) any {
				record := object{"record_type": "TXT", "name": c.o.Domain, "valid": "valid", "is_active": true,
					"value": "v=spf1 include:mailgun.org ~all"}
				return object{"domain": object{"name": c.o.Domain, "state": "active", "is_disabled": false},
					"sending_dns_records": []any{record}, "receiving_dns_records": []any{}}
			})},
		),
		lost: func(_ *call, status int) answer {
			return answer{200, map[string]string{"Content-Type": "text/plain"}, "Mailgun Magnificent API"}
		},
		says: func(c *call) map[Say]answer {
			return map[Say]answer{
				Throttled: mailgunError(429, "Too many requests").with("X-RateLimit-Reset",
					fmt.Sprint(c.now.Unix()+12)),
				Spent: mailgunError(http.StatusPaymentRequired, "The plan's messages are used up"),
				Down:  mailgunError(500, "Internal Server Error"),
			}
		},
	}
}

func mailgunError(status int, text string) answer {
	return answer{status, nil, object{"message": text}}
}

// mailgunDomain answers about the account's domain, and about no other.
func mailgunDomain(do func(*call) any) func(*call) answer {
	return func(c *call) answer {
		if c.args[0] != c.o.Domain {
			return mailgunError(404, "Domain not found: "+c.args[0])
		}
		return answer{200, nil, do(c)}
	}
}

// form reads the fields of a form.
func (c *call) form() (*multipart.Form, error) {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	return multipart.NewReader(bytes.NewReader(c.body), params["boundary"]).ReadForm(64 << 20)
}

func mailgunSend(c *call) answer {
	if strings.Contains(c.args[0], "/") {
		return c.provider.lost(c, http.StatusNotFound)
	}
	if c.args[0] != c.o.Domain {
		return mailgunError(404, "Domain not found: "+c.args[0])
	}
	f, err := c.form()
	if err != nil {
		return mailgunError(400, "The request is not a form: "+err.Error())
	}
	const wrong = "' parameter is not a valid address. please check documentation"
	var to []string
	for _, list := range f.Value["to"] {
		all, err := mail.ParseAddressList(list)
		for _, a := range all {
			to = append(to, a.Address)
		}
		if _, _, ok := addresses(to); err != nil || !ok {
			return mailgunError(400, "'to"+wrong)
		}
	}
	size := 0
	for name, values := range f.Value {
		if strings.HasPrefix(name, "o:") || strings.HasPrefix(name, "h:") || strings.HasPrefix(name, "v:") {
			size += len(name) + len(strings.Join(values, ""))
		}
	}
	switch {
	case len(to) == 0:
		return mailgunError(400, "'to' parameter is missing")
	case len(to) > 1000:
		return mailgunError(400, "'to' parameter has more than 1000 addresses")
	case size > 16<<10:
		return mailgunError(400, "the o:, h: and v: parameters can have 16kB in all")
	case len(f.Value["o:tag"]) > 10:
		return mailgunError(400, "there can be 10 tags")
	case len(c.body) > 25<<20:
		return mailgunError(http.StatusRequestEntityTooLarge, "Message is too large")
	}
	if strings.HasSuffix(c.r.URL.Path, ".mime") {
		return c.mailgunMIME(f, to)
	}
	return c.mailgunParts(f, to)
}

// mailgunMIME accepts a message that is complete.
func (c *call) mailgunMIME(f *multipart.Form, to []string) answer {
	files := mailgunFiles(f, "message")
	if len(files) != 1 {
		return mailgunError(400, "'message' parameter is missing")
	}
	m, err := mail.ReadMessage(bytes.NewReader(files[0].data))
	if err != nil || address(m.Header.Get("From")) == "" {
		return mailgunError(400, "'from' parameter is not a valid address. please check documentation")
	}
	id := m.Header.Get("Message-Id")
	if id == "" {
		id = fmt.Sprintf("<%s.%d@%s>", c.now.UTC().Format("20060102150405"), c.serial(), c.o.Domain)
	}
	return c.mailgunTake(f, to, id, address(m.Header.Get("From")), func(string) []byte { return files[0].data })
}

// mailgunParts accepts a message in parts. With recipient-variables each recipient gets a separate one.
func (c *call) mailgunParts(f *multipart.Form, to []string) answer {
	one := func(name string) string {
		if len(f.Value[name]) == 0 {
			return ""
		}
		return f.Value[name][0]
	}
	from := address(one("from"))
	if from == "" {
		return mailgunError(400, "'from' parameter is not a valid address. please check documentation")
	}
	if one("text") == "" && one("html") == "" {
		return mailgunError(400, "Need at least one of 'text' or 'html' parameters specified")
	}
	id := fmt.Sprintf("<%s.%d@%s>", c.now.UTC().Format("20060102150405"), c.serial(), c.o.Domain)
	headers := map[string]string{}
	for name := range f.Value {
		if field, ok := strings.CutPrefix(name, "h:"); ok {
			headers[field] = one(name)
		}
	}
	return c.mailgunTake(f, to, id, from, func(rcpt string) []byte {
		out := content{from: one("from"), to: f.Value["to"], cc: f.Value["cc"], subject: one("subject"),
			text: one("text"), html: one("html"), headers: pairs(headers),
			attached: mailgunFiles(f, "attachment"), inline: mailgunFiles(f, "inline")}
		if fill := mailgunFill(f, rcpt); fill != nil {
			out.to = []string{rcpt}
			out.subject, out.text, out.html = fill.Replace(out.subject), fill.Replace(out.text), fill.Replace(out.html)
			for i := range out.headers {
				out.headers[i][1] = fill.Replace(out.headers[i][1])
			}
		}
		return out.join(id, c.now)
	})
}

// mailgunFill replaces the variables of a recipient. It is nil without recipient-variables.
func mailgunFill(f *multipart.Form, rcpt string) *strings.Replacer {
	if len(f.Value["recipient-variables"]) == 0 {
		return nil
	}
	var all map[string]map[string]string
	_ = json.Unmarshal([]byte(f.Value["recipient-variables"][0]), &all)
	return filler("%recipient.", "%", all[rcpt])
}

// mailgunFiles returns the files of a field. Mailgun drops those without a name.
func mailgunFiles(f *multipart.Form, name string) (files []file) {
	for _, h := range f.File[name] {
		in, err := h.Open()
		if err != nil || h.Filename == "" {
			continue
		}
		raw, _ := io.ReadAll(in) // it is in memory
		_ = in.Close()
		one := file{kind: h.Header.Get("Content-Type"), name: h.Filename, data: raw}
		if name == "inline" {
			one.cid = h.Filename
		}
		files = append(files, one)
	}
	return files
}

func (c *call) mailgunTake(f *multipart.Form, to []string, id, from string,
	mime func(to string) []byte) answer {
	if !c.o.sender(from) {
		return mailgunError(http.StatusForbidden, "Domain "+c.o.Domain+" is not allowed to send: "+from)
	}
	for _, a := range to {
		d := Delivery{From: from, ID: id, MIME: mime(a), Tags: f.Value["o:tag"], Metadata: map[string]string{},
			Sandbox: len(f.Value["o:testmode"]) > 0}
		for name, values := range f.Value {
			if variable, ok := strings.CutPrefix(name, "v:"); ok {
				if fill := mailgunFill(f, a); fill != nil {
					values = []string{fill.Replace(values[0])}
				}
				d.Metadata[variable] = values[0]
			}
		}
		c.later(d, a)
	}
	return answer{200, nil, object{"id": id, "message": "Queued. Thank you."}}
}
