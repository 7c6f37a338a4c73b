package smtpd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// transaction is a message on its way in (RFC 5321 section 3.3).
type transaction struct {
	begun   bool // MAIL was accepted
	from    string
	to      []string
	refused bool // a recipient was
	utf8    bool
	report  report
	body    *body // nil until its first octet is expected

	requireTLS bool // only a relay with TLS may take it
}

// mail begins a message.
func (s *session) mail(ctx context.Context, arg string) reply {
	switch {
	case !s.greeted || s.t.begun:
		return badSequence
	case s.bounces == nil && s.login == nil && !s.mayLogIn() && s.cert != nil:
		return tlsFirst
	case s.bounces == nil && s.login == nil:
		return loginFirst
	}
	address, params, isPath := parsePath(arg, "FROM:")
	if !isPath {
		return syntax("Syntax: MAIL FROM:<address>")
	}
	t := transaction{begun: true}
	r := s.mailParams(&t, params)
	if r.code != 0 {
		return r
	}
	if t.from, r = normal(address, "sender", "5.1.7", t.utf8); r.code != 0 && address != "" {
		return r
	}
	if s.bounces == nil {
		if err := s.renew(ctx); err != nil {
			s.log.loginRefused(ctx, s.remote, s.tls, err)
			if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Forbidden) {
				s.login = nil
			}
			return refusal(err)
		}
	}
	s.t = t
	return ok
}

// mailParams reads the parameters of MAIL. The code of its reply is 0 unless one of them is refused.
func (s *session) mailParams(t *transaction, params []param) reply {
	for _, p := range params {
		switch p.name {
		case "SIZE":
			size, err := strconv.ParseUint(p.value, 10, 63)
			if err != nil {
				return syntax("SIZE must be a number")
			}
			if int64(size) > s.opts.MaxMessage {
				return tooLarge(s.opts.MaxMessage)
			}
		case "BODY":
			if body := strings.ToUpper(p.value); body != "7BIT" && body != "8BITMIME" {
				return syntax("BODY must be 7BIT or 8BITMIME")
			}
		case "SMTPUTF8", "REQUIRETLS":
			if p.value != "" {
				return syntax("%s takes no value", p.name)
			}
			if p.name == "REQUIRETLS" && !s.tls {
				return tlsFirst
			}
			t.utf8, t.requireTLS = t.utf8 || p.name == "SMTPUTF8", t.requireTLS || p.name == "REQUIRETLS"
		case "AUTH": // the author in the client's opinion (RFC 4954 section 5); the token decides
		case "RET", "ENVID":
			if r := t.report.mailParam(p); r.code != 0 {
				return r
			}
		default:
			return unknownParam(p)
		}
	}
	return reply{}
}

func (s *session) rcpt(_ context.Context, arg string) reply {
	if !s.t.begun || s.t.body != nil {
		return badSequence
	}
	r := s.addRecipient(arg)
	if r.code != ok.code {
		s.t.refused = true
	}
	return r
}

func (s *session) addRecipient(arg string) reply {
	address, params, isPath := parsePath(arg, "TO:")
	if !isPath {
		return syntax("Syntax: RCPT TO:<address>")
	}
	if len(s.t.to) >= s.opts.MaxRecipients {
		return reply{code: 452, enhanced: "4.5.3",
			text: "Too many recipients; send to the others in a further transaction"}
	}
	to, r := normal(address, "recipient", "5.1.3", s.t.utf8)
	if r.code != 0 {
		return r
	}
	if s.bounces != nil {
		if r := s.expected(to); r.code != 0 {
			return r
		}
	}
	report, r := s.t.report.with(params, to, len(s.t.to) == 0)
	if r.code != 0 {
		return r
	}
	s.t.report, s.t.to = report, append(s.t.to, to)
	return ok
}

// normal returns an address of the envelope in normal form. Beyond ASCII it needs SMTPUTF8 (RFC 6531).
func normal(address, who, enhanced string, utf8 bool) (string, reply) {
	if !utf8 && message.NeedsSMTPUTF8(address) {
		return "", reply{code: 553, enhanced: "5.6.7",
			text: "The " + who + " is not ASCII, and MAIL did not say SMTPUTF8"}
	}
	address, err := message.NormalizeAddress(address)
	if err != nil {
		return "", reply{code: 553, enhanced: enhanced, text: oneLine("The " + who + " " + err.Error())}
	}
	return address, reply{}
}

func (t *transaction) request(l *login, content []byte) api.SubmitRequest {
	return api.SubmitRequest{
		Account: l.account, KeyRequired: l.keyRequired, Bound: l.bound, Token: l.quotaID, TokenQuota: l.quota,
		Raw: content, DSN: t.report.dsn(),
		Envelope: &api.Envelope{From: t.from, To: slices.Clone(t.to)}, RequireTLS: t.requireTLS,
	}
}

// param is a parameter of MAIL or RCPT, its name in capitals.
type param struct{ name, value string }

func unknownParam(p param) reply {
	return reply{code: 555, enhanced: "5.5.4", text: oneLine("Parameter not supported: " + p.name)}
}

// parsePath splits FROM:<address> or TO:<address> from the parameters behind it. Devices write blanks
// after the colon and addresses without brackets, so both are accepted. A source route before the address is
// ignored (RFC 5321 section 4.1.1.3).
func parsePath(arg, keyword string) (address string, params []param, isPath bool) {
	if len(arg) < len(keyword) || !strings.EqualFold(arg[:len(keyword)], keyword) {
		return "", nil, false
	}
	path := strings.TrimLeft(arg[len(keyword):], " ")
	var rest string
	if end := closingBracket(path); end > 0 {
		address, rest = withoutRoute(path[1:end]), path[end+1:]
	} else if address, _, _ = strings.Cut(path, " "); address == "" || strings.ContainsAny(address, "<>,;") {
		return "", nil, false
	} else {
		rest = path[len(address):]
	}
	if rest != "" && rest[0] != ' ' {
		return "", nil, false
	}
	for field := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(field, "=")
		if strings.ContainsAny(name, "<>@,;") { // a second address
			return "", nil, false
		}
		params = append(params, param{strings.ToUpper(name), value})
	}
	return address, params, true
}

// withoutRoute removes a source route, such as "@a.example,@b.example:" (RFC 5321 appendix C).
func withoutRoute(path string) string {
	route, address, found := strings.Cut(path, ":")
	if !found || address == "" {
		return path
	}
	for host := range strings.SplitSeq(route, ",") {
		if host = strings.TrimSpace(host); len(host) < 2 || host[0] != '@' || strings.ContainsAny(host[1:], `@" `) {
			return path
		}
	}
	return address
}

// closingBracket returns the index of the > that ends a path, or -1. A quoted local part may contain others.
func closingBracket(path string) int {
	if path == "" || path[0] != '<' {
		return -1
	}
	quoted := false
	for i := 1; i < len(path); i++ {
		switch c := path[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return i
		}
	}
	return -1
}
