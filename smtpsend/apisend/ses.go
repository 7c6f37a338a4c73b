package apisend

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
)

// ses is the Amazon SES API, version 2. It takes 7-bit MIME up to 40 MB in base64, and writes its own Date
// and Message-ID. The AWS SDK signs the requests and finds the machine's credentials. Its SES client isn't
// used, so that all providers share one way from the marks to the answer.
var ses = &adapter{
	base: func(t Target) string { return "https://email." + t.Region + ".amazonaws.com" },
	most: 50, size: 40 << 20 / 4 * 3,
	lacks: sesLacks, request: sesRequest, sign: sesSign, read: sesAnswer,
	check: func(Target) request {
		return request{path: "/v2/email/account", header: jsonHeader()}
	},
	checked: sesChecked, fine: sesMayOnlySend,
}

type sesMail struct {
	Content struct {
		Raw struct{ Data []byte } // base64
	}
	// the envelope; FromEmailAddress and ReplyToAddresses would replace header fields
	Destination          struct{ ToAddresses []string }
	ConfigurationSetName string   `json:",omitempty"` // Target.Pool
	EmailTags            []sesTag `json:",omitempty"`
}

type sesTag struct{ Name, Value string }

func sesLacks(_ Target, m *mail) string {
	switch {
	case slices.ContainsFunc(m.To, func(to string) bool { return !isASCII(to) }):
		return "an address that isn't ASCII"
	case bytes.ContainsFunc(m.raw, func(r rune) bool { return r == 0 || r >= utf8.RuneSelf }):
		return "8-bit content" // in a signed part; the composer encodes all other parts
	}
	return ""
}

// sesTagText matches the tag values that SES accepts.
var sesTagText = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

func sesRequest(t Target, m *mail, g group) (request, error) {
	body := sesMail{ConfigurationSetName: t.Pool}
	body.Content.Raw.Data = m.raw
	body.Destination.ToAddresses = g.all()
	if proof := m.proof(); sesTagText.MatchString(proof) {
		body.EmailTags = append(body.EmailTags, sesTag{provider.EchoField, proof})
	}
	name := "tag" // then tag2, tag3: SES accepts each name once
	for i, tag := range m.tags(10, 256) {
		if i > 0 {
			name = fmt.Sprintf("tag%d", i+1)
		}
		if sesTagText.MatchString(tag) {
			body.EmailTags = append(body.EmailTags, sesTag{name, tag})
		}
	}
	raw, err := encode(body)
	return request{path: "/v2/email/outbound-emails", header: jsonHeader(), body: raw}, err
}

// sesSign signs a request with the target's key. If it has none, sesSign uses the machine's credentials.
func sesSign(ctx context.Context, s *Sender, t Target, r *http.Request, body []byte) error {
	credentials := aws.Credentials{AccessKeyID: t.Key, SecretAccessKey: t.Secret}
	if t.Key == "" {
		var err error
		if credentials, err = s.machine.credentials(ctx, t.Region); err != nil {
			return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
				Scope: smtpsend.ScopeAccount, Err: fmt.Errorf("find AWS credentials on this machine: %w", err)}
		}
	}
	r.Header = r.Header.Clone()
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), "ses", t.Region, s.o.Now())
}

// machine finds AWS credentials where all AWS programs look: the environment, the shared files, a web
// identity, the container, the instance.
type machine struct {
	mu    sync.Mutex
	chain aws.CredentialsProvider // renews expired credentials; nil if not loaded yet
}

func (m *machine) credentials(ctx context.Context, region string) (aws.Credentials, error) {
	m.mu.Lock()
	chain := m.chain
	if chain == nil {
		found, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(region))
		if err != nil {
			m.mu.Unlock()
			return aws.Credentials{}, err
		}
		chain = found.Credentials
		m.chain = chain
	}
	m.mu.Unlock()
	return chain.Retrieve(ctx)
}

// sesSaid is the JSON of an answer.
type sesSaid struct {
	ID      id     `json:"MessageId"`
	Kind    string `json:"__type"`
	Message string `json:"message"`
}

// kind returns the name of an error, such as ThrottlingException of
// com.amazonaws.sesv2#ThrottlingException:http://….
func (s sesSaid) kind(h http.Header) string {
	kind, _, _ := strings.Cut(cmp.Or(h.Get("X-Amzn-Errortype"), s.Kind), ":")
	return kind[strings.LastIndexByte(kind, '#')+1:]
}

func sesAnswer(x *exchange) answer {
	var said sesSaid
	readable := x.decode(&said)
	if x.ok() {
		return answer{id: string(said.ID), unreadable: !readable || said.ID == ""}
	}
	kind := said.kind(x.header)
	r := refusal{reason: kind, text: said.Message}
	is := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(kind, p) })
	}
	switch {
	case kind == "":
		return answer{unreadable: true}
	case is("TooManyRequests", "Throttling") && says(r.text, "daily message quota"):
		r.meaning, r.wait = tooFast, 10*time.Minute
	case is("TooManyRequests", "Throttling"):
		r.meaning, r.wait = tooFast, time.Second
	case is("LimitExceeded"):
		r.meaning = tooFast
	case is("MessageRejected") && says(r.text, "not verified"),
		is("MailFromDomainNotVerified", "AccountSuspended", "SendingPaused"):
		r.meaning = badSender
	case is("MessageRejected", "BadRequestException"):
		r.meaning = badMessage
	case is("AccessDenied", "UnrecognizedClient", "ExpiredToken", "InvalidSignature"):
		r.meaning = badKey
		if says(r.text, "signature expired", "signature not yet current") {
			r.text = "the clock of this machine is wrong: " + r.text
		}
	case is("InternalFailure", "InternalServiceError", "ServiceUnavailable"):
		r.meaning = broken
	default:
		return x.general(kind, r.text)
	}
	return answer{refusal: &r}
}

// sesChecked judges the answer to a request for the account.
func sesChecked(x *exchange) *refusal {
	var account struct{ SendingEnabled *bool }
	if x.decode(&account) && account.SendingEnabled != nil && !*account.SendingEnabled {
		return &refusal{meaning: badSender, text: "SES paused sending for this account"}
	}
	return unless(account.SendingEnabled != nil)
}

// sesMayOnlySend reports whether the key is good but may not read the account.
func sesMayOnlySend(x *exchange) bool {
	var said sesSaid
	return x.decode(&said) && strings.HasPrefix(said.kind(x.header), "AccessDenied") &&
		says(said.Message, "ses:GetAccount")
}
