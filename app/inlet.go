package app

import (
	"context"

	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/smtpd"
)

// speaking returns the proxies of an SMTP listener; nil if they do not speak the PROXY protocol there.
func (a *App) speaking(protocol bool) *peers.Proxies {
	if !protocol {
		return nil
	}
	return a.proxies
}

// buildInlet builds the SMTP listener for applications if it is configured. A process that only delivers has
// no such listener and no API.
func (a *App) buildInlet(context.Context) error {
	c := a.cfg.SMTPD
	if a.cfg.Role == "worker" || c.Listen == "" && c.ListenTLS == "" {
		return nil
	}
	inlet, err := smtpd.New(smtpd.Parts{Submit: a.outbox.Intake.SubmitSMTP, Accounts: a.accounts,
		Access: a.access, Audit: a.audit},
		smtpd.Options{
			Listen: c.Listen, ListenTLS: c.ListenTLS, TLSCert: c.TLS.Cert, TLSKey: c.TLS.Key, Hostname: c.Hostname,
			InsecureAuth: c.InsecureAuth, Proxies: a.speaking(c.ProxyProtocol),
			MaxMessage: int64(a.cfg.Message.MaxSize), MaxRecipients: c.MaxRecipients,
			MaxConnections: c.MaxConnections, MaxConnectionsPerAddress: c.MaxConnectionsPerAddress,
			BodyMemory: int64(a.cfg.HTTP.BodyMemory), MinRate: int64(a.cfg.HTTP.MinRate),
			IdleTimeout: c.IdleTimeout, Metrics: a.metrics, Logger: a.log,
		})
	if err != nil {
		return err
	}
	a.life.onStop("smtp listeners", inlet.Close)
	a.life.onRun("smtp", inlet.Run)
	a.inlet = inlet
	return nil
}
