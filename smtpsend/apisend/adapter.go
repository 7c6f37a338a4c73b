package apisend

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// adapter has the differences between the providers.
type adapter struct {
	base  func(Target) string // URL of the API; if nil, Target.URL is required
	most  int                 // recipients of one request; 0 means any number
	size  int64               // bytes of a message, as MIME; 0 means any number
	apart bool                // it takes parts instead of MIME: mail.parts is set
	tls   bool                // it can require TLS for a message
	// returns what the API can't carry of a message, to follow "it has", with the field of a submit in front, as
	// in "attachments: an empty attachment", or "". nil if it carries any
	lacks func(Target, *mail) string
	// makes a request; it may be repeated with the same bytes
	request func(Target, *mail, group) (request, error)
	// signs a request with this body; if nil, request puts the key into it
	sign func(context.Context, *Sender, Target, *http.Request, []byte) error
	// says what an answer means. It is called for every answer, also for one without JSON.
	read func(*exchange) answer
	list *listing // how it takes several messages in one request; nil if one by one
	// the wait until the provider's limit is reset, from an answer's header; nil if the header never has it
	reset func(http.Header, time.Time) time.Duration
	// how long the provider remembers a key against duplicates; 0 if it takes none
	remembers time.Duration
	// a harmless request that shows whether the key is good
	check func(Target) request
	// says what its answer with 2xx means, or nil if it is good. A nil function accepts any. Other answers are
	// read as answers to a message
	checked func(*exchange) *refusal
	// says whether a refusal of the check shows that the key is good; nil if none does
	fine func(*exchange) bool
}

// adapters are all of them, by the type of a gateway.
var adapters = map[api.GatewayType]*adapter{
	api.GatewayBrevo:     brevo,
	api.GatewayHTTP:      endpoint,
	api.GatewayMailgun:   mailgun,
	api.GatewayMailjet:   mailjet,
	api.GatewayMandrill:  mandrill,
	api.GatewayPostmark:  postmark,
	api.GatewayResend:    resend,
	api.GatewaySendGrid:  sendGrid,
	api.GatewaySES:       ses,
	api.GatewaySparkPost: sparkPost,
}

// request is one request to an API.
type request struct {
	method string // defaults to POST
	path   string // with the query, after Target.Base
	header http.Header
	body   []byte
	key    string // against duplicates; empty if none
	item   []byte // the message as an item of a list; nil if it must go alone
	list   bool   // it has several messages
}

// group is the recipients of one request. Their addresses are spelled as in the envelope. Where the API takes
// parts instead of MIME, to, cc and bcc are what people see, their names come from the header, and to is
// never empty. Elsewhere all are in to.
type group struct{ to, cc, bcc []message.Address }

// all returns the addresses of a group.
func (g group) all() []string {
	var all []string
	for _, some := range [][]message.Address{g.to, g.cc, g.bcc} {
		for _, a := range some {
			all = append(all, a.Address)
		}
	}
	return all
}

// chunks groups recipients in their order.
func chunks(to []string, most int) []group {
	var groups []group
	for some := range slices.Chunk(to, cmp.Or(most, len(to))) {
		var g group
		for _, address := range some {
			g.to = append(g.to, message.Address{Address: address})
		}
		groups = append(groups, g)
	}
	return groups
}

// mail is a message and its content.
type mail struct {
	smtpsend.Message
	raw   []byte
	parts content // set where the adapter takes the message apart
	key   string  // against duplicates, for a group that is all of the recipients left
}

// proof returns the text that proves the message; empty if it has none.
func (m *mail) proof() string {
	if m.Labels.Proof == nil {
		return ""
	}
	return m.Labels.Proof()
}

// listing is how an API takes several messages in one request.
type listing struct {
	most    int // messages of a request
	request func(t Target, key string, items [][]byte) (request, error)
	// splits an answer into one for each message, with the status and the body that it would have alone, or nil
	// for a message that it doesn't mention. It reports false if the answer isn't to a list, but to the request
	// as a whole.
	split func(*exchange) (answers []*exchange, list bool)
}

// exchange is a request and its answer.
type exchange struct {
	target  Target
	adapter *adapter
	method  string
	to      []string // the recipients, as sent: the group's
	group   group
	status  int
	header  http.Header
	body    []byte
	now     time.Time // when the answer was read
}

// answer is a provider's answer about a request's recipients.
type answer struct {
	unreadable bool                 // it is not of the API's form: the status decides, or it is in doubt
	id         string               // the provider's, for all recipients that it took
	refusal    *refusal             // for all recipients; nil if it took them
	each       map[string]recipient // single recipients, by fold of the address, instead of id and refusal
	listed     bool                 // each lists all recipients: one that is missing is in doubt
	again      bool                 // recipients that are not in each were not taken because of the others
	// one of the recipients is refused, and none was taken. The answer doesn't name the refused one
	unnamed bool
}

// recipient is an answer's part about one recipient.
type recipient struct {
	id      string
	refusal *refusal // nil if it was taken
	doubt   error    // the answer contradicts itself
}

// fold makes addresses comparable: providers change their case.
func fold(address string) string { return strings.ToLower(strings.TrimSpace(address)) }

// refuse returns the answer of a provider that took the message for no recipient.
func refuse(m meaning, reason, text string) answer {
	return answer{refusal: &refusal{meaning: m, reason: reason, text: text}}
}

// encode returns the JSON of a request. Unlike json.Marshal it doesn't make six bytes of one in HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}

// decode reads an answer's JSON into v. It reports false if it isn't JSON, or has another form.
func (x *exchange) decode(v any) bool { return json.Unmarshal(x.body, v) == nil }

// id is an id in an answer: a text, or a number of any size.
type id string

// UnmarshalJSON implements [json.Unmarshaler].
func (i *id) UnmarshalJSON(raw []byte) error {
	var number json.Number
	if json.Unmarshal(raw, &number) == nil && number != "" {
		*i = id(number)
		return nil
	}
	return json.Unmarshal(raw, (*string)(i))
}

// ok reports whether the status says that the request was taken.
func (x *exchange) ok() bool { return x.status >= 200 && x.status < 300 }

// says reports whether a text contains any of some words, in any case.
func says(text string, words ...string) bool {
	text = strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, strings.ToLower(w)) {
			return true
		}
	}
	return false
}

// jsonHeader is the header of a request with JSON, and of an answer that shall be JSON.
func jsonHeader(more ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	for i := 0; i+1 < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}
