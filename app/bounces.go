package app

import (
	"bytes"
	"context"

	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/server/smtpd"
)

// buildBounces makes what takes in mail that came back, and its doors for mail servers, where the settings ask for them. Like the API, they are
// not served by a process that only delivers.
func (a *App) buildBounces(context.Context) error {
	c := a.cfg.Bounce
	var err error
	a.bounces, err = feedback.NewBounces(a.feedback, a.signedTokens, feedback.BounceOptions{Domain: c.Domain, Address: c.Address, Registry: a.metrics})
	if err != nil || a.cfg.Role == "worker" || c.Listen == "" && c.LMTP == "" {
		return err
	}
	tls := a.cfg.SMTPD.TLS
	a.bounceInlet, err = smtpd.NewBounceListener(returned{a.bounces}, smtpd.BounceOptions{LMTP: c.LMTP, Options: smtpd.Options{
		Listen: c.Listen, TLSCert: tls.Cert, TLSKey: tls.Key, Hostname: c.Hostname, MaxConnections: c.MaxConnections, Metrics: a.metrics, Logger: a.log,
	}})
	if err != nil {
		return err
	}
	a.life.onStop("listeners for returned mail", a.bounceInlet.Close)
	a.life.onRun("returned mail", a.bounceInlet.Run)
	return nil
}

// BounceAddr is the address of the door for mail that comes back over SMTP, host:port; empty when this process has none.
func (a *App) BounceAddr() string {
	if a.bounceInlet == nil {
		return ""
	}
	return a.bounceInlet.Addr()
}

// BounceLMTP is the same for LMTP: a path, or host:port.
func (a *App) BounceLMTP() string {
	if a.bounceInlet == nil {
		return ""
	}
	return a.bounceInlet.AddrLMTP()
}

// returned gives the doors what takes in their mail.
type returned struct{ *feedback.Bounces }

// Returned implements smtpd.Returns.
func (r returned) Returned(ctx context.Context, mail []byte, to string) error {
	_, _, err := r.Bounces.Receive(ctx, bytes.NewReader(mail), to)
	return err
}
