package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/schedule"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells report a death by SIGINT
)

const description = "Postroom is the outbox of your application: it accepts emails over HTTP or SMTP, responds immediately, and delivers each one. For help with a command, run: postroom send --help."

// exitCodes is shown below the help of all commands.
const exitCodes = `
Exit codes
  0      Success.
  1      Failure, or partial failure. The error has the reason.
  2      The command line or the settings are invalid. Nothing was tried.
  130    Interrupted (Ctrl-C).
The bounce command uses the codes of sysexits.h, for mail servers.
`

// cli is the command line; the commands are those of the tree.
type cli struct {
	Help     helpFlag `short:"h" help:"Show help."`
	Commands any      `embed:""`
}

var errHelped = errors.New("help was shown")

// helpFlag shows the help and ends the parsing. Kong's own ends the process instead.
type helpFlag bool

// BeforeReset is called by kong when the flag is given, before it reads anything else. If a command is
// selected only by default, the help lists the commands of its group.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if n := c.Selected(); n != nil && n.Parent != nil && n.Parent.DefaultCmd == n &&
		!slices.Contains(c.Args, n.Name) {
		c.Path = slices.DeleteFunc(c.Path, func(p *kong.Path) bool { return p.Command == n })
	}
	err := c.PrintUsage(false)
	if c.Selected() == nil {
		fmt.Fprint(c.Stdout, exitCodes)
	}
	return errors.Join(errHelped, err)
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, con *console) int {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && args[0] == "api":
		args = []string{"api", "--help"}
	case args[0] == "--version", args[0] == "-v": // no flag of all commands: templates have versions too
		args[0] = "version"
	case args[0] == "help":
		args = append(args[1:], "--help")
	}
	args = commandFirst(args)
	parser, err := newParser(ctx, con, args)
	if err != nil {
		fmt.Fprintln(con.err, "postroom:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if errors.Is(err, errHelped) {
		return exitDone
	}
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		fmt.Fprintf(con.err, "postroom: %s; see: %s --help\n", mistake(wrong),
			typedCommand(wrong.Context).FullPath())
		return exitUsage
	}
	return con.finish(ctx, start(ctx, command, con))
}

// globalFlags are the flags that may stand before the command, and whether a value follows.
var globalFlags = map[string]bool{"--url": true, "--token": true, "--json": false, "--config": true,
	"-c": true, "--set": true}

// commandFirst moves global flags behind the command, where kong expects them.
func commandFirst(args []string) []string {
	at := 0
	for at < len(args) {
		valued, global := globalFlags[args[at]]
		name, _, joined := strings.Cut(args[at], "=")
		if !global && (!joined || !globalFlags[name]) {
			break
		}
		if at++; valued {
			at++
		}
	}
	if at == 0 || at >= len(args) {
		return args
	}
	front := args[:at]
	if end := slices.Index(args, "--"); end > at { // arguments follow, not flags
		return slices.Concat(args[at:end], front, args[end:])
	}
	return slices.Concat(args[at:], front)
}

// readDuration reads a flag that holds a duration. Unlike Kong's own, it takes days and weeks.
func readDuration(in *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := in.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := schedule.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q isn't a duration like 30m, 24h or 7d", text)
	}
	into.SetInt(int64(d))
	return nil
}

func newParser(ctx context.Context, con *console, args []string) (*kong.Kong, error) {
	verbs := needed(args)
	parser, err := kong.New(&cli{Commands: built(verbs).Addr().Interface()},
		kong.Name("postroom"), kong.Description(description), kong.NoDefaultHelp(), kong.Writers(con.out, con.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Run"}, {Key: "mail", Title: "Mail"}, {Key: "setup", Title: "Set up"},
			{Key: "other", Title: "Other"},
			{Key: "relay", Title: "Relay"}, {Key: "limits", Title: "Limits"},
			{Key: "oauth2", Title: "OAuth 2.0"}, {Key: "dkim", Title: "Signing"},
			{Key: "content", Title: "Content"}, {Key: "corrections", Title: "Corrections"},
			{Key: "settings", Title: "Settings"}, {Key: "reach", Title: "Connection"},
		}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(con),
	)
	if err == nil {
		explained(parser.Model.Children, verbs)
	}
	return parser, err
}

// start runs the command. One that uses the API of a running Postroom gets a session.
func start(ctx context.Context, command *kong.Context, con *console) error {
	asks, ok := command.Selected().Target.Addr().Interface().(*asking)
	if !ok {
		return command.Run()
	}
	if slow, ok := asks.Command.(interface{ patience() time.Duration }); ok {
		asks.timeout = slow.patience()
	}
	client, err := asks.client()
	if err != nil {
		return err
	}
	listing := listing(command.Selected())
	err = asks.Command.Run(&session{Context: ctx, console: con, client: client, json: asks.JSON,
		listing: listing})
	// of a message whose content is not kept, a list shows nothing more
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.StatusCode == http.StatusNotFound &&
		f.Problem.Code != "ContentNotKept" {
		return &unfound{err, listing}
	}
	return err
}

// listing returns which command lists what a command is about, as the end of an error, if there is one.
func listing(n *kong.Node) string {
	if n.Parent == nil || n.Name == "list" || childOf(n.Parent, "list") == nil {
		return ""
	}
	return "; " + n.Parent.FullPath() + " list shows all"
}
