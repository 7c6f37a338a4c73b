package app

import (
	"bytes"
	"context"

	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/server/smtpd"
)

// buildReturns makes what takes in mail that came back, and its doors for mail servers, where the settings ask for them. Like the API, they are
// not served by a process that only delivers.
func (a *App) buildReturns(context.Context) error {
	c := a.cfg.Bounce
	var err error
	a.returns, err = feedback.NewReturns(a.feedback, a.signedTokens, feedback.ReturnOptions{Domain: c.Domain, Address: c.Address, Registry: a.metrics})
	if err != nil || a.cfg.Role == "worker" || c.Listen == "" && c.LMTP == "" {
		return err
	}
	tls := a.cfg.SMTPD.TLS
	a.returnDoor, err = smtpd.NewReturns(returned{a.returns}, smtpd.ReturnOptions{LMTP: c.LMTP, Options: smtpd.Options{
		Listen: c.Listen, TLSCert: tls.Cert, TLSKey: tls.Key, Hostname: c.Hostname, MaxConnections: c.MaxConnections, Metrics: a.metrics, Logger: a.log,
	}})
	if err != nil {
		return err
	}
	a.life.onStop("listeners for returned mail", a.returnDoor.Close)
	a.life.onRun("returned mail", a.returnDoor.Run)
	return nil
}

// ReturnsAddr is the address of the door for mail that comes back over SMTP, host:port; empty when this process has none.
func (a *App) ReturnsAddr() string {
	if a.returnDoor == nil {
		return ""
	}
	return a.returnDoor.Addr()
}

// ReturnsLMTP is the same for LMTP: a path, or host:port.
func (a *App) ReturnsLMTP() string {
	if a.returnDoor == nil {
		return ""
	}
	return a.returnDoor.AddrLMTP()
}

// returned gives the doors what takes in their mail.
type returned struct{ *feedback.Returns }

// Returned implements smtpd.Returns.
func (r returned) Returned(ctx context.Context, mail []byte, to string) error {
	_, _, err := r.Returns.Returned(ctx, bytes.NewReader(mail), to)
	return err
}
