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
	KeyFile    string   `group:"api" placeholder:"FROM" help:"Source of the key: a file, env:NAME, or - for standard input. By default, Postroom asks for it."`
	SecretFile string   `group:"api" placeholder:"FROM" help:"Source of the secret, for ses, mailjet and http. For postmark, source of an account token, to list domains."`
	HookFile   string   `name:"webhook-secret-file" group:"api" placeholder:"FROM" help:"Source of the webhook secret: the signing key for mailgun, the topic's ARN for ses. By default, Postroom or the provider generates it."`
	Region     *string  `group:"api" placeholder:"NAME" help:"Region: for example eu-west-1 for ses; us or eu for mailgun, sendgrid and sparkpost."`
	URL        *string  `name:"api-url" group:"api" placeholder:"URL" help:"Base URL. Required for http. Defaults to the provider's URL."`
	Domain     *string  `group:"api" placeholder:"DOMAIN" help:"Sending domain, for mailgun."`
	Stream     *string  `group:"api" placeholder:"NAME" help:"Message stream, with postmark. Default: outbound."`
	Pool       *string  `group:"api" placeholder:"NAME" help:"IP pool for sendgrid, sparkpost and mandrill; configuration set for ses."`
	Subaccount *string  `group:"api" placeholder:"NAME" help:"Subaccount, for sparkpost and mandrill."`
	Sandbox    *bool    `group:"api" negatable:"" help:"Sandbox mode: the provider checks messages but doesn't deliver them."`
	Source     []string `name:"source" group:"mx" placeholder:"IP=NAME" sep:"none" help:"Source address and the name in its PTR record, for mx. Repeat the flag for several. By default, the system chooses."`
	MXTLS      *string  `name:"mx-tls" group:"mx" placeholder:"WHEN" help:"TLS for mx: opportunistic or required. Default: opportunistic."`
	Batch      *int     `group:"api" placeholder:"N" help:"Messages per request, if the API accepts several. Defaults to the provider's maximum."`
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
		return usage("you can't combine --smtp and its flags with --type %s", g.Type)
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
