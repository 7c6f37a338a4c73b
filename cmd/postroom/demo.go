package main

import (
	"context"
	"time"

	"github.com/postroom/postroom/app/demo"
)

// demoCmd shows Postroom at work.
type demoCmd struct {
	Listen string `default:"127.0.0.1:3000" placeholder:"HOST:PORT" help:"Address of the pages; a free port where this one is taken."`
	Exit   bool   `help:"End after the tour, for scripts. Default: go on until Ctrl-C, to look around."`
}

// Help is shown below the flags.
func (demoCmd) Help() string {
	return `Starts a Postroom with a mail catcher and a webhook receiver of its own, sends messages through every state and prints what happens.
Nothing leaves this machine, no settings are read, and nothing stays behind.`
}

// Run gives the tour.
func (d *demoCmd) Run(ctx context.Context, con *console) error {
	o := demo.Options{Listen: d.Listen, Exit: d.Exit, Version: version(), Out: con.out}
	if con.outTTY && !d.Exit {
		o.Pace = 2 * time.Second
	}
	return demo.Run(ctx, o)
}
