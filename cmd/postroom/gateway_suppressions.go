package main

import (
	"time"

	"github.com/postroom/postroom/api"
)

// gatewaySuppressionsCmd imports the suppression list of a provider.
type gatewaySuppressionsCmd struct {
	Gateway string `arg:"" help:"ID of the gateway. Its type must be a provider, for example postmark."`
	Account string `placeholder:"ID" help:"Account that the entries apply to. Defaults to all accounts."`
	Show    bool   `help:"Show the progress of the latest import. Start none."`
	NoWait  bool   `help:"Don't wait for the import to finish."`
}

// Run starts an import, and shows its progress until its end.
func (c *gatewaySuppressionsCmd) Run(s *session) error {
	var got api.ProviderImport
	var err error
	if c.Show {
		got, err = api.GetProviderImport.Do(s, s.client, c.Gateway)
	} else {
		got, err = api.ImportProviderList.Do(s, s.client, api.ProviderImportStart{Account: c.Account}, c.Gateway)
	}
	bar, shown := s.bar(-1, "importing"), got.Read
	for wait := !c.Show && !c.NoWait; err == nil && wait && got.State == "running"; {
		_ = bar.Add(got.Read - shown)
		shown = got.Read
		select {
		case <-s.Done():
			return s.Err()
		case <-time.After(appliedPoll):
		}
		got, err = api.GetProviderImport.Do(s, s.client, c.Gateway)
	}
	_ = bar.Clear()
	if err != nil {
		return err
	}
	return s.done(got, got.State == "failed", func() { s.providerImport(got) })
}

// providerImport prints an import.
func (c *console) providerImport(got api.ProviderImport) {
	c.say("%s: %s read, %d added, %d suppressed already, %d for some mail only, %d not addresses", got.State,
		plural(got.Read, "entry"), got.Added, got.Updated, got.Skipped, got.Failed)
	if got.Left > 0 {
		c.say("%d of the last import are no longer on the provider's list; their suppressions stay", got.Left)
	}
	for _, more := range []string{got.Note, got.Error} {
		if more != "" {
			c.say("%s", clean(more))
		}
	}
}
