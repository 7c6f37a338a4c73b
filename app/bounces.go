package app

import (
	"context"

	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/server/smtpd"
)

// buildBounces makes what reads bounces, and the bounce listener if it is configured. Like the API, the listener is not
// part of a process that only delivers.
func (a *App) buildBounces(context.Context) error {
	c := a.cfg.Bounce
	var err error
	a.bounces, err = feedback.NewBounces(a.feedback, a.signedTokens, feedback.BounceOptions{Domain: c.Domain, Address: c.Address, Registry: a.metrics})
	if err != nil || a.cfg.Role == "worker" || c.Listen == "" && c.LMTP == "" {
		return err
	}
	tls := a.cfg.SMTPD.TLS
	a.bounceInlet, err = smtpd.NewBounceListener(a.bounces, smtpd.BounceOptions{LMTP: c.LMTP, Options: smtpd.Options{
		Listen: c.Listen, TLSCert: tls.Cert, TLSKey: tls.Key, Hostname: c.Hostname, MaxConnections: c.MaxConnections, Metrics: a.metrics, Logger: a.log,
	}})
	if err != nil {
		return err
	}
	a.life.onStop("listeners for returned mail", a.bounceInlet.Close)
	a.life.onRun("returned mail", a.bounceInlet.Run)
	return nil
}

// BounceAddr is the host:port of the bounce listener for SMTP; empty if this process has none.
func (a *App) BounceAddr() string {
	if a.bounceInlet == nil {
		return ""
	}
	return a.bounceInlet.Addr()
}

// BounceLMTP is the path or host:port of the bounce listener for LMTP; empty if this process has none.
func (a *App) BounceLMTP() string {
	if a.bounceInlet == nil {
		return ""
	}
	return a.bounceInlet.AddrLMTP()
}
