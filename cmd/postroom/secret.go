package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/app"
)

func secretVerbs() []verb {
	return []verb{
		{name: "rotate", help: "Encrypt all data again after you change the secret.",
			run: &secretRotateCmd{},
			more: `You can run it while Postroom runs. It needs the same settings, because it connects to Redis directly.

1. In the settings of every process, move the current secret to secretPrevious and set a new secret.
   Restart the processes.
2. postroom secret rotate
3. Remove secretPrevious, and restart.

If it fails, keep secretPrevious and run it again. If you restart processes one by one, do the extra step of
docs/secrets.md first.`},
		{name: "signing", help: "Print the signing secret of webhooks without their own secret.",
			run: &secretSigningCmd{},
			more: `It signs requests to the endpoints of settings and accounts, and X-EE-Wh-Signature of all requests.
Endpoints that you create have their own secret, which Postroom shows once.`},
	}
}

// secretRotateCmd seals everything again.
type secretRotateCmd struct {
	settingsFlags
	JSON bool `name:"json" help:"Print the result as JSON, for programs."`
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
