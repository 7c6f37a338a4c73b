package testapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

type sesDestination struct{ ToAddresses, CcAddresses, BccAddresses []string }

type sesTag struct{ Name, Value string }

type sesMessage struct {
	Content struct {
		Raw *struct{ Data []byte }
	}
	Destination          *sesDestination
	FromEmailAddress     string
	ReplyToAddresses     []string
	ConfigurationSetName string
	EmailTags            []sesTag
}

type sesBulk struct {
	FromEmailAddress, ConfigurationSetName string
	DefaultContent                         struct {
		Template struct {
			TemplateContent struct{ Subject, Text, Html string }
			TemplateData    string
		}
	}
	BulkEmailEntries []struct {
		Destination             sesDestination
		ReplacementEmailContent struct {
			ReplacementTemplate struct{ ReplacementTemplateData string }
		}
		ReplacementHeaders, ReplacementTags []sesTag
	}
}

func ses() provider {
	return provider{
		auth: sesAuth,
		routes: append(sesHooks, []route{
			{"POST", "/v2/email/outbound-emails", sesSend}, {"POST", "/v2/email/outbound-bulk-emails", sesSendBulk},
			{"GET", "/v2/email/account", func(c *call) answer {
				return answer{200, nil, object{"SendingEnabled": true, "ProductionAccessEnabled": true,
					"EnforcementStatus": "HEALTHY", "SendQuota": object{"Max24HourSend": 50000.0,
						"MaxSendRate": 14.0, "SentLast24Hours": float64(c.Count(""))}}}
			}},
			{"GET", "/v2/email/identities", func(c *call) answer {
				return answer{200, nil, object{"EmailIdentities": objects(c.o.Verified, func(v string) any {
					return object{"IdentityName": v, "SendingEnabled": true, "VerificationStatus": "SUCCESS",
						"IdentityType": map[bool]string{true: "EMAIL_ADDRESS", false: "DOMAIN"}[strings.Contains(v, "@")]}
				})}}
			}},
			{"GET", "/v2/email/identities/{}", func(c *call) answer {
				if len(c.o.Verified) > 0 && !slices.Contains(c.o.Verified, c.args[0]) {
					return sesError(404, "NotFoundException", "Email identity "+c.args[0]+" does not exist.")
				}
				return answer{200, nil, object{"VerifiedForSendingStatus": true, "VerificationStatus": "SUCCESS",
					"DkimAttributes": object{"SigningEnabled": true, "Status": "SUCCESS"}}}
			}},
		}...),
		lost: func(_ *call, status int) answer {
			return sesError(status, "UnknownOperationException", "")
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: sesError(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
				Spent:     sesError(400, "ThrottlingException", "Daily message quota exceeded."),
				Down:      sesError(500, "InternalServiceErrorException", "An internal error occurred."),
			}
		},
	}
}

func sesError(status int, kind, text string) answer {
	return answer{status, map[string]string{"X-Amzn-Errortype": kind}, object{"message": text}}
}

var sesScope = regexp.MustCompile(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Sig`)

// sesAuth signs the request again, as it should have been signed, and compares.
func sesAuth(c *call) (answer, bool) {
	refuse := func(kind, text string) (answer, bool) { return sesError(http.StatusForbidden, kind, text), false }
	sent := c.r.Header.Get("Authorization")
	scope := sesScope.FindStringSubmatch(sent)
	at, err := time.Parse("20060102T150405Z", c.r.Header.Get("X-Amz-Date"))
	switch {
	case scope == nil || err != nil:
		return refuse("MissingAuthenticationTokenException", "Missing Authentication Token")
	case scope[1] != c.o.Key:
		return refuse("UnrecognizedClientException", "The security token included in the request is invalid.")
	case scope[3] != c.o.Region || scope[4] != "ses":
		return refuse("InvalidSignatureException", "Credential should be scoped to a valid region.")
	case c.now.Sub(at).Abs() > 5*time.Minute:
		return refuse("InvalidSignatureException", "Signature expired: "+at.Format("20060102T150405Z")+
			" is now earlier than "+c.now.UTC().Format("20060102T150405Z"))
	}
	again := &http.Request{Method: c.r.Method, URL: c.r.URL, Host: c.r.Host, Header: http.Header{}}
	for name := range strings.SplitSeq(scope[5], ";") {
		if name == "content-length" {
			again.ContentLength = c.r.ContentLength
		} else if v := c.r.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	hash := fmt.Sprintf("%x", sha256.Sum256(c.body))
	err = v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: c.o.Key,
		SecretAccessKey: c.o.Secret}, again, hash, scope[4], scope[3], at)
	if err != nil || again.Header.Get("Authorization") != sent {
		return refuse("InvalidSignatureException", "The request signature we calculated does not match the "+
			"signature you provided. Check your AWS Secret Access Key and signing method.")
	}
	return answer{}, true
}

func sesSend(c *call) answer {
	var m sesMessage
	if err := c.decode(&m, true); err != nil {
		return sesError(400, "SerializationException", err.Error())
	}
	if m.Content.Raw == nil {
		return sesError(400, "BadRequestException", "Raw content is required.")
	}
	raw := m.Content.Raw.Data
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil || bytes.ContainsFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf || r == 0 }) {
		return sesError(400, "BadRequestException", "The message isn't valid 7-bit MIME.")
	}
	from := m.FromEmailAddress
	if from == "" {
		from = parsed.Header.Get("From")
	}
	to := sesDestination{ToAddresses: []string{parsed.Header.Get("To")}}
	if m.Destination != nil {
		to = *m.Destination
	}
	all, a := c.sesWrong(from, to, m.EmailTags)
	if a.status != 0 {
		return a
	}
	if len(raw)*4/3 > 40<<20 {
		return sesError(400, "BadRequestException", "Message length is more than 41943040 bytes long.")
	}
	if m.FromEmailAddress != "" {
		raw = withHeader(raw, "From", m.FromEmailAddress)
	}
	if m.ReplyToAddresses != nil {
		raw = withHeader(raw, "Reply-To", strings.Join(m.ReplyToAddresses, ", "))
	}
	return answer{200, nil, object{"MessageId": c.sesTake(from, all, raw, m.EmailTags)}}
}

var sesTagText = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,256}$`)

// sesWrong lists the recipients, or says what is wrong.
func (c *call) sesWrong(from string, to sesDestination, tags []sesTag) ([]string, answer) {
	sender := address(from)
	all, wrong, ok := addresses(slices.Concat(to.ToAddresses, to.CcAddresses, to.BccAddresses))
	for _, tag := range tags {
		if !sesTagText.MatchString(tag.Name) || !sesTagText.MatchString(tag.Value) {
			return nil, sesError(400, "BadRequestException", "Invalid tag value <"+tag.Value+">.")
		}
	}
	switch {
	case sender == "":
		return nil, sesError(400, "BadRequestException", "Missing final '@domain'")
	case !ok:
		return nil, sesError(400, "BadRequestException", "Local address contains control or whitespace: "+wrong)
	case len(all) == 0 || len(all) > 50:
		return nil, sesError(400, "BadRequestException", "Recipient count must be between 1 and 50.")
	case !c.o.sender(sender):
		return nil, sesError(400, "MessageRejected", "Email address is not verified. The following identities "+
			"failed the check in region "+strings.ToUpper(c.o.Region)+": "+sender)
	}
	return all, answer{}
}

// sesTake accepts a message. Amazon writes its own date and Message-ID.
func (c *call) sesTake(from string, to []string, raw []byte, tags []sesTag) string {
	id := fmt.Sprintf("%016x-%s-000000", c.serial(), uuid())
	raw = withHeader(raw, "Message-ID", "<"+id+"@"+c.o.Region+".amazonses.com>")
	raw = withHeader(raw, "Date", c.now.UTC().Format(time.RFC1123Z))
	d := Delivery{From: address(from), ID: id, MIME: raw, Metadata: map[string]string{}}
	for _, tag := range tags {
		d.Metadata[tag.Name] = tag.Value
	}
	for _, a := range to {
		d.Sandbox = strings.HasSuffix(a, "@simulator.amazonses.com")
		c.later(d, a)
	}
	return id
}

func sesSendBulk(c *call) answer {
	var m sesBulk
	if err := c.decode(&m, true); err != nil {
		return sesError(400, "SerializationException", err.Error())
	}
	template := m.DefaultContent.Template.TemplateContent
	if len(m.BulkEmailEntries) == 0 || len(m.BulkEmailEntries) > 50 || template.Subject == "" {
		return sesError(400, "BadRequestException", "BulkEmailEntries must have 1 to 50 entries and a template.")
	}
	results := []any{}
	for _, e := range m.BulkEmailEntries {
		all, a := c.sesWrong(m.FromEmailAddress, e.Destination, e.ReplacementTags)
		if a.status != 0 && a.header["X-Amzn-Errortype"] == "MessageRejected" {
			return a
		}
		values := map[string]string{}
		data := e.ReplacementEmailContent.ReplacementTemplate.ReplacementTemplateData
		if a.status != 0 || json.Unmarshal([]byte(data), &values) != nil {
			results = append(results, object{"Status": "INVALID_PARAMETER", "Error": "invalid entry"})
			continue
		}
		if reason, no := c.o.inactive(all[0]); no && reason != "" {
			results = append(results, object{"Status": reason, "Error": "temporary"})
			continue
		}
		fill := handlebars(values, true)
		out := content{from: m.FromEmailAddress, to: e.Destination.ToAddresses, text: fill.Replace(template.Text),
			html: fill.Replace(template.Html), subject: fill.Replace(template.Subject)}
		for _, h := range e.ReplacementHeaders {
			out.headers = append(out.headers, [2]string{h.Name, h.Value})
		}
		id := c.sesTake(m.FromEmailAddress, all, out.join("0", c.now), e.ReplacementTags)
		results = append(results, object{"Status": "SUCCESS", "MessageId": id})
	}
	return answer{200, nil, object{"BulkEmailEntryResults": results}}
}
