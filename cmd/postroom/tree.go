package main

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/postroom/postroom/api"
)

// verb is one command of the tree: its name, its one line of help, and what it does.
type verb struct {
	name, help string
	run        any    // a pointer to a struct whose fields are the flags, as kong reads them, with a method Run
	below      []verb // instead of run: the commands of a group; list or status is what the group's name alone does
	group      string // heading in the list of all commands
}

// built returns the struct that kong makes the commands from: a field for each of them.
func built(verbs []verb) reflect.Value {
	fields, values := make([]reflect.StructField, len(verbs)), make([]reflect.Value, len(verbs))
	for i, v := range verbs {
		values[i] = reflect.ValueOf(v.run)
		if v.below != nil {
			values[i] = built(v.below).Addr()
		}
		tag := fmt.Sprintf(`cmd:"" name:%q help:%q`, v.name, v.help)
		switch {
		case v.group != "":
			tag += fmt.Sprintf(` group:%q`, v.group)
		case v.name == "list" || v.name == "status":
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

// commands returns all commands, in the order of the help.
func commands() []verb {
	return []verb{
		{name: "serve", group: "run", help: "Run Postroom: API, pages and workers.", run: &serveCmd{}},
		{name: "demo", group: "run", help: "Show Postroom at work: everything built in, nothing to configure.", run: &demoCmd{}},
		{name: "doctor", group: "run", run: &doctorCmd{},
			help: "Check settings, Redis, relays and the DNS of the sender, and say what to do."},
		{name: "config", group: "run", help: "Print the settings in force and where each comes from.", run: &configCmd{}},

		{name: "send", group: "mail", help: "Send an email.", run: &sendCmd{}},
		{name: "outbox", group: "mail", help: "See, retry and cancel queued messages.", below: []verb{
			{name: "list", help: "List queued messages, oldest first (the default).", run: &outboxListCmd{}},
			{name: "show", help: "Show one message and its attempts, or how it ended.", run: &outboxShowCmd{}},
			{name: "retry", help: "Attempt delivery now.", run: &outboxRetryCmd{}},
			{name: "replay", help: "Send again what failed for good: the same as dead-letter replay.", run: &deadReplayCmd{}},
			{name: "cancel", help: "Take messages back.", run: &outboxCancelCmd{}},
			{name: "watch", help: "Watch the outbox as it changes.", run: &outboxWatchCmd{}},
		}},
		{name: "log", group: "mail", help: "See the email log, sent messages too, and count it.", below: []verb{
			{name: "list", help: "List messages, newest first (the default).", run: &logListCmd{}},
			{name: "show", help: "Show one message: its recipients, its attempts and its events.", run: &logShowCmd{}},
			{name: "events", help: "Show the events of one message, oldest first.",
				run: show(api.ListMessageEvents, eventsGrid)},
			{name: "stats", help: "Count the mail of the last hour and the last 24 hours, in all, or of an account or a lane.",
				run: &logStatsCmd{}},
		}},
		{name: "search", group: "mail", help: "Find any mail again, by words, addresses, subject, status, date.", run: &searchCmd{}},
		{name: "dead-letter", group: "mail", help: "See, send again and delete what failed for good.", below: []verb{
			{name: "list", help: "List dead letters, oldest first (the default).", run: &deadListCmd{}},
			{name: "show", help: "Show one dead letter and its attempts.", run: &deadShowCmd{}},
			{name: "replay", help: "Send dead letters again, to the recipients that failed.", run: &deadReplayCmd{}},
			{name: "delete", help: "Delete dead letters and their content.", run: &deadDeleteCmd{}},
		}},
		{name: "queue", group: "mail", help: "See, pause and resume the queues.", below: []verb{
			{name: "status", help: "Show the queues (the default).", run: &queueStatusCmd{}},
			{name: "pause", help: "Pause a queue: what is active finishes, nothing more begins, new mail is still taken.",
				run: &queueSwitchCmd{paused: true}},
			{name: "resume", help: "Resume a queue.", run: &queueSwitchCmd{}},
		}},
		{name: "bounce", group: "mail", help: "Hand over a mail that came back, for mail servers.", run: &bounceCmd{}},
		{name: "feedback", group: "mail", help: "See the feedback about sent mail: providers, returned mail, readers.", run: &feedbackCmd{}},
		{name: "suppressions", group: "mail", help: "See and change whom not to mail, and find out why an address is not mailed.",
			below: []verb{
				{name: "list", help: "List suppressions (the default).", run: &suppressionsListCmd{}},
				{name: "check", help: "Say why an address is not mailed, or that it is.", run: &suppressionsCheckCmd{}},
				{name: "add", help: "Stop mail to addresses or domains.", run: &suppressionsAddCmd{}},
				{name: "remove", help: "Let mail to an address or a domain pass again.", run: &suppressionsRemoveCmd{}},
				{name: "import", help: "Add the suppressions of a CSV file of any size.", run: &suppressionsImportCmd{}},
				{name: "export", help: "Write suppressions as CSV.", run: &suppressionsExportCmd{}},
			}},
		{name: "documents", group: "mail", help: "See and rebuild the search index.", below: []verb{
			{name: "status", help: "Show the state of the search index (the default).", run: &documentsStatusCmd{}},
			{name: "rebuild", help: "Make the search index anew, beside the one in use, from that one and the email log.",
				run: &documentsRebuildCmd{}},
		}},

		{name: "account", group: "setup", help: "Senders and the relays their mail goes through.", below: accountVerbs()},
		{name: "gateway", group: "setup", help: "Relays that accounts share.", below: gatewayVerbs()},
		{name: "template", group: "setup", help: "The content of mail: templates, partials and layouts.", below: templateVerbs()},
		{name: "token", group: "setup", help: "Access tokens for programs.", below: tokenVerbs()},
		{name: "dkim", group: "setup", help: "Keys that mail is signed with, and their DNS records.", below: dkimVerbs()},
		{name: "webhook", group: "setup", help: "Where events are sent.", below: webhookVerbs()},
		{name: "secret", group: "setup", help: "The secret that seals passwords: after a change of it, and for receivers of webhooks.",
			below: []verb{
				{name: "rotate", help: "After a change of secret: seal everything again under the new one.", run: &secretRotateCmd{}},
				{name: "signing", help: "Print the secret that signs webhooks which have none of their own.",
					run: &secretSigningCmd{}},
			}},

		{name: "version", group: "other", help: "Print the version.", run: &versionCmd{}},
	}
}
