package smtpsend

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-sasl"

	"github.com/postroom/postroom/message"
)

// The login mechanisms.
const (
	mechPlain       = "PLAIN"
	mechLogin       = "LOGIN"
	mechXOAuth2     = "XOAUTH2"
	mechOAuthBearer = "OAUTHBEARER"
)

// authenticate logs in (RFC 4954). It never does so in clear, save on this machine or where the operator
// insists.
func (c *session) authenticate(ctx context.Context) *Error {
	if c.tls == "" && !c.relay.AllowInsecureAuth && !c.onLoopback() {
		return c.noAuth(errors.New("refusing to send credentials over an unencrypted connection"))
	}
	name, mech, err := c.mechanism()
	if err != nil {
		return c.noAuth(err)
	}
	_, first, err := mech.Start()
	if err != nil {
		return c.noAuth(fmt.Errorf("AUTH %s: %w", name, err))
	}
	command := "AUTH " + name
	line := command
	if first != nil {
		line += " " + encodeResponse(first)
	}
	r, ioErr := c.ask(c.patience(), line)
	for round := 0; ioErr == nil && r.code == 334; round++ {
		r, ioErr = c.answer(mech, r, round)
	}
	if ioErr != nil {
		return c.sender.ioError(ctx, PhaseAuth, command, ioErr)
	}
	if !r.positive() {
		return c.sender.replyError(PhaseAuth, command, c.withoutSecrets(r), 0)
	}
	return nil
}

// answer replies to one challenge, or cancels the exchange with "*" when the challenge makes no sense.
func (c *session) answer(mech sasl.Client, r reply, round int) (reply, error) {
	const tooMany = 8
	challenge, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.text))
	if err == nil && round < tooMany {
		var response []byte
		if response, err = mech.Next(challenge); err == nil {
			return c.ask(c.patience(), base64.StdEncoding.EncodeToString(response))
		}
	}
	out, err := c.ask(c.patience(), "*")
	if err == nil && out.code == 334 {
		return reply{}, fmt.Errorf("%w: the relay asks on after the login was cancelled", errProtocol)
	}
	return out, err
}

// encodeResponse writes an initial response; an empty one is "=" (RFC 4954 section 4).
func encodeResponse(b []byte) string {
	if len(b) == 0 {
		return "="
	}
	return base64.StdEncoding.EncodeToString(b)
}

// mechanism chooses among what the relay offers and the credentials allow.
func (c *session) mechanism() (string, sasl.Client, error) {
	if want := strings.ToUpper(c.relay.AuthMethod); want != "" {
		if !c.ext.offersAuth(want) {
			return "", nil, fmt.Errorf("the relay does not offer AUTH %s%s", want, c.offered())
		}
		return want, c.client(want), nil
	}
	wanted := []string{mechPlain, mechLogin}
	if c.relay.AccessToken != "" {
		wanted = []string{mechXOAuth2, mechOAuthBearer}
	}
	for _, name := range wanted {
		if c.ext.offersAuth(name) {
			return name, c.client(name), nil
		}
	}
	return "", nil, fmt.Errorf("the relay offers no login method we have credentials for%s", c.offered())
}

func (c *session) offered() string {
	if len(c.ext.auth) == 0 {
		return ": it offers no AUTH at all"
	}
	return ": it offers " + message.Clip(printableText(strings.Join(c.ext.auth, " ")), 200)
}

func (c *session) client(mech string) sasl.Client {
	r := c.relay
	switch mech {
	case mechLogin:
		return &loginClient{username: r.Username, password: r.Password}
	case mechXOAuth2:
		return &xoauth2Client{username: r.Username, token: r.AccessToken}
	case mechOAuthBearer:
		return sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: r.Username, Token: r.AccessToken,
			Host: r.Host, Port: r.Port})
	default:
		return sasl.NewPlainClient("", r.Username, r.Password)
	}
}

func (c *session) noAuth(err error) *Error {
	return &Error{Phase: PhaseAuth, Command: "AUTH", Verdict: Auth, Scope: ScopeAccount, Err: err,
		name: nameNoAuth}
}

// withoutSecrets takes the credentials out of a reply: some relays repeat what they were sent.
func (c *session) withoutSecrets(r reply) reply {
	for _, mech := range []string{mechPlain, mechXOAuth2, mechOAuthBearer} {
		if _, first, err := c.client(mech).Start(); err == nil {
			r.text = strings.ReplaceAll(r.text, base64.StdEncoding.EncodeToString(first), "***")
		}
	}
	for _, secret := range []string{c.relay.Password, c.relay.AccessToken} {
		if secret == "" {
			continue
		}
		r.text = strings.ReplaceAll(r.text, base64.StdEncoding.EncodeToString([]byte(secret)), "***")
		r.text = strings.ReplaceAll(r.text, secret, "***")
	}
	return r
}

// loginClient is the LOGIN mechanism. Its prompts were never specified ("Username:", "User Name",
// "VXNlcm5hbWU6" twice), so they are not read: the first answer is the name, the second the password.
type loginClient struct {
	username, password string
	asked              int
}

func (l *loginClient) Start() (string, []byte, error) { return mechLogin, nil, nil }

func (l *loginClient) Next([]byte) ([]byte, error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte(l.username), nil
	case 2:
		return []byte(l.password), nil
	}
	return nil, errors.New("LOGIN asked more than twice")
}

// xoauth2Client is Google's and Microsoft's mechanism for OAuth 2.0 tokens. A challenge means the token was
// refused; the empty answer makes the server say so.
type xoauth2Client struct{ username, token string }

func (x *xoauth2Client) Start() (string, []byte, error) {
	return mechXOAuth2, []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

func (x *xoauth2Client) Next([]byte) ([]byte, error) { return []byte{}, nil }
