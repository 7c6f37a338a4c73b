package main

import (
	"context"
	"errors"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/maildns"
)

const doctorHelp = `Each line shows ok, warn or fail, with advice. The exit code is 1 if a check fails. The command tests the login to the relay of the
settings from this machine, and Postroom tests the logins of the accounts. Nothing is sent.`

// doctorCmd checks what Postroom needs. An error of its client is a finding.
type doctorCmd struct {
	reachFlags
	Quick    bool          `help:"Only check whether Postroom is ready. Needs no token; for container health checks."`
	Domain   []string      `placeholder:"DOMAIN" help:"Sender domains to check. Defaults to the domains of the accounts."`
	Selector string        `name:"dkim-selector" placeholder:"NAME" help:"DKIM selector of your relay, to check its DNS record."`
	Patience time.Duration `default:"15s" help:"Timeout of each check."`
}

// The verdicts of a check.
const (
	ok   = "ok"
	warn = "warn"
	fail = "fail"
)

// finding is what one check found.
type finding struct {
	Check   string `json:"check"`
	Status  string `json:"status"` // ok, warn or fail
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"` // what to do about it
}

type check func(context.Context) []finding

// Run runs the checks, and prints the findings of each before the next.
func (d *doctorCmd) Run(ctx context.Context, con *console) error {
	settings, err := d.load(nil)
	found := settingsFindings(settings, err)
	if !d.JSON && !d.Quick {
		con.findings(found)
	}
	if err == nil {
		for _, c := range d.checks(settings) {
			limited, cancel := context.WithTimeout(ctx, d.Patience)
			more := c(limited)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !d.JSON {
				con.findings(more)
			}
			found = append(found, more...)
		}
	}
	if d.Quick && err != nil {
		return err
	}
	return d.conclude(con, found)
}

// conclude fails the command if a check failed.
func (d *doctorCmd) conclude(con *console, found []finding) error {
	if d.JSON {
		if err := con.printJSON(found); err != nil {
			return err
		}
	}
	for _, f := range found {
		if f.Status == fail {
			return errReported
		}
	}
	return nil
}

// checks are the checks to make, in order.
func (d *doctorCmd) checks(settings *config.Loaded) []check {
	x := &exam{cfg: &settings.Config, reach: d.reachFlags, selector: d.Selector, domains: map[string]bool{},
		alerted: map[string]bool{}, resolver: maildns.NewResolver(settings.DNS.Addresses())}
	for _, domain := range d.Domain {
		x.domains[domain] = true
	}
	x.fixed = len(d.Domain) > 0
	if d.Quick && settings.Role == "worker" && d.URL == "" && settings.Monitor.Listen == "" {
		return []check{x.redis} // the only check of a worker without a listener
	}
	if d.Quick {
		return []check{x.ready}
	}
	return []check{x.data, x.redis, x.ready, x.api, x.relay, x.accounts, x.gateways, x.direct, x.troubles,
		x.search, x.public, x.dns}
}

// exam is the state that the checks share.
type exam struct {
	cfg      *config.Config
	reach    reachFlags
	selector string
	resolver resolver
	domains  map[string]bool // sender domains met so far
	fixed    bool            // the domains are those of the flag
	away     bool            // Postroom does not respond, or not with this token
	alerted  map[string]bool // alerts that were found so far
	client   *api.Client     // unless it is away
}

func settingsFindings(settings *config.Loaded, err error) []finding {
	if invalid, _ := errors.AsType[*config.Invalid](err); invalid != nil {
		var found []finding
		for _, p := range invalid.Problems {
			found = append(found, finding{"settings", fail, p.String(), "correct it; all keys: docs/configuration.md"})
		}
		return found
	}
	if err != nil {
		return []finding{{"settings", fail, err.Error(), ""}}
	}
	message := "no faults; no file, defaults and environment only"
	if settings.File != "" {
		message = "no faults in " + settings.File
	}
	found := []finding{{"settings", ok, message, ""}}
	for _, w := range settings.Warnings {
		found = append(found, finding{"settings", warn, w, ""})
	}
	return found
}

var statusStyles = map[string]lipgloss.Style{
	ok:   lipgloss.NewStyle().Width(6).Foreground(lipgloss.Green),
	warn: lipgloss.NewStyle().Width(6).Foreground(lipgloss.Yellow),
	fail: lipgloss.NewStyle().Width(6).Foreground(lipgloss.Red).Bold(true),
}

// findings prints findings, one line each, and below it what to do.
func (c *console) findings(found []finding) {
	for _, f := range found {
		c.say("%s%-10s %s", statusStyles[f.Status].Render(f.Status), f.Check, clean(f.Message))
		if f.Advice != "" {
			c.say("%17s→ %s", "", clean(f.Advice))
		}
	}
}
