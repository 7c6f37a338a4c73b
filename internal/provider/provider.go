package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// Name is a provider, as in the path of its webhook.
type Name string

// The providers. Generic is any sender of the JSON in docs/provider-webhooks.md that signs by Standard
// Webhooks or sends a secret.
const (
	SES       Name = "ses"
	SendGrid  Name = "sendgrid"
	Mailgun   Name = "mailgun"
	Postmark  Name = "postmark"
	Mailjet   Name = "mailjet"
	SparkPost Name = "sparkpost"
	Brevo     Name = "brevo"
	Resend    Name = "resend"
	Postal    Name = "postal"
	Mandrill  Name = "mandrill"
	Generic   Name = "generic"
)

// entry is one provider of the table.
type entry struct {
	name Name
	// window is the greatest age of a signed time; zero means that no time is signed. It covers the provider's
	// retries, which may repeat the first signature: refusing them would lose the events of an outage.
	window time.Duration
	key    func(secret string) (key, error)
	read   func(*reading, Request) error
}

// table lists the providers. To add a provider, add a line here and its own file.
func table() []entry {
	return []entry{
		{SES, 75 * time.Minute, topicKey, readSES},                  // SNS retries for an hour at most
		{SendGrid, 25 * time.Hour, sendgridKey, each(sendgridFact)}, // retries for 24 hours
		{Mailgun, 9 * time.Hour, mailgunKey, readMailgun},           // retries for 8 hours
		{Postmark, 0, sharedKey, each(postmarkFact)},                // signs nothing
		{Mailjet, 0, sharedKey, each(mailjetFact)},                  // signs nothing
		{SparkPost, 0, sharedKey, each(sparkpostFact)},              // signs nothing
		{Brevo, 0, sharedKey, each(brevoFact)},                      // signs nothing
		{Resend, 5 * time.Minute, standardKey, readResend},          // signs each retry again
		{Postal, 0, postalKey, each(postalFact)},                    // signs no time
		{Mandrill, 0, mandrillKey, readMandrill},                    // signs no time
		// Standard Webhooks asks to sign each retry again
		{Generic, 5 * time.Minute, genericKey, readGeneric},
	}
}

// Names lists the providers, in the order of the documentation.
func Names() []Name {
	var names []Name
	for _, e := range table() {
		names = append(names, e.name)
	}
	return names
}

func lookup(name Name) (entry, error) {
	for _, e := range table() {
		if e.name == name {
			return e, nil
		}
	}
	return entry{}, fault.New(fault.NotFound, "ProviderUnknown", "There is no provider with this name")
}

// Request is a received HTTP request.
type Request struct {
	Header http.Header
	Query  url.Values // for a shared secret in the address; nil if none
	Body   []byte     // as it came, unchanged

	Addresses []string // where the provider may have been configured to post; Mandrill signs that

	KeepRaw bool // events have Raw
}

// Options are what a Verifier needs to check requests.
type Options struct {
	// Secrets are what the provider signs with or sends. Any of them is accepted, so an old one can stay while a
	// new one is introduced. At least one is needed. The form of a secret depends on the provider:
	//
	//   - SES: the ARN of an accepted SNS topic. An Amazon signature alone proves only that the sender has a
	//     topic.
	//   - SendGrid: the verification key of the signed event webhook, base64.
	//   - Mailgun: the HTTP webhook signing key.
	//   - Resend: the signing secret, whsec_ and base64.
	//   - Postal: the public key of the installation, base64, or its DKIM record.
	//   - Mandrill: the key of the webhook.
	//   - Generic: whsec_… (HMAC) or whpk_… (ed25519) of Standard Webhooks, or a shared secret.
	//   - Postmark, Mailjet, SparkPost, Brevo: a shared secret of 16 to 256 characters, or user:password for
	//     basic authentication.
	Secrets []string

	Window time.Duration // greatest age of a signed time; zero is long enough for the provider's retries

	// Transport fetches SNS certificates, for SES only. If nil, it reaches any address except the ones that are
	// never dialed, through the proxy of the environment
	Transport http.RoundTripper
	// Bind binds a single-use token to the digest of an event until the given time, and returns the digest of
	// the first call. The same event again isn't a replay: our answer was lost. Needed for Mailgun.
	Bind func(ctx context.Context, token, digest string, until time.Time) (bound string, err error)
}

// Verifier checks that requests come from one provider. It is safe for concurrent use.
type Verifier struct {
	keys   []key
	window time.Duration
	bind   func(ctx context.Context, token, digest string, until time.Time) (string, error)
	certs  *certificateCache
}

// incoming is a request during verification. If the proof is in the body, the body is parsed once for all
// keys: it may be hostile and large.
type incoming struct {
	Request
	parsed           bool
	event, signature object // of Mailgun; for SNS, event is the envelope
	err              error
}

// key is one parsed secret.
type key interface {
	verify(ctx context.Context, v *Verifier, r *incoming, now time.Time) error
}

// New makes a Verifier for a provider. A wrong name or secret is an error of kind NotFound or Invalid.
func New(name Name, o Options) (*Verifier, error) {
	e, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if len(o.Secrets) == 0 || len(o.Secrets) > maxSecrets {
		return nil, fault.New(fault.Invalid, "ProviderSecret", "Between 1 and %d secrets are needed for %s",
			maxSecrets, name)
	}
	v := &Verifier{window: o.Window, bind: o.Bind,
		certs: &certificateCache{client: certificateClient(o.Transport), kept: map[string]certificate{}}}
	v.window = cmp.Or(max(v.window, 0), e.window)
	for i, secret := range o.Secrets {
		k, err := e.key(secret)
		if err != nil {
			return nil, fault.InvalidField(secretField(i), "%s", err)
		}
		v.keys = append(v.keys, k)
	}
	if name == Mailgun && v.bind == nil {
		return nil, errors.New("new verifier: Mailgun needs Bind")
	}
	return v, nil
}

// Verify returns nil if the request is the provider's. Otherwise it returns Unauthorized with one of the
// codes SignatureMissing, SignatureMismatch, SignatureStale, TokenReused, TopicUnknown, CertificateRefused.
// It returns TooLarge for a body beyond MaxBody, and Unavailable if a certificate or the token store is out
// of reach.
func (v *Verifier) Verify(ctx context.Context, r Request, now time.Time) error {
	if len(r.Body) > MaxBody {
		return tooLarge()
	}
	var first error
	in := &incoming{Request: r}
	for _, k := range v.keys {
		err := k.verify(ctx, v, in, now)
		if err == nil {
			return nil
		}
		if first == nil || notMeant(first) {
			first = err
		}
	}
	return first
}

// notMeant reports whether err is a key's that does not fit at all. A key that fits and refuses, for example
// because of the age, gives a better error.
func notMeant(err error) bool {
	switch fault.CodeOf(err) {
	case codeMissing, codeMismatch, codeTopic:
		return true
	}
	return false
}

// Read returns the events of a body. After an error, the body is not this provider's or too large, and must
// not be used at all. From the header it reads Content-Type and the id of Standard Webhooks.
func Read(name Name, r Request) (Batch, error) {
	e, err := lookup(name)
	if err != nil {
		return Batch{}, err
	}
	if len(r.Body) > MaxBody {
		return Batch{}, tooLarge()
	}
	in := &reading{provider: name, keepRaw: r.KeepRaw}
	if err := e.read(in, r); err != nil {
		return Batch{}, err
	}
	return in.batch, nil
}
