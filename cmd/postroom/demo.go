package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/postroom/postroom/app/demo"
)

const demoHelp = `Starts Postroom with a built-in relay and webhook receiver, sends messages through every
state and prints what happens. The dashboard opens in your browser with a one-time sign-in link, which is
printed if there is no browser. /inbox shows the received messages.
Nothing leaves this machine. The demo reads no settings and leaves no files behind.`

// demoCmd shows Postroom at work.
type demoCmd struct {
	Listen string `default:"127.0.0.1:3000" placeholder:"HOST:PORT" help:"Address of the dashboard. Another free port is used if this one is taken."`
	Open   bool   `default:"true" negatable:"" help:"Open the dashboard in a browser and sign in, if this is a terminal. Use --no-open to prevent it."`
	Exit   bool   `help:"Exit after the tour, for scripts. By default, the demo runs until Ctrl-C."`
}

func (d *demoCmd) Run(ctx context.Context, con *console) error {
	o := demo.Options{Listen: d.Listen, Exit: d.Exit, Version: version(), Out: con.out, Program: os.Args[0]}
	if con.outTTY && !d.Exit {
		o.Pace = 2 * time.Second
		if d.Open {
			o.Open = openBrowser
		}
	}
	return demo.Run(ctx, o)
}

// openBrowser opens a link in the browser of a desktop and reports whether one was started.
func openBrowser(url string) bool {
	name, args := browserCommand(runtime.GOOS, os.Getenv)
	if name == "" {
		return false
	}
	cmd := exec.Command(name, append(args, url)...)
	if cmd.Start() != nil {
		return false
	}
	go func() { _ = cmd.Wait() }() // it ends when the browser has the link
	return true
}

// browserCommand returns the program that opens links on a system, or "" if nobody would see a browser.
func browserCommand(system string, env func(string) string) (name string, args []string) {
	switch {
	case env("SSH_CONNECTION") != "": // the screen is elsewhere
		return "", nil
	case system == "darwin":
		return "open", nil
	case system == "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	case env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != "":
		return "xdg-open", nil
	}
	return "", nil
}
