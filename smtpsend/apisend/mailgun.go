package apisend

import (
	"bytes"
	"cmp"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
)

// mailgun is the Mailgun API, version 3. It takes MIME as a file in a form.
var mailgun = &adapter{
	base: func(t Target) string {
		if t.Region == "eu" {
			return "https://api.eu.mailgun.net"
		}
		return "https://api.mailgun.net"
	},
	most: 1000, size: 25_000_000, tls: true,
	lacks:   func(_ Target, m *mail) string { return m.lacksInMIME() },
	request: mailgunRequest, read: mailgunAnswer,
	reset: unixTime("X-Ratelimit-Reset"),
	// The check is a message without recipients, because a sending key can't make any other call.
	check: func(t Target) request {
		q, _ := mailgunForm(t, [][2]string{{"o:testmode", "yes"}})
		return q
	},
	checked: func(x *exchange) *refusal { return cmp.Or(mailgunAnswer(x).refusal, unless(false)) },
	fine: func(x *exchange) bool { // only the content of the check is refused
		r := mailgunAnswer(x).refusal
		return x.status == http.StatusBadRequest && r != nil && r.verdict == smtpsend.Policy
	},
}

func mailgunRequest(t Target, m *mail, g group) (request, error) {
	var fields [][2]string
	for _, to := range g.all() {
		fields = append(fields, [2]string{"to", to})
	}
	fields = append(fields, [2]string{"message", string(m.raw)})
	if proof := m.proof(); proof != "" {
		fields = append(fields, [2]string{"v:" + provider.EchoField, proof})
	}
	fields = append(fields, [2]string{"o:tracking", "no"})
	for _, tag := range m.plainTags(10, 128) {
		fields = append(fields, [2]string{"o:tag", tag})
	}
	if t.Sandbox {
		fields = append(fields, [2]string{"o:testmode", "yes"})
	}
	if m.RequireTLS { // and a valid certificate
		fields = append(fields, [2]string{"o:require-tls", "yes"}, [2]string{"o:skip-verification", "no"})
	}
	return mailgunForm(t, fields)
}

// mailgunForm makes a request from form fields. The field "message" becomes a file.
func mailgunForm(t Target, fields [][2]string) (request, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	var err error
	for _, f := range fields {
		if f[0] != "message" {
			err = cmp.Or(err, form.WriteField(f[0], f[1]))
			continue
		}
		part, failed := form.CreateFormFile(f[0], "message.mime")
		if failed == nil {
			_, failed = io.WriteString(part, f[1])
		}
		err = cmp.Or(err, failed)
	}
	err = cmp.Or(err, form.Close())
	header := http.Header{"Content-Type": {form.FormDataContentType()}, "Accept": {"application/json"}}
	r := http.Request{Header: header}
	r.SetBasicAuth("api", t.Key)
	return request{path: "/v3/" + url.PathEscape(t.Domain) + "/messages.mime", header: header,
		body: body.Bytes()}, err
}

// mailgunSaid is the JSON of an answer.
type mailgunSaid struct {
	ID      id     `json:"id"`
	Message string `json:"message"`
}

// mailgunAnswer reads an answer. Mailgun's errors have a text and no code.
func mailgunAnswer(x *exchange) answer {
	var said mailgunSaid
	readable := x.decode(&said)
	switch {
	case x.ok() && !readable && says(string(x.body), "mailgun magnificent api"):
		return refuse(badKey, "", "Mailgun doesn't know this path; check the domain and the URL of the gateway")
	case !readable || x.ok() && said.ID == "" || !x.ok() && said.Message == "":
		return answer{unreadable: true}
	case x.ok():
		return answer{id: string(said.ID)}
	}
	bad := x.status == http.StatusBadRequest
	switch {
	case bad && says(said.Message, "'to' parameter is not a valid address"):
		a := refuse(badAddress, "", said.Message)
		a.unnamed = true
		return a
	case bad && says(said.Message, "'from' parameter"),
		(bad || x.status == http.StatusForbidden) &&
			says(said.Message, "not allowed to send", "sandbox subdomains"):
		return refuse(badSender, "", said.Message)
	}
	if m, known := byStatus(x.status, true); known {
		return refuse(m, "", said.Message)
	}
	return answer{unreadable: true}
}
