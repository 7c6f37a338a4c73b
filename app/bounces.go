package app

import (
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/server/smtpd"
)

// buildBounces builds the bounce reader, and the bounce listener if it is configured. A process that only
// delivers has no listener and no API.
func (a *App) buildBounces() (err error) {
	c := a.cfg.Bounce
	a.bounces = feedback.NewBounces(a.feedback, feedback.BounceOptions{Domain: c.Domain, Address: c.Address,
		Registry: a.metrics})
	if !a.serves || c.Listen == "" && c.LMTP == "" {
		return nil
	}
	tls := a.cfg.SMTPD.TLS
	a.bounceInlet, err = smtpd.NewBounceListener(a.bounces, smtpd.BounceOptions{
		LMTP: c.LMTP, Options: smtpd.Options{
			Listen: c.Listen, TLSCert: tls.Cert, TLSKey: tls.Key, Hostname: c.Hostname,
			Proxies: a.speaking(c.ProxyProtocol), MaxConnections: c.MaxConnections,
			MaxConnectionsPerAddress: c.MaxConnectionsPerAddress, MinRate: int64(a.cfg.HTTP.MinRate),
			Metrics: a.metrics, Logger: a.log,
		}})
	if err != nil {
		return err
	}
	a.life.onStop("listeners for returned mail", a.bounceInlet.Close)
	a.life.onRun("returned mail", a.bounceInlet.Run)
	return nil
}
