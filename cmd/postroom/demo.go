package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/postroom/postroom/app/demo"
)

const demoHelp = `Starts a Postroom with a mail catcher and a webhook receiver of its own, sends messages
through every state and prints what happens. The pages open in your browser, logged in by a link that works
once; it is printed where there is no browser. /inbox shows the caught mail.
Nothing leaves this machine, no settings are read, and nothing stays behind.`

// demoCmd shows Postroom at work.
type demoCmd struct {
	Listen string `default:"127.0.0.1:3000" placeholder:"HOST:PORT" help:"Address of the pages; a free port where this one is taken."`
	Open   bool   `default:"true" negatable:"" help:"Open the pages in a browser, logged in, if this is a terminal and there is one. Default: yes; no: --no-open."`
	Exit   bool   `help:"End after the tour, for scripts. Default: go on until Ctrl-C, to look around."`
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
