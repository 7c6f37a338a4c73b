package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/postroom/postroom/api"
)

// verb is one command of the tree.
type verb struct {
	name, help string
	run        any    // a pointer to a struct whose fields are the flags, as kong reads them, with a method Run
	more       string // is shown below the flags
	below      []verb // instead of run: the commands of a group; list, status or get is its default
	group      string // heading in the list of all commands
	hidden     bool   // is not in the help: for other programs
}

// asker is a command that asks a running Postroom.
type asker interface{ Run(*session) error }

// asking is such a command with the flags that say which Postroom.
type asking struct {
	Command asker `embed:""`
	reachFlags
}

// built returns the struct from which kong makes the commands: a field for each.
func built(verbs []verb) reflect.Value {
	fields, values := make([]reflect.StructField, len(verbs)), make([]reflect.Value, len(verbs))
	for i, v := range verbs {
		values[i] = reflect.ValueOf(v.run)
		if c, ok := v.run.(asker); ok {
			values[i] = reflect.ValueOf(&asking{Command: c})
		}
		if v.below != nil {
			values[i] = built(v.below).Addr()
		}
		tag := fmt.Sprintf(`cmd:"" name:%q help:%q`, v.name, v.help)
		if v.hidden {
			tag += ` hidden:""`
		}
		switch {
		case v.group != "":
			tag += fmt.Sprintf(` group:%q`, v.group)
		case slices.Contains([]string{"list", "status", "get"}, v.name):
			tag += ` default:"withargs"`
		}
		fields[i] = reflect.StructField{
			Name: "Command" + strconv.Itoa(i), Type: values[i].Type().Elem(), Tag: reflect.StructTag(tag),
		}
	}
	tree := reflect.New(reflect.StructOf(fields)).Elem()
	for i, v := range values {
		tree.Field(i).Set(v.Elem())
	}
	return tree
}

// explained gives the commands of kong what is shown below their flags.
func explained(nodes []*kong.Node, verbs []verb) {
	for i, v := range verbs {
		nodes[i].Detail = v.more
		explained(nodes[i].Children, v.below)
	}
}

// commands returns all commands, in the order of the help.
func commands() []verb {
	return slices.Concat(grouped("run", []verb{
		{name: "serve", help: "Run Postroom: API, pages and workers.", run: &serveCmd{}, more: serveHelp},
		{name: "demo", help: "Show Postroom at work: everything built in, nothing to configure.", run: &demoCmd{}, more: demoHelp},
		{name: "doctor", help: "Check settings, Redis, relays and the DNS of the sender, and say what to do.",
			run: &doctorCmd{}, more: doctorHelp},
		{name: "config", help: "Print the settings in force and where each comes from.", run: &configCmd{}, more: configHelp},
	}), grouped("mail", []verb{
		{name: "overview", help: "Say whether mail flows, what is wrong, and what to do.", run: &overviewCmd{}},
		{name: "send", help: "Send an email.", run: &sendCmd{}, more: sendHelp},
		{name: "outbox", help: "See, retry and cancel queued messages.", below: outboxVerbs()},
		{name: "log", help: "See the email log, sent messages too, and count it.", below: logVerbs()},
		{name: "search", help: "Find any mail again, by words, addresses, subject, status, date.",
			run: &searchCmd{}},
		{name: "why", help: "Say why an address did or did not get its mail.", run: &whyCmd{},
			more: "Example:\n  postroom why ann@example.com"},
		{name: "explain", help: "Say what a mail server's reply means, and what to do about it.",
			run: &explainCmd{}, more: explainHelp},
		{name: "dead-letter", help: "See, send again and delete what failed for good.", below: deadVerbs()},
		{name: "queue", help: "See, pause and resume the queues.", below: queueVerbs()},
		{name: "bounce", help: "Hand over a mail that came back, for mail servers.", run: &bounceCmd{}, more: bounceHelp},
		{name: "feedback", help: "See the feedback about sent mail: providers, returned mail, readers.",
			run: &feedbackCmd{}},
		{name: "rates", help: "Count what became of mail: sent, bounced, complained, opened.",
			run: &ratesCmd{filter: filterOf[api.RatesQuery]("from", "to")}},
		{name: "suppressions", help: "See and change whom not to mail, and find out why an address is not mailed.",
			below: suppressionVerbs()},
		{name: "list", help: "Mailing lists: who may be mailed newsletters.", below: listVerbs()},
		{name: "segment", help: "Rules that select subscribers.", below: segmentVerbs()},
		{name: "campaign", help: "Newsletters: write, send, watch and stop them.", below: campaignVerbs()},
		{name: "digest", help: "Notifications of readers, collected and mailed when they want it.",
			below: digestVerbs()},
		{name: "subscribers", help: "See and change who is on mailing lists, with the proof of each consent.",
			below: subscriberVerbs()},
		{name: "documents", help: "See and rebuild the search index.", below: documentVerbs()},
	}), grouped("setup", []verb{
		{name: "account", help: "Senders and the relays their mail goes through.", below: accountVerbs()},
		{name: "gateway", help: "Relays that accounts share.", below: gatewayVerbs()},
		{name: "template", help: "The content of mail: templates, partials and layouts.", below: templateVerbs()},
		{name: "settings",
			help:  "See and change the settings that can be changed while Postroom runs. Others: config.",
			below: settingsVerbs()},
		{name: "migrate", help: "Move here from another program.", below: migrateVerbs()},
		{name: "token", help: "Access tokens for programs.", below: tokenVerbs()},
		{name: "audit", help: "See who did what, and verify that nothing of that log was changed.",
			run: &auditCmd{filter: filterOf[api.AuditQuery]()}},
		{name: "dkim", help: "Keys that mail is signed with, and their DNS records.", below: dkimVerbs()},
		{name: "webhook", help: "Where events are sent.", below: webhookVerbs()},
		{name: "secret",
			help:  "The secret that seals passwords: after a change of it, and for receivers of webhooks.",
			below: secretVerbs()},
	}), grouped("other", []verb{
		{name: "api", help: "Call any operation of the HTTP API.", run: &struct{}{}, more: operationHelp},
		{name: "completion", help: "Print the completion of commands and flags for bash, zsh or fish.",
			run: &completionCmd{}, more: completionHelp},
		{name: "complete", help: "Print what may come next, for these completions.", run: &completeCmd{},
			hidden: true},
		{name: "version", help: "Print the version. So does postroom --version.", run: &versionCmd{}},
	}))
}

// needed returns the commands that kong has to know for a command line: the one that its first word names,
// else all. To learn all of them takes kong longer than the rest of a start.
func needed(args []string) []verb {
	all := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(v verb) bool { return v.name == args[0] }); i >= 0 {
			if all[i].name == "api" {
				all[i].below = operationVerbs(args[1:])
			}
			return all[i : i+1]
		}
	}
	return all
}

// grouped puts verbs under a heading.
func grouped(heading string, verbs []verb) []verb {
	for i := range verbs {
		verbs[i].group = heading
	}
	return verbs
}
