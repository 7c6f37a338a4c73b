package main

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
)

// apiFlags are the access to the API of a provider. No key is taken as an argument: others see arguments.
type apiFlags struct {
	KeyFile    string   `group:"api" placeholder:"FROM" help:"Where the key is: a file, env:NAME, or - for standard input. Default: you are asked for it."`
	SecretFile string   `group:"api" placeholder:"FROM" help:"Where the secret is, of ses, mailjet and http; of postmark an account token, to list domains."`
	HookFile   string   `name:"webhook-secret-file" group:"api" placeholder:"FROM" help:"Where the secret of its webhooks is: the signing key of mailgun, the ARN of the topic of ses. Default: Postroom or the provider makes it."`
	Region     *string  `group:"api" placeholder:"NAME" help:"With ses a region such as eu-west-1; with mailgun, sendgrid and sparkpost us or eu."`
	URL        *string  `name:"api-url" group:"api" placeholder:"URL" help:"Base URL. Required with http; otherwise that of the provider."`
	Domain     *string  `group:"api" placeholder:"DOMAIN" help:"Sending domain, with mailgun."`
	Stream     *string  `group:"api" placeholder:"NAME" help:"Message stream, with postmark. Default: outbound."`
	Pool       *string  `group:"api" placeholder:"NAME" help:"IP pool of sendgrid, sparkpost and mandrill, configuration set of ses."`
	Subaccount *string  `group:"api" placeholder:"NAME" help:"With sparkpost and mandrill."`
	Sandbox    *bool    `group:"api" negatable:"" help:"The provider checks each message and delivers nothing."`
	Source     []string `name:"source" group:"mx" placeholder:"IP=NAME" sep:"none" help:"With mx: an address to send from, and the name in its PTR record; several times. Default: as the system chooses."`
	MXTLS      *string  `name:"mx-tls" group:"mx" placeholder:"WHEN" help:"With mx: opportunistic or required. Default: opportunistic."`
	Batch      *int     `group:"api" placeholder:"N" help:"Messages in one request, where the API takes several. Default: the provider's most."`
}

// over returns the access changed by the flags.
func (f apiFlags) over(old *api.GatewayAPI, con *console) (*api.GatewayAPI, error) {
	a := *cmp.Or(old, &api.GatewayAPI{})
	api.Patch(&a, f)
	for _, secret := range []struct {
		into       *string
		flag, from string
	}{{&a.Key, "--key-file", f.KeyFile}, {&a.Secret, "--secret-file", f.SecretFile},
		{&a.WebhookSecret, "--webhook-secret-file", f.HookFile}} {
		if secret.from == "" {
			continue
		}
		value, err := con.secretFrom(secret.flag, secret.from)
		if err != nil {
			return nil, err
		}
		*secret.into = value
	}
	return &a, nil
}

// direct returns the settings of a gateway of type mx, changed by the flags; nil: there are none.
func (f apiFlags) direct(old *api.GatewayDirect) (*api.GatewayDirect, error) {
	if len(f.Source) == 0 && f.MXTLS == nil {
		return old, nil
	}
	d := *cmp.Or(old, &api.GatewayDirect{})
	api.Set(&d.TLS, f.MXTLS)
	if len(f.Source) > 0 {
		d.Addresses = nil
	}
	for _, text := range f.Source {
		address, name, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usage("--source: %q is not of the form IP=NAME, such as 192.0.2.1=mx1.example.com", text)
		}
		d.Addresses = append(d.Addresses, api.GatewaySource{Address: address, Name: name})
	}
	return &d, nil
}

// empty reports whether no flag was given.
func (f apiFlags) empty() bool { return reflect.ValueOf(f).IsZero() }

// addAPI asks for what is missing, tries the key, and adds the gateway.
func (g *gatewayAddCmd) addAPI(s *session) error {
	kind := api.GatewayType(g.Type)
	a, err := g.apiFlags.over(nil, s.console)
	if err != nil {
		return err
	}
	settings, err := g.relayFlags.over(relaySettings{}, s.console)
	if err != nil {
		return err
	}
	if settings.SMTP != nil {
		return usage("--smtp and what belongs to it don't go with --type %s", g.Type)
	}
	needs, _ := gateways.APIFields(kind)
	if err := askMissing(s, kind, needs, a); err != nil {
		return err
	}
	direct, err := g.apiFlags.direct(nil)
	if err != nil {
		return err
	}
	if kind == api.GatewayMX && *a == (api.GatewayAPI{}) {
		a = nil
	}
	try := settings.VerifyRequest
	try.Type, try.API, try.MX = kind, a, direct
	perDomain, err := g.domainFlags.over(nil)
	if err != nil {
		return err
	}
	if !g.NoVerify && (kind != api.GatewayHTTP || a.Secret != "") {
		answer, err := api.VerifyAccount.Do(s, s.client, try)
		if err != nil {
			return err
		}
		if err := s.tried(answer, []trial{{g.Type, answer.SMTP}}); err != nil {
			return err
		}
	}
	next := api.Gateway{Gateway: g.Gateway, Name: cmp.Or(g.Name, g.Gateway), Type: kind, API: a, MX: direct,
		Limits: settings.limits, Proxy: settings.Proxy, LocalAddress: settings.LocalAddress,
		SMTPEhloName: settings.SMTPEhloName, Warmup: g.warmupFlags.over(nil), LimitsPerDomain: perDomain}
	answer, err := api.CreateGateway.Do(s, s.client, next)
	if err != nil {
		return err
	}
	return g.added(s, answer)
}

// askMissing asks on the terminal for what the type needs and no flag gave. Without a terminal the server
// names the fields that are missing.
func askMissing(s *session, kind api.GatewayType, needs []string, a *api.GatewayAPI) error {
	input, ok := s.in.(*os.File)
	if !ok || !s.inTTY {
		return nil
	}
	for _, field := range []struct {
		name, question string
		into           *string
		hidden         bool
	}{
		{"region", "Region", &a.Region, false}, {"url", "URL", &a.URL, false},
		{"domain", "Sending domain", &a.Domain, false}, {"key", "Key", &a.Key, true},
		{"secret", "Secret", &a.Secret, true},
	} {
		if *field.into != "" || !slices.Contains(needs, field.name) {
			continue
		}
		fmt.Fprintf(s.err, "%s of %s: ", field.question, kind)
		if field.hidden {
			raw, err := term.ReadPassword(int(input.Fd()))
			fmt.Fprintln(s.err)
			if err != nil {
				return fmt.Errorf("read the %s: %w", field.name, err)
			}
			*field.into = string(raw)
			continue
		}
		if _, err := fmt.Fscanln(input, field.into); err != nil {
			return fmt.Errorf("read the %s: %w", field.name, err)
		}
	}
	return nil
}
