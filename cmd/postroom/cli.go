package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
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

const description = "Postroom is the outbox of your application: it takes emails over HTTP, answers at once, and sees each one through to delivery. Each command explains itself: postroom send --help."

// exitCodes is shown below the help of all commands.
const exitCodes = `
Exit codes
  0      It is done.
  1      It is not done, or not all of it; the error says why.
  2      The command line or the settings are wrong; nothing was tried.
  130    It was interrupted (Ctrl-C).
Only bounce has others, those of sysexits.h, which mail servers know.
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
	case args[0] == "--version": // no flag for all commands, because templates have versions too
		args[0] = "version"
	}
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

// readDuration reads a flag that holds a duration. Unlike Kong's own, it takes days and weeks.
func readDuration(in *kong.DecodeContext, into reflect.Value) error {
	var text string
	if err := in.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := schedule.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30m, 24h or 7d", text)
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
			{Key: "run", Title: "Running it"}, {Key: "mail", Title: "Mail"}, {Key: "setup", Title: "Setting it up"},
			{Key: "other", Title: "Other"},
			{Key: "relay", Title: "Relay"}, {Key: "limits", Title: "Limits"},
			{Key: "oauth2", Title: "Login by OAuth 2.0"}, {Key: "dkim", Title: "Signing"},
			{Key: "content", Title: "Content"}, {Key: "corrections", Title: "Otherwise than before"},
			{Key: "settings", Title: "Settings"}, {Key: "reach", Title: "Which Postroom"},
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
