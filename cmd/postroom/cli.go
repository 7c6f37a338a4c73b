package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells report a death by SIGINT
)

const description = "Postroom is the outbox of your application: it takes emails over HTTP, answers at once, and sees each one through to delivery. Each command explains itself: postroom send --help."

// cli is the command line.
type cli struct {
	Help helpFlag `short:"h" help:"Show help."`

	Serve  serveCmd  `cmd:"" group:"run" help:"Run Postroom: API, pages and workers."`
	Demo   demoCmd   `cmd:"" group:"run" help:"See it work in a minute: everything built in, nothing to configure."`
	Doctor doctorCmd `cmd:"" group:"run" help:"Check settings, Redis, relays and the DNS of the sender, and say what to do."`
	Config configCmd `cmd:"" group:"run" help:"Print the settings in force and where each comes from."`

	Send         sendCmd         `cmd:"" group:"mail" help:"Send an email."`
	Outbox       outboxCmd       `cmd:"" group:"mail" help:"See, retry and cancel what is queued."`
	Log          logCmd          `cmd:"" group:"mail" help:"See what became of mail, when it is long sent, too, and count it."`
	Search       searchCmd       `cmd:"" group:"mail" help:"Find any mail again, by words, addresses, subject, status, date."`
	Dead         deadCmd         `cmd:"" name:"dead-letter" group:"mail" help:"See, send again and forget what failed for good."`
	Queue        queueCmd        `cmd:"" group:"mail" help:"See, pause and resume the queues."`
	Bounce       bounceCmd       `cmd:"" group:"mail" help:"Hand over a mail that came back, for mail servers."`
	Feedback     feedbackCmd     `cmd:"" group:"mail" help:"See who told what about sent mail: providers, returned mail, readers."`
	Suppressions suppressionsCmd `cmd:"" group:"mail" help:"See and change whom not to mail, and find out why somebody is not."`
	Documents    documentsCmd    `cmd:"" group:"mail" help:"See and rebuild the search index."`

	Account  accountCmd  `cmd:"" group:"setup" help:"Senders and the relays their mail goes through."`
	Gateway  gatewayCmd  `cmd:"" group:"setup" help:"Relays that accounts share."`
	Template templateCmd `cmd:"" group:"setup" help:"What mail is made of: templates, partials and layouts."`
	Token    tokenCmd    `cmd:"" group:"setup" help:"Access tokens for programs."`
	DKIM     dkimCmd     `cmd:"" name:"dkim" group:"setup" help:"Keys that mail is signed with, and their DNS records."`
	Webhook  webhookCmd  `cmd:"" group:"setup" help:"Where events are sent."`
	Secret   secretCmd   `cmd:"" group:"setup" help:"The secret that seals passwords: after a change of it, and for receivers of webhooks."`

	Version versionCmd `cmd:"" group:"other" help:"Print the version."`
}

var errHelped = errors.New("help was shown")

// helpFlag shows the help and ends the parsing. Kong's own ends the process instead.
type helpFlag bool

// BeforeReset is called by kong when the flag is given, before anything else is looked at. Where a command was not named but only taken by
// default, the help is about the commands there are.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if n := c.Selected(); n != nil && n.Parent != nil && n.Parent.DefaultCmd == n && !slices.Contains(c.Args, n.Name) {
		c.Path = slices.DeleteFunc(c.Path, func(p *kong.Path) bool { return p.Command == n })
	}
	return errors.Join(errHelped, c.PrintUsage(false))
}

// run does what the command line says and gives the exit code.
func run(ctx context.Context, args []string, con *console) int {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parser, err := kong.New(&cli{},
		kong.Name("postroom"), kong.Description(description), kong.NoDefaultHelp(), kong.Writers(con.out, con.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 110}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Running it"}, {Key: "mail", Title: "Mail"}, {Key: "setup", Title: "Setting it up"}, {Key: "other", Title: "Other"},
			{Key: "relay", Title: "Relay"}, {Key: "limits", Title: "Limits"}, {Key: "oauth2", Title: "Login by OAuth 2.0"}, {Key: "dkim", Title: "Signing"}, {Key: "content", Title: "Content"}, {Key: "corrections", Title: "Otherwise than before"},
			{Key: "settings", Title: "Settings"}, {Key: "reach", Title: "Which Postroom"},
		}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(con),
	)
	if err != nil {
		fmt.Fprintln(con.err, "postroom:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if errors.Is(err, errHelped) {
		return exitDone
	}
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		fmt.Fprintf(con.err, "postroom: %v; see: %s --help\n", wrong, commandName(wrong.Context))
		return exitUsage
	}
	return con.finish(ctx, command.Run())
}

// commandName is the command whose help explains a wrong command line.
func commandName(c *kong.Context) string {
	if c == nil || c.Selected() == nil {
		return "postroom"
	}
	return c.Selected().FullPath()
}
