package routing

import (
	"context"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// Transport hands one message to one relay. It does not retry.
type Transport interface {
	// Send lists every recipient in the order of Message.To. Nothing can be delivered before Message.BeforeDot
	// and Message.AtDot have returned nil. The error is nil or an *smtpsend.Error.
	Send(ctx context.Context, to gateways.Relay, m smtpsend.Message) (smtpsend.Result, error)
	// Verify makes a harmless attempt that shows whether the credentials are good.
	Verify(ctx context.Context, to gateways.Relay) error
}

// Transports are all transports, by a gateway's type. SMTP is required.
type Transports map[api.GatewayType]Transport

// of returns the transport for a relay.
func (t Transports) of(r gateways.Relay) Transport {
	if r.IsSMTP() {
		return t[api.GatewaySMTP]
	}
	return t[r.Type]
}

// Sender sends to one relay over SMTP. It is smtpsend.Sender.
type Sender interface {
	Send(ctx context.Context, relay smtpsend.Relay, m smtpsend.Message) (smtpsend.Result, error)
	Verify(ctx context.Context, relay smtpsend.Relay) error
}

// NewTransports returns the transports of SMTP, of the APIs of providers, and of direct delivery; those
// without a sender are missing.
func NewTransports(overSMTP Sender, overAPI *apisend.Sender, direct *mxsend.Sender) Transports {
	all := Transports{api.GatewaySMTP: smtpTransport{overSMTP}}
	if direct != nil {
		all[api.GatewayMX] = mxTransport{direct}
	}
	if overAPI != nil {
		for _, t := range apisend.Types() {
			all[t] = apiTransport{overAPI}
		}
	}
	return all
}

// smtpTransport is the transport of relays that speak SMTP.
type smtpTransport struct{ sender Sender }

func (t smtpTransport) Send(ctx context.Context, to gateways.Relay, m smtpsend.Message) (smtpsend.Result,
	error) {
	r, err := t.sender.Send(ctx, to.SMTP, attach(ctx, m, to.SMTP.Host))
	NameByReply(to.SMTP.Host, r)
	return r, err
}

// NameByReply fills in Provider and ProviderID of the recipients that a provider took over SMTP: its host
// tells who it is, and its reply has the id.
func NameByReply(host string, r smtpsend.Result) {
	n, known := provider.OfRelay(host)
	for i := range r.Recipients {
		if one := &r.Recipients[i]; known && one.Err == nil {
			one.Provider, one.ProviderID = string(n), provider.AnsweredID(n, one.Response)
		}
	}
}

func (t smtpTransport) Verify(ctx context.Context, to gateways.Relay) error {
	return t.sender.Verify(ctx, to.SMTP)
}

// apiTransport is the transport of the APIs of providers.
type apiTransport struct{ sender *apisend.Sender }

func (t apiTransport) Send(ctx context.Context, to gateways.Relay, m smtpsend.Message) (smtpsend.Result,
	error) {
	r, err := t.sender.Send(ctx, to.API, m)
	name := string(to.Type)
	if to.Type == api.GatewayHTTP {
		name = string(provider.Generic)
	}
	for i := range r.Recipients {
		r.Recipients[i].Provider = name
	}
	return r, err
}

func (t apiTransport) Verify(ctx context.Context, to gateways.Relay) error {
	return t.sender.Verify(ctx, to.API)
}

// mxTransport is the transport straight to the recipients' mail servers.
type mxTransport struct{ sender *mxsend.Sender }

func (t mxTransport) Send(ctx context.Context, to gateways.Relay, m smtpsend.Message) (smtpsend.Result,
	error) {
	return t.sender.Send(ctx, to.MX, m)
}

func (t mxTransport) Verify(ctx context.Context, to gateways.Relay) error {
	return t.sender.Verify(ctx, to.MX)
}
