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
		{name: "serve", help: "Run Postroom: API, dashboard and workers.", run: &serveCmd{}, more: serveHelp},
		{name: "demo", help: "Try Postroom with a built-in relay and webhook receiver. Nothing to configure.", run: &demoCmd{}, more: demoHelp},
		{name: "doctor", help: "Check settings, Redis, relays and the senders' DNS, with advice for each problem.",
			run: &doctorCmd{}, more: doctorHelp},
		{name: "config", help: "Print the current settings and their sources.", run: &configCmd{}, more: configHelp},
	}), grouped("mail", []verb{
		{name: "overview", help: "Show whether mail flows, and how to fix problems.", run: &overviewCmd{}},
		{name: "send", help: "Send an email.", run: &sendCmd{}, more: sendHelp},
		{name: "outbox", help: "List, retry and cancel queued messages.", below: outboxVerbs()},
		{name: "log", help: "List all messages, including sent messages, and count them.", below: logVerbs()},
		{name: "search", help: "Search all messages by words, address, subject, status or date.",
			run: &searchCmd{}},
		{name: "why", help: "Find out why an address did or didn't receive a message.", run: &whyCmd{},
			more: "Example:\n  postroom why ann@example.com"},
		{name: "explain", help: "Explain a mail server's reply, with advice.",
			run: &explainCmd{}, more: explainHelp},
		{name: "dead-letter", help: "List, replay and delete failed messages.", below: deadVerbs()},
		{name: "queue", help: "Show, pause and resume the queues.", below: queueVerbs()},
		{name: "bounce", help: "Process a returned message from a mail server.", run: &bounceCmd{}, more: bounceHelp},
		{name: "feedback", help: "Count reports about sent messages by source.",
			run: &feedbackCmd{}},
		{name: "rates", help: "Count messages by result: sent, bounced, complained, opened.",
			run: &ratesCmd{filter: filterOf[api.RatesQuery]("from", "to")}},
		{name: "suppressions", help: "Manage addresses that Postroom doesn't send to.",
			below: suppressionVerbs()},
		{name: "list", help: "Manage mailing lists.", below: listVerbs()},
		{name: "segment", help: "Manage rules that select subscribers.", below: segmentVerbs()},
		{name: "campaign", help: "Write, send, watch and stop newsletters.", below: campaignVerbs()},
		{name: "digest", help: "Collect notifications and send them as digests.",
			below: digestVerbs()},
		{name: "subscribers", help: "Manage the subscribers of lists, with their consent records.",
			below: subscriberVerbs()},
		{name: "documents", help: "Show and rebuild the search index.", below: documentVerbs()},
	}), grouped("setup", []verb{
		{name: "account", help: "Manage senders and their relays.", below: accountVerbs()},
		{name: "gateway", help: "Manage relays that accounts share.", below: gatewayVerbs()},
		{name: "template", help: "Manage templates, partials and layouts.", below: templateVerbs()},
		{name: "settings",
			help:  "Show and change settings while Postroom runs. For all others, see config.",
			below: settingsVerbs()},
		{name: "migrate", help: "Migrate from another program.", below: migrateVerbs()},
		{name: "token", help: "Manage access tokens for programs.", below: tokenVerbs()},
		{name: "audit", help: "Show the audit log, and verify that it is complete and unchanged.",
			run: &auditCmd{filter: filterOf[api.AuditQuery]()}},
		{name: "dkim", help: "Create DKIM keys, and check their DNS records.", below: dkimVerbs()},
		{name: "webhook", help: "Manage webhook endpoints.", below: webhookVerbs()},
		{name: "secret",
			help:  "Rotate the secret that encrypts passwords, and print the signing secret of webhooks.",
			below: secretVerbs()},
	}), grouped("other", []verb{
		{name: "api", help: "Call an operation of the HTTP API.", run: &struct{}{}, more: operationHelp},
		{name: "completion", help: "Print a completion script for bash, zsh or fish.",
			run: &completionCmd{}, more: completionHelp},
		{name: "complete", help: "Print what may come next, for these completions.", run: &completeCmd{},
			hidden: true},
		{name: "version", help: "Print the version, like postroom --version and -v.", run: &versionCmd{}},
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
