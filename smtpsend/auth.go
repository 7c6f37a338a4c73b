package smtpsend

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-sasl"

	"github.com/postroom/postroom/internal/message"
)

// The login mechanisms.
const (
	mechPlain       = "PLAIN"
	mechLogin       = "LOGIN"
	mechXOAuth2     = "XOAUTH2"
	mechOAuthBearer = "OAUTHBEARER"
)

// authenticate logs in (RFC 4954). It refuses to do so in clear, except on this machine or with
// AllowInsecureAuth.
func (c *session) authenticate(ctx context.Context) *Error {
	begun := time.Now()
	defer func() { c.timings.Auth = time.Since(begun) }()
	if c.tls == "" && !c.relay.AllowInsecureAuth && !c.onLoopback() {
		return noAuth(errors.New("refusing to send credentials over an unencrypted connection"))
	}
	name, mech, err := c.mechanism()
	if err != nil {
		return noAuth(err)
	}
	_, first, err := mech.Start()
	if err != nil {
		return noAuth(fmt.Errorf("AUTH %s: %w", name, err))
	}
	command := "AUTH " + name
	line := command
	if first != nil { // an empty initial response is "=" (RFC 4954 section 4)
		line += " " + cmp.Or(base64Of(string(first)), "=")
	}
	c.record.said(command)
	r, ioErr := c.ask(c.setupTimeout(), line)
	for round := 0; ioErr == nil && r.code == 334; round++ {
		c.record.heard(reply{code: 334, text: "(a challenge, not shown)"})
		c.record.said("(the answer, not shown)")
		r, ioErr = c.answer(mech, r, round)
	}
	if ioErr == nil {
		r.text = message.Mask(r.text, c.relay.secrets()) // some relays repeat our commands
		c.record.heard(r)
	}
	return c.judge(ctx, PhaseAuth, command, r, ioErr)
}

// answer replies to one challenge, or cancels the exchange with "*" after an invalid one.
func (c *session) answer(mech sasl.Client, r reply, round int) (reply, error) {
	const tooMany = 8
	challenge, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.text))
	if err == nil && round < tooMany {
		var response []byte
		if response, err = mech.Next(challenge); err == nil {
			return c.ask(c.setupTimeout(), base64Of(string(response)))
		}
	}
	out, err := c.ask(c.setupTimeout(), "*")
	if err == nil && out.code == 334 {
		return reply{}, fmt.Errorf("%w: the relay asks on after the login was cancelled", errProtocol)
	}
	return out, err
}

// mechanism returns the first mechanism that the relay offers and the credentials allow.
func (c *session) mechanism() (string, sasl.Client, error) {
	wanted := []string{mechPlain, mechLogin}
	if method := strings.ToUpper(c.relay.AuthMethod); method != "" {
		wanted = []string{method}
	} else if c.relay.AccessToken != "" {
		wanted = []string{mechXOAuth2, mechOAuthBearer}
	}
	for _, name := range wanted {
		if slices.Contains(c.ext.auth, name) {
			return name, c.relay.client(name), nil
		}
	}
	offered := message.Clip(printableText(strings.Join(c.ext.auth, " ")), 200)
	return "", nil, fmt.Errorf("no login method in common: Postroom would use %s, the relay offers %s",
		strings.Join(wanted, " or "), cmp.Or(offered, "no AUTH at all"))
}

func (r *Relay) client(mech string) sasl.Client {
	switch mech {
	case mechLogin:
		return &loginClient{answers: []string{r.Username, r.Password}}
	case mechXOAuth2:
		return xoauth2Client{username: r.Username, token: r.AccessToken}
	case mechOAuthBearer:
		return sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: r.Username, Token: r.AccessToken,
			Host: r.Host, Port: r.Port})
	default:
		return sasl.NewPlainClient("", r.Username, r.Password)
	}
}

// noAuth is a login that was not tried.
func noAuth(err error) *Error {
	e := newError(PhaseAuth, Auth, ScopeAccount, nameNoAuth, err)
	e.Command = "AUTH"
	return e
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// loginClient is the LOGIN mechanism. Its prompts were never specified ("Username:", "User Name",
// "VXNlcm5hbWU6" twice), so they are ignored: the first answer is the name, the second the password.
type loginClient struct{ answers []string }

func (l *loginClient) Start() (string, []byte, error) { return mechLogin, nil, nil }

func (l *loginClient) Next([]byte) ([]byte, error) {
	if len(l.answers) == 0 {
		return nil, errors.New("LOGIN asked more than twice")
	}
	answer := l.answers[0]
	l.answers = l.answers[1:]
	return []byte(answer), nil
}

// xoauth2Client is Google's and Microsoft's mechanism for OAuth 2.0 tokens. A challenge means that the token
// was refused. The server sends the refusal after an empty answer.
type xoauth2Client struct{ username, token string }

func (x xoauth2Client) Start() (string, []byte, error) {
	return mechXOAuth2, []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

func (x xoauth2Client) Next([]byte) ([]byte, error) { return []byte{}, nil }
