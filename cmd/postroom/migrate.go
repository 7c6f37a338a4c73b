package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/cmd/postroom/emailengine"
)

func migrateVerbs() []verb {
	return []verb{{name: "emailengine", help: "Import the data of an EmailEngine. Without --apply, only show the plan.",
		run: &migrateCmd{},
		more: `The command only reads EmailEngine. You can repeat it with --apply: it keeps existing data, and queues no
message twice. The exit code is 0 if it imported everything, else 1. See docs/from-emailengine.md for its limits
and for the steps before and after.`}}
}

// migrateCmd takes over the data of an EmailEngine.
type migrateCmd struct {
	From      string `required:"" placeholder:"URL" help:"EmailEngine: its Redis, such as redis://127.0.0.1:6379/8, or its API, such as http://127.0.0.1:3000, which shows no passwords and no queued mail. - reads it from standard input, env:NAME from the environment."`
	FromToken string `placeholder:"FROM" help:"Source of its API access token: a file, env:NAME, or - for standard input."`
	Secret    string `name:"from-secret" placeholder:"FROM" help:"Source of its EENGINE_SECRET, if its Redis is encrypted."`
	Prefix    string `placeholder:"TEXT" help:"Its EENGINE_REDIS_PREFIX, if it has one."`
	Queued    bool   `help:"Also import queued messages from its Redis. Pause its queue submit first."`
	Overwrite bool   `help:"Replace existing accounts, gateways, templates and webhook settings."`
	Apply     bool   `help:"Make the changes."`
}

func (c *migrateCmd) Run(s *session) error {
	source, err := c.open(s.console)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it was read
	queue, err := source.Queue(s)
	if err != nil {
		return err
	}
	if c.Queued && c.Apply && !queue.Paused {
		return usage("EmailEngine would send the queued mail, too: pause its queue first, with PUT /v1/settings/queue/submit {\"paused\":true}; nothing was changed")
	}
	found, err := source.Read(s)
	if err != nil {
		return err
	}
	m := &migration{session: s, flags: c, source: source, found: found, accounts: map[string]bool{},
		report: migrationReport{Applied: c.Apply, Rows: []migrationRow{}}}
	broken := m.all()
	if err := m.show(queue); broken == nil {
		return err
	}
	return fmt.Errorf("not everything was read or taken: %w; repeat the command for the rest", broken)
}

// open returns the source that the flags name.
func (c *migrateCmd) open(con *console) (emailengine.Source, error) {
	o := emailengine.Options{Prefix: c.Prefix}
	var err error
	if o.From, err = con.secret("--from", c.From); err != nil {
		return nil, err
	}
	if c.FromToken != "" {
		if o.Token, err = con.secretFrom("--from-token", c.FromToken); err != nil {
			return nil, err
		}
	}
	if c.Secret != "" {
		if o.Secret, err = con.secretFrom("--from-secret", c.Secret); err != nil {
			return nil, err
		}
	}
	source, err := emailengine.Open(o)
	if err != nil {
		return nil, usage("--from %v", err)
	}
	return source, nil
}

// migrationReport is what a migration did or would do.
type migrationReport struct {
	Applied bool           `json:"applied"`
	Rows    []migrationRow `json:"rows"`
}

type migrationRow struct {
	Kind  string   `json:"kind"`
	ID    string   `json:"id"`
	State string   `json:"state"`
	Notes []string `json:"notes,omitempty"` // what is not taken, and why
}

// The states of things.
const (
	toAdd     = "to add"
	toReplace = "to replace"
	added     = "added"
	replaced  = "replaced"
	already   = "there already"
	notTaken  = "not taken"
)

type migration struct {
	*session
	flags    *migrateCmd
	source   emailengine.Source
	found    *emailengine.Found
	accounts map[string]bool // that are here, or would be
	report   migrationReport
}

func (m *migration) row(kind, id, state string, notes ...string) {
	m.report.Rows = append(m.report.Rows, migrationRow{kind, id, state, notes})
}

// all takes one kind after the other: first what others refer to. It ends at an error that is not about one
// thing.
func (m *migration) all() error {
	for _, step := range []func() error{m.allGateways, m.allAccounts, m.allTemplates, m.allLists, m.settings,
		m.queued} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, u := range m.found.Unfit {
		if err := m.unfit(u); err != nil {
			return err
		}
	}
	return nil
}

// unfit adds the row of what can't be taken, unless somebody has made it by hand.
func (m *migration) unfit(u emailengine.Unfit) error {
	err := error(errUnset)
	switch u.Kind {
	case "account":
		_, err = api.GetAccount.Do(m, m.client, u.ID)
	case "gateway":
		_, err = api.GetGateway.Do(m, m.client, u.ID)
	}
	switch missing, err := absent(err); {
	case err != nil:
		if _, err := refusedOne(err); err != nil { // else: no id of Postroom
			return err
		}
	case !missing:
		m.row(u.Kind, u.ID, already)
		return nil
	}
	m.row(u.Kind, u.ID, notTaken, u.Why)
	return nil
}

func (m *migration) show(queue emailengine.Queue) error {
	g, count, lacking := newGrid("what", "id", "result", "not taken"), map[string]int{}, false
	for _, r := range m.report.Rows {
		g.add(r.Kind, r.ID, r.State, strings.Join(r.Notes, "; "))
		count[r.State]++
		lacking = lacking || r.State == notTaken || len(r.Notes) > 0
	}
	return m.done(m.report, lacking, func() {
		m.console.show(g)
		var parts []string
		for _, state := range []string{toAdd, added, toReplace, replaced, already, notTaken} {
			if n := count[state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, state))
			}
		}
		m.say("%s", strings.Join(parts, ", "))
		if !m.flags.Apply {
			m.note("nothing was changed: this is what --apply would do")
		}
		m.notes(queue)
	})
}

// notes says what is left to the operator.
func (m *migration) notes(queue emailengine.Queue) {
	switch {
	case queue.Queued > 0 && !m.flags.Queued:
		m.note("EmailEngine has %d queued messages: let it send them, or pause its queue and say --queued", queue.Queued)
	case m.flags.Queued && !queue.Paused:
		m.note("EmailEngine's queue is not paused: pause it before --apply --queued, with PUT /v1/settings/queue/submit {\"paused\":true}")
	case m.flags.Queued && m.flags.Apply && queue.Queued > 0:
		m.note("EmailEngine still has these messages: leave its queue paused, or delete them there, or it sends them, too")
	}
	if m.flags.Apply {
		m.note("next: make tokens for your programs (postroom token add), and try the relays (postroom doctor)")
	}
}

// absent reports whether an error says that there is no such thing; other errors are returned.
func absent(err error) (bool, error) {
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.StatusCode == http.StatusNotFound {
		return true, nil
	}
	return false, err
}

// refusedOne returns why Postroom refuses one thing. Any other error is returned: it is of all things.
func refusedOne(err error) (string, error) {
	f, ok := errors.AsType[*api.Failure](err)
	if !ok {
		return "", err
	}
	switch f.Problem.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity:
		return "Postroom refuses it: " + explainFailure(f, ""), nil
	}
	return "", err
}
