package provider

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/postroom/postroom/fault"
)

// Name is a provider, as it stands in the path of its webhook.
type Name string

// The providers. Generic is anybody who can sign by Standard Webhooks, or send a secret in a header, and write the JSON that is described
// in docs/provider-webhooks.md.
const (
	SES       Name = "ses"
	SendGrid  Name = "sendgrid"
	Mailgun   Name = "mailgun"
	Postmark  Name = "postmark"
	Mailjet   Name = "mailjet"
	SparkPost Name = "sparkpost"
	Brevo     Name = "brevo"
	Resend    Name = "resend"
	Generic   Name = "generic"
)

// entry is one provider of the table.
type entry struct {
	name Name
	// window is how old a signed time may be. It covers the provider's retries, which may repeat the first signature: refusing those would
	// lose what was told while we were away. Zero where no time is signed.
	window time.Duration
	key    func(secret string) (key, error)
	read   func(*reading, Request) error
}

// table is all that is known about providers, one line each. A provider is added here, and in a file of its own.
func table() []entry {
	return []entry{
		{SES, 75 * time.Minute, topicKey, readSES},                  // SNS retries for an hour at most
		{SendGrid, 25 * time.Hour, sendgridKey, each(sendgridFact)}, // retries for 24 hours
		{Mailgun, 9 * time.Hour, mailgunKey, readMailgun},           // retries for 8 hours
		{Postmark, 0, sharedKey, each(postmarkFact)},                // signs nothing
		{Mailjet, 0, sharedKey, each(mailjetFact)},                  // signs nothing
		{SparkPost, 0, sharedKey, each(sparkpostFact)},              // signs nothing
		{Brevo, 0, sharedKey, each(brevoFact)},                      // signs nothing
		{Resend, 5 * time.Minute, standardKey, readResend},          // signs each retry anew
		{Generic, 5 * time.Minute, genericKey, readGeneric},         // Standard Webhooks asks to sign each retry anew
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
	return entry{}, fault.New(fault.NotFound, "ProviderUnknown", "There is no mail provider of this name")
}

// Request is what came in over HTTP.
type Request struct {
	Header http.Header
	Query  url.Values // for a shared secret in the address; nil: none
	Body   []byte     // as it came, unchanged

	KeepRaw bool // events have Raw
}

// Options say what a provider's requests are recognised by.
type Options struct {
	// Secrets are what the provider signs with or sends along; any of them will do, so an old one can stay while a new one is introduced.
	// At least one is needed. What a secret is depends on the provider:
	//
	//   - SES: the ARN of an SNS topic that may tell us something. An Amazon signature alone proves only that somebody has a topic.
	//   - SendGrid: the verification key of the signed event webhook, base64.
	//   - Mailgun: the HTTP webhook signing key.
	//   - Resend: the signing secret, whsec_ and base64.
	//   - Generic: whsec_… (HMAC) or whpk_… (ed25519) of Standard Webhooks, or a shared secret.
	//   - Postmark, Mailjet, SparkPost, Brevo: a shared secret of 16 to 256 characters, or user:password for basic authentication.
	Secrets []string

	Window time.Duration // how old a signed time may be; zero: what covers the provider's retries

	Certificates Certificates // where SNS certificates are fetched, for SES only; nil: over HTTPS
	Roots        Roots        // what SNS certificates must lead to, for SES only; zero: HTTPS from a host of SNS vouches for them
	Tokens       Tokens       // what remembers tokens, for Mailgun only; nil: the memory of this Verifier
}

// Verifier tells whether requests are those of one provider. It may be used by many goroutines at once.
type Verifier struct {
	keys   []key
	window time.Duration
	tokens Tokens
	certs  *certificateCache
}

// incoming is a request that is being verified. Where the proof stands in the body, the body is parsed once, however many keys look at it:
// it may be a stranger's, and large.
type incoming struct {
	Request
	parsed           bool
	event, signature object // of Mailgun; for SNS, event is the envelope
	err              error
}

// key is one secret, made ready.
type key interface {
	verify(ctx context.Context, v *Verifier, r *incoming, now time.Time) error
}

// New makes a Verifier for a provider. A name or a secret that can't be used is an error of kind NotFound or Invalid.
func New(name Name, o Options) (*Verifier, error) {
	e, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if len(o.Secrets) == 0 || len(o.Secrets) > maxSecrets {
		return nil, fault.New(fault.Invalid, "ProviderSecret", "Between 1 and %d secrets are needed for %s", maxSecrets, name)
	}
	v := &Verifier{window: o.Window, tokens: o.Tokens}
	if v.window <= 0 {
		v.window = e.window
	}
	if v.tokens == nil {
		v.tokens = newTokenMemory()
	}
	for i, secret := range o.Secrets {
		k, err := e.key(secret)
		if err != nil {
			return nil, fault.InvalidFields([]fault.Field{{Key: secretField(i), Message: err.Error()}})
		}
		v.keys = append(v.keys, k)
	}
	v.certs = newCertificateCache(o.Certificates, o.Roots)
	return v, nil
}

// Verify says whether the request is the provider's: nil if it is. A request that isn't is a fault of kind Unauthorized, whose code says
// why: SignatureMissing, SignatureMismatch, SignatureStale, TokenReused, TopicUnknown, CertificateRefused. A body beyond MaxBody is
// TooLarge. What couldn't be checked, because a certificate or the token store is out of reach, is Unavailable.
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

// notMeant reports whether a key doesn't fit at all. One that fits and refuses for another reason, such as the age, has more to say.
func notMeant(err error) bool {
	switch fault.CodeOf(err) {
	case codeMissing, codeMismatch, codeTopic:
		return true
	}
	return false
}

// Read says what a body tells. An error means that it is not a body of this provider, or too large; no event of it may be used then. Of the
// header it looks at Content-Type, and at the id that Standard Webhooks sends along.
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
