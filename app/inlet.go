package app

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/server/smtpd"
)

// buildInlet makes the door for applications that speak SMTP, where the settings ask for one. It stands beside the API: a process that
// only delivers has neither.
func (a *App) buildInlet(context.Context) error {
	c := a.cfg.SMTPD
	if a.cfg.Role == "worker" || c.Listen == "" && c.ListenTLS == "" {
		return nil
	}
	inlet, err := smtpd.New(smtpd.Parts{Outbox: a.outbox, Accounts: knownAccounts{a.accounts}, Access: a.access}, smtpd.Options{
		Listen: c.Listen, ListenTLS: c.ListenTLS, TLSCert: c.TLS.Cert, TLSKey: c.TLS.Key, Hostname: c.Hostname, InsecureAuth: c.InsecureAuth,
		MaxMessage: int64(a.cfg.Message.MaxSize), MaxRecipients: c.MaxRecipients, MaxConnections: c.MaxConnections,
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

// SMTPAddr is the address of the inlet for SMTP, host:port; empty when this process has none.
func (a *App) SMTPAddr() string {
	if a.inlet == nil {
		return ""
	}
	return a.inlet.Addr()
}

// SMTPSAddr is the same for SMTP with TLS from the first byte.
func (a *App) SMTPSAddr() string {
	if a.inlet == nil {
		return ""
	}
	return a.inlet.AddrTLS()
}

// knownAccounts tells the inlet which accounts there are.
type knownAccounts struct{ accounts *accounts.Accounts }

// Known implements smtpd.Accounts.
func (k knownAccounts) Known(ctx context.Context, account string) error {
	_, err := k.accounts.Resolve(ctx, account)
	return err
}
