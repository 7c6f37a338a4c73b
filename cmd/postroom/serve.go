package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

const serveHelp = `Needs no configuration: it listens on 127.0.0.1:3000, stores its data in ./data, and starts its own Redis.

The first SIGINT (Ctrl-C) or SIGTERM stops it in order: it accepts nothing
new and finishes running attempts. The second stops it immediately; the next start continues the interrupted
attempts.`

// serveCmd runs Postroom until a signal stops it.
type serveCmd struct {
	settingsFlags
	Role   string `group:"settings" enum:",all,api,worker" default:"" placeholder:"ROLE" help:"Role of this process: all, api or worker."`
	Listen string `group:"settings" placeholder:"HOST:PORT" help:"Address of the API and the dashboard (http.listen)."`
	Redis  string `group:"settings" placeholder:"URL" help:"Redis URL (redis.url). Defaults to an embedded Redis."`
	Data   string `group:"settings" placeholder:"DIR" help:"Data directory (data)."`
	SMTP   string `group:"settings" name:"smtp" placeholder:"URL" help:"Relay of the default account (smtp), for example smtp://user:password@host:587. For a password, better use POSTROOM_SMTP_FILE."`
	From   string `group:"settings" placeholder:"MAILBOX" help:"Sender of the default account (from)."`
}

func (s *serveCmd) Run(ctx context.Context, con *console) error {
	settings, err := s.load(map[string]string{
		"role": s.Role, "http.listen": s.Listen, "redis.url": s.Redis, "data": s.Data, "smtp": s.SMTP,
		"from": s.From,
	})
	if err != nil {
		return err
	}
	logger := app.NewLogger(settings.Log, os.Stderr)
	for _, w := range settings.Warnings {
		logger.Warn("settings", "warning", w)
	}
	a, err := app.New(ctx, &settings.Config, app.Options{Version: version(), Logger: logger,
		Configuration: settings.Rows()})
	if err != nil {
		return takenPort(&settings.Config, err)
	}
	link, err := a.FirstLink(ctx)
	if err != nil {
		logger.Warn("no link for the first admin", "error", err)
	}
	if link != "" && !con.errTTY { // the log is how operators of containers see it
		con.note("First admin: open %s within 10 minutes, and choose a name and a password. It works once.", link)
	}
	if con.errTTY {
		con.welcome(&settings.Config, a.URL(), link)
		defer context.AfterFunc(ctx, func() { con.note("\nStopping. Press Ctrl-C again to stop immediately.") })()
	}
	if err := a.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return takenPort(&settings.Config, err)
	}
	return nil
}

// takenPort adds to an error about an address in use what to change.
func takenPort(c *config.Config, err error) error {
	op, _ := errors.AsType[*net.OpError](err)
	if op == nil || op.Addr == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	_, taken, _ := net.SplitHostPort(op.Addr.String())
	for _, l := range []struct{ address, flag string }{
		{c.HTTP.Listen, "--listen HOST:PORT (setting http.listen)"},
		{c.Monitor.Listen, "--set monitor.listen=HOST:PORT"},
		{c.SMTPD.Listen, "--set smtpd.listen=HOST:PORT"}, {c.SMTPD.ListenTLS, "--set smtpd.listenTls=HOST:PORT"},
		{c.Bounce.Listen, "--set bounce.listen=HOST:PORT"},
	} {
		if _, port, _ := net.SplitHostPort(l.address); port == taken {
			return fmt.Errorf("%w; another program uses %s: ask the system which (ss -ltnp), and stop "+
				"it, or choose another address with %s", err, l.address, l.flag)
		}
	}
	return err
}

// welcome prints the addresses, on a terminal, and the link for the first admin, if there is one.
func (c *console) welcome(settings *config.Config, url, link string) {
	line := func(name, value string) { c.note("  %s %s", boldStyle.Width(14).Render(name), value) }
	c.note("\n  %s %s\n", boldStyle.Render("Postroom"), version())
	if link != "" {
		line("First admin", link)
		line("", "open it within 10 minutes and choose a name and a password; it works once")
	}
	if url != "" {
		line("Pages", url+"/")
		line("API", url+"/docs")
		line("Admin token", tokenPlace(settings))
	}
	if settings.SMTP.Host == "" && url != "" {
		line("Next", "no relay is set: set smtp and from, or add an account: "+os.Args[0]+" account add --help")
	}
	line("Stop", "Ctrl-C")
	c.note("")
}

// tokenPlace returns where the admin token is, never the token: terminals are shared and recorded.
func tokenPlace(settings *config.Config) string {
	if settings.Token != "" {
		return "as set by token"
	}
	file := filepath.Join(settings.Data, "token")
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	return "in " + file
}
