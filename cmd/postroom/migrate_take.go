package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/cmd/postroom/emailengine"
)

// thing is an account, gateway, template, or the settings, to be taken.
type thing struct {
	kind, id string
	lacks    []string
	find     func() error // fails with 404 if it is not there yet
	check    func() error // what can be checked without a change; nil: nothing
	put      func(there bool) error
}

// take takes one thing, or says what would be done. A thing that stays as it is lacks nothing.
func (m *migration) take(t thing) (there bool, err error) {
	missing, err := absent(t.find())
	if err != nil {
		return false, err
	}
	there = !missing
	if there && !m.flags.Overwrite {
		m.row(t.kind, t.id, already)
		return true, nil
	}
	state := map[[2]bool]string{{false, false}: toAdd, {false, true}: toReplace, {true, false}: added,
		{true, true}: replaced}[[2]bool{m.flags.Apply, there}]
	switch {
	case m.flags.Apply:
		err = t.put(there)
	case t.check != nil:
		err = t.check()
	}
	if err != nil {
		why, err := refusedOne(err)
		if err == nil {
			m.row(t.kind, t.id, notTaken, why)
		}
		return there, err
	}
	m.row(t.kind, t.id, state, t.lacks...)
	return true, nil
}

// each takes all things of a kind, with a bar.
func each[T any](m *migration, kind string, list []T, as func(T) thing) error {
	bar := m.bar(len(list), kind+"s")
	defer func() { _ = bar.Clear() }()
	for _, one := range list {
		t := as(one)
		t.kind = kind
		there, err := m.take(t)
		if err != nil {
			return err
		}
		if there && kind == "account" {
			m.accounts[t.id] = true
		}
		_ = bar.Add(1)
	}
	return nil
}

func (m *migration) allGateways() error {
	return each(m, "gateway", m.found.Gateways, func(p emailengine.Part[api.Gateway]) thing {
		id := p.Value.Gateway
		return thing{id: id, lacks: p.Lacks,
			find: func() error { _, err := api.GetGateway.Do(m, m.client, id); return err },
			put:  func(bool) error { _, err := api.CreateGateway.Do(m, m.client, p.Value); return err },
		}
	})
}

func (m *migration) allAccounts() error {
	return each(m, "account", m.found.Accounts, func(p emailengine.Part[api.Account]) thing {
		id := p.Value.Account
		return thing{id: id, lacks: p.Lacks,
			find: func() error { _, err := api.GetAccount.Do(m, m.client, id); return err },
			put:  func(bool) error { _, err := api.CreateAccount.Do(m, m.client, p.Value); return err },
		}
	})
}

// allTemplates takes the templates. A dry run has each rendered, which finds what Postroom's language lacks.
func (m *migration) allTemplates() error {
	return each(m, "template", m.found.Templates, func(t api.TemplateRequest) thing {
		return thing{id: t.ID + " " + t.Name,
			find: func() error { _, err := api.GetTemplate.Do(m, m.client, t.ID); return err },
			check: func() error {
				if owner := templateAccount(t.Account); t.Account != nil && !m.accounts[owner] {
					if _, err := api.GetAccount.Do(m, m.client, owner); err != nil {
						return err
					}
				}
				_, err := api.TryTemplate.Do(m, m.client, api.TemplateTrial{TemplateDefinition: t.TemplateDefinition})
				return err
			},
			put: func(there bool) (err error) {
				if there {
					_, err = api.UpdateTemplate.Do(m, m.client, wholePatch(t), t.ID)
				} else {
					_, err = api.CreateTemplate.Do(m, m.client, t)
				}
				return err
			},
		}
	})
}

// settings takes the webhook settings together. They are there already if Postroom has an address of
// webhooks, or all of them.
func (m *migration) settings() error {
	p := m.found.Settings
	if p.Value == (api.Settings{}) && len(p.Lacks) == 0 {
		return nil
	}
	now, err := api.GetSettings.Do(m, m.client)
	if err != nil {
		return err
	}
	names := settingsChanged(now.Settings, p.Value)
	_, err = m.take(thing{kind: "settings", id: cmp.Or(strings.Join(names, ", "), "webhooks"), lacks: p.Lacks,
		find: func() error {
			if len(names) == 0 || now.Webhooks != nil && *now.Webhooks != "" {
				return nil
			}
			return errUnset
		},
		put: func(bool) error { _, err := api.UpdateSettings.Do(m, m.client, p.Value); return err },
	})
	return err
}

// errUnset says that the settings are not there yet, as Postroom does of other things.
var errUnset = &api.Failure{Problem: api.Problem{StatusCode: 404}}

func settingsChanged(old, wanted api.Settings) (names []string) {
	from, to := reflect.ValueOf(old), reflect.ValueOf(wanted)
	for i := range to.NumField() {
		if !to.Field(i).IsNil() && !reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

// allLists takes the blocklists, each as one import.
func (m *migration) allLists() error {
	for _, l := range m.found.Lists {
		if !m.flags.Apply {
			m.row("blocklist", listRow(l), toAdd)
			continue
		}
		if err := m.list(l); err != nil {
			return err
		}
	}
	return nil
}

func listRow(l api.Blocklist) string { return fmt.Sprintf("%s: %d", l.ListID, l.Count) }

// list imports a blocklist while it is read.
func (m *migration) list(l api.Blocklist) error {
	bar := m.bar(l.Count, "blocklist "+clean(l.ListID))
	read, write := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := m.writeList(write, l.ListID, bar)
		_ = write.CloseWithError(err)
		written <- err
	}()
	done, err := api.ImportSuppressions.Do(m, m.client, read, api.SuppressionImportOptions{
		Source: "emailengine"})
	_ = read.CloseWithError(io.ErrClosedPipe) // an import that was refused does not read to the end
	_ = bar.Clear()
	if wrong := <-written; wrong != nil && !errors.Is(wrong, io.ErrClosedPipe) {
		return wrong
	}
	if err != nil {
		return err
	}
	var notes []string
	for _, bad := range done.Errors {
		notes = append(notes, fmt.Sprintf("address %d: %s", bad.Line-1, bad.Reason))
	}
	if more := done.Bad - len(done.Errors); more > 0 {
		notes = append(notes, fmt.Sprintf("and %d more", more))
	}
	state := added
	if done.Added == 0 && done.Bad == 0 {
		state = already
	}
	m.row("blocklist", listRow(l), state, notes...)
	return nil
}

// writeList writes a blocklist as CSV. A reason that Postroom does not have stops every mail of the list, and
// stays as its evidence. EmailEngine's lists belong to nobody, ours to an account: an address goes to the
// list of the account that its entry was made for, and if that is not known, to that of each account.
func (m *migration) writeList(to io.Writer, id string, bar *progressbar.ProgressBar) error {
	out := api.NewCSVWriter(to)
	if err := out.Write([]string{"address", "reason", "account", "list", "created", "response"}); err != nil {
		return err
	}
	for b, err := range m.source.Blocked(m, id) {
		if err != nil {
			return err
		}
		reason, evidence, created := b.Reason, "", ""
		if !slices.Contains([]string{"unsubscribe", "hard_bounce", "spam_report"}, reason) {
			reason, evidence = "manual", strings.Join(strings.Fields(b.Reason), " ")
		}
		if !b.Created.IsZero() {
			created = b.Created.UTC().Format(time.RFC3339)
		}
		for _, account := range m.owners(b) {
			if err := out.Write([]string{b.Recipient, reason, account, id, created, evidence}); err != nil {
				return err
			}
		}
		_ = bar.Add(1)
	}
	return out.Flush()
}

// owners returns the accounts on whose list an address belongs.
func (m *migration) owners(b emailengine.Blocked) (accounts []string) {
	if b.Account != "" {
		return []string{b.Account}
	}
	for _, a := range m.found.Accounts {
		accounts = append(accounts, a.Value.Account)
	}
	if len(accounts) == 0 {
		return []string{""} // the import says that the account is not known
	}
	return accounts
}

// queued takes the queued mail. The rows are one for each account, and one for each message that is not
// taken.
func (m *migration) queued() error {
	if !m.flags.Queued {
		return nil
	}
	n, order := map[[2]string]int{}, [][2]string{}
	bar := m.bar(-1, "queued mail")
	defer func() { _ = bar.Clear() }()
	for message, err := range m.source.Mail(m) {
		if unfit, ok := errors.AsType[*emailengine.Unfit](err); ok {
			m.row(unfit.Kind, unfit.ID, notTaken, unfit.Why)
			continue
		}
		if err != nil {
			return err
		}
		state, err := m.message(message)
		if err != nil {
			return err
		}
		if at := [2]string{message.Submit.Account, state}; state != "" {
			if n[at]++; n[at] == 1 {
				order = append(order, at)
			}
		}
		_ = bar.Add(1)
	}
	for _, at := range order {
		m.row("queued mail", at[0]+": "+strconv.Itoa(n[at]), at[1])
	}
	return nil
}

// message submits a message and returns what became of it; empty: it has a row of its own.
func (m *migration) message(q emailengine.Message) (string, error) {
	if !m.flags.Apply {
		if !m.accounts[q.Submit.Account] {
			_, err := api.GetAccount.Do(m, m.client, q.Submit.Account)
			return m.refusedMessage(q, err)
		}
		return toAdd, nil
	}
	answer, err := api.Submit.Do(m, m.client, q.Submit)
	f, _ := errors.AsType[*api.Failure](err)
	switch {
	case f != nil && f.Problem.Code == "IdempotencyKeyReused": // EmailEngine has made attempts since
		return already, nil
	case err != nil:
		return m.refusedMessage(q, err)
	case answer.Idempotency != nil && answer.Idempotency.Status == "HIT":
		return already, nil
	case answer.NoneQueued():
		m.row("message", q.ID, notTaken, "all its recipients are suppressed: "+answer.Skipped.Reason)
		return "", nil
	}
	return added, nil
}

// refusedMessage adds the row of a message that Postroom refuses.
func (m *migration) refusedMessage(q emailengine.Message, err error) (string, error) {
	if err == nil {
		return toAdd, nil
	}
	why, err := refusedOne(err)
	if err == nil {
		m.row("message", q.ID, notTaken, why)
	}
	return "", err
}
