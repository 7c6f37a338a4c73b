package testapi

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/mail"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
)

// provider is the API of one provider. Its functions run side by side.
type provider struct {
	auth   func(*call) (refusal answer, ok bool)
	routes []route
	lost   func(c *call, status int) answer // no such path (404) or method (405)
	says   func(*call) map[Say]answer

	// key returns the idempotency key of a request, or an empty text. It is nil where the provider has none.
	key     func(*call) string
	keyLife time.Duration
	repeat  func(first answer, what repetition) answer
}

// providers has a function for each provider.
var providers = map[string]func() provider{
	"http": httpAPI, "postmark": postmark, "resend": resend, "mailjet": mailjet, "sendgrid": sendgrid,
	"brevo": brevo, "ses": ses, "mailgun": mailgun, "sparkpost": sparkpost, "mandrill": mandrill,
}

// object is a JSON object.
type object = map[string]any

// route is one operation. "{}" in its path stands for any segment, which the call has in args.
type route struct {
	method, path string
	do           func(*call) answer
}

// call is a request that arrived completely, and what its handler needs to answer it.
type call struct {
	*Server
	r      *http.Request
	body   []byte
	number int
	o      Options
	now    time.Time
	args   []string
	taken  []Delivery // accepted by this request
}

// route finds the handler of an authorized request, or the answer without one.
func (p provider) route(c *call) (answer, func(*call) answer) {
	if refusal, ok := p.auth(c); !ok {
		return refusal, nil
	}
	status := http.StatusNotFound
	for _, r := range p.routes {
		args, ok := match(r.path, c.r.URL.EscapedPath())
		if ok && r.method == c.r.Method {
			c.args = args
			return answer{}, r.do
		}
		if ok {
			status = http.StatusMethodNotAllowed
		}
	}
	return p.lost(c, status), nil
}

func match(pattern, path string) (args []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	for i := range want {
		if want[i] != "{}" && want[i] != have[i] {
			return nil, false
		}
		if want[i] == "{}" {
			arg, _ := url.PathUnescape(have[i])
			args = append(args, arg)
		}
	}
	return args, true
}

// take accepts a message for recipients. The server keeps it unless the exchange was cut before.
func (c *call) take(d Delivery, to ...string) {
	d.Request = c.number
	if m, err := mail.ReadMessage(bytes.NewReader(d.MIME)); err == nil {
		d.Header = m.Header
	}
	for _, d.To = range to {
		c.taken = append(c.taken, d)
	}
}

// later accepts a message, and drops it if the recipient is suppressed. Many providers do that, and report it
// by a webhook only.
func (c *call) later(d Delivery, to string) {
	if _, no := c.o.inactive(to); !no {
		c.take(d, to)
	}
}

// serial returns a number that no other message of this server has.
func (c *call) serial() int64 { return c.last.Add(1) }

// bearer returns the part of Authorization after the scheme.
func (c *call) bearer(scheme string) string {
	token, _ := strings.CutPrefix(c.r.Header.Get("Authorization"), scheme+" ")
	return token
}

// isJSON reports whether the request says that its body is JSON.
func (c *call) isJSON() bool {
	kind, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	return kind == "application/json"
}

// decode reads the body. Some providers refuse a field that they don't know.
func (c *call) decode(into any, unknown bool) error { return decode(c.body, into, unknown) }

func decode(raw []byte, into any, unknown bool) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if !unknown {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON")
	}
	return nil
}

// address reads one address, with or without a name. It returns an empty text if its syntax is wrong.
func address(text string) (addr string) {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return ""
	}
	_, domain, _ := strings.Cut(a.Address, "@")
	labels := strings.Split(domain, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.Trim(l, "-") != l || strings.ContainsAny(l, " _+@[]") {
			return ""
		}
	}
	if len(labels) < 2 || len(a.Address) > 254 {
		return ""
	}
	return a.Address
}

// addresses reads a list, and returns the first entry that is wrong.
func addresses(list []string) (all []string, wrong string, ok bool) {
	for _, text := range list {
		addr := address(text)
		if addr == "" {
			return nil, text, false
		}
		all = append(all, addr)
	}
	return all, "", true
}

// sender reports whether the account may send as an address.
func (o Options) sender(addr string) bool {
	_, domain, _ := strings.Cut(addr, "@")
	return len(o.Verified) == 0 || slices.ContainsFunc(o.Verified, func(v string) bool {
		return strings.EqualFold(v, addr) || strings.EqualFold(v, domain)
	})
}

// inactive returns why an address is on the suppression list.
func (o Options) inactive(addr string) (reason string, ok bool) {
	for a, reason := range o.Inactive {
		if strings.EqualFold(a, addr) {
			return reason, true
		}
	}
	return "", false
}

// dead returns the suppression list, in the order of the alphabet.
func (o Options) dead() []string { return slices.Sorted(maps.Keys(o.Inactive)) }

// domains returns the domains that the account may send from.
func (o Options) domains() (all []string) {
	for _, v := range o.Verified {
		if _, domain, ok := strings.Cut(v, "@"); ok {
			v = domain
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// decoded reads an attachment.
func decoded(text string) ([]byte, bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	return raw, err == nil && text != ""
}

// field reports whether a header field can be sent as it is.
func field(name, value string) bool {
	return textproto.TrimString(name) != "" && !strings.ContainsAny(name, " :\r\n") &&
		!strings.ContainsAny(value, "\r\n")
}

// reserved reports whether a header field is one of a list.
func reserved(name, list string) bool {
	return slices.Contains(strings.Fields(list), strings.ToLower(name))
}

// uuid returns a new random id.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// keyed is the record of an idempotency key.
type keyed struct {
	body   [sha256.Size]byte
	until  time.Time
	done   bool
	answer answer
}

// repetition is how a request relates to the first one with its key.
type repetition int

const (
	sameBytes repetition = iota
	otherBytes
	inFlight
)

// claim makes a request the first one with its key. If it isn't, claim returns what the provider answers.
func (s *Server) claim(c *call, key string) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(c.body)
	k := s.keys[key]
	switch {
	case k == nil || k.done && c.now.After(k.until):
		s.keys[key] = &keyed{body: sum, until: c.now.Add(s.provider.keyLife)}
		return answer{}, false
	case !k.done:
		return s.provider.repeat(answer{}, inFlight), true
	case k.body != sum:
		return s.provider.repeat(k.answer, otherBytes), true
	}
	return s.provider.repeat(k.answer, sameBytes), true
}

// release frees a key whose request was not accepted.
func (s *Server) release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.keys[key]; k != nil && !k.done {
		delete(s.keys, key)
	}
}
