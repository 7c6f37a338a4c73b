package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/app"
)

func secretVerbs() []verb {
	return []verb{
		{name: "rotate", help: "After a change of secret: seal everything again under the new one.",
			run: &secretRotateCmd{},
			more: `Works beside a running Postroom, with the same settings: it opens its Redis itself.

1. Put the secret in force into secretPrevious and a new one into secret, in the settings of every process,
   and restart them.
2. postroom secret rotate
3. Remove secretPrevious, and restart.

When it fails, secretPrevious must stay; it can be run again. Several processes that are restarted one by one
need a step before: docs/secrets.md.`},
		{name: "signing", help: "Print the secret that signs webhooks which have none of their own.",
			run: &secretSigningCmd{},
			more: `It signs the requests to the endpoints of settings and accounts, and X-EE-Wh-Signature of all.
Endpoints made over the API have secrets of their own, which are shown when they are made.`},
	}
}

// secretRotateCmd seals everything again.
type secretRotateCmd struct {
	settingsFlags
	JSON bool `name:"json" help:"Print what was done as JSON, for programs."`
}

// progressEvery is how often a long rotation tells how far it is.
const progressEvery = 5 * time.Second

// Run seals everything again and prints the number of records.
func (s *secretRotateCmd) Run(ctx context.Context, con *console) error {
	settings, err := s.load(nil)
	if err != nil {
		return err
	}
	last := time.Now()
	done, err := app.RotateSecrets(ctx, &settings.Config, slog.New(slog.DiscardHandler), func(seen, done int) {
		if time.Since(last) > progressEvery {
			last = time.Now()
			con.note("contents of mail: %d looked at, %d sealed again", seen, done)
		}
	})
	if done == nil {
		return err
	}
	if s.JSON {
		if wrong := con.printJSON(done); wrong != nil {
			return wrong
		}
		return err
	}
	g, all := newGrid("what", "sealed again"), 0
	for _, d := range done {
		g.add(d.What, d.Records)
		all += d.Records
	}
	con.show(g)
	switch {
	case err != nil:
	case settings.SecretPrevious == "" && all == 0:
		con.note("nothing to do: everything is sealed under the present secret; no secretPrevious is set")
	default:
		con.note("everything is sealed under the present secret; secretPrevious is not needed any more")
	}
	return err
}

type secretSigningCmd struct{ settingsFlags }

// Run prints the secret, alone on standard output.
func (s *secretSigningCmd) Run(con *console) error {
	settings, err := s.load(nil)
	if err != nil {
		return err
	}
	secret, err := app.SigningSecret(&settings.Config)
	if err != nil {
		return err
	}
	con.say("%s", secret)
	return nil
}
