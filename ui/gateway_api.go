package ui

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
)

// isAPI reports whether a gateway is spoken to over the API of a provider, or of the user's own.
func isAPI(t api.GatewayType) bool { return t != "" && t != api.GatewaySMTP && t != api.GatewayMX }

// directGroups are the fields of a gateway of type mx.
func directGroups() []formGroup {
	return []formGroup{
		{Legend: "Direct delivery", Fields: []formField{
			{Name: "mx.addresses", Label: "Addresses to send from", Kind: "lines", Most: 16384,
				Placeholder: "192.0.2.1 mx1.example.com",
				Hint:        "One per line, each with the name in its PTR record. If empty, the system chooses."},
			{Name: "mx.tls", Label: "TLS", Kind: "choice", Choices: []string{"", "required"},
				Placeholder: "where the server offers it", Hint: "DANE and MTA-STS apply anyway."},
		}},
		{Legend: "Limits", Folded: true, Fields: limitFields()},
	}
}

// direct returns the settings of direct delivery in a form.
func (r *formReader) direct() *api.GatewayDirect {
	d := &api.GatewayDirect{TLS: r.text("mx.tls")}
	for line := range strings.Lines(r.text("mx.addresses")) {
		address, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if address != "" {
			d.Addresses = append(d.Addresses, api.GatewaySource{Address: address, Name: strings.TrimSpace(name)})
		}
	}
	if d.TLS == "" && d.Addresses == nil {
		return nil
	}
	return d
}

// domainLimits returns the limits for each domain in a form.
func (r *formReader) domainLimits() map[string]api.DomainLimits {
	const field = "limitsPerDomain"
	var lines []string
	for line := range strings.Lines(r.text(field)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	all, err := gateways.ParseDomainLimits(lines)
	if err != nil {
		r.wrong.Add(field, "%v", err)
	}
	return all
}

// apiGroups are the fields of a gateway with an API: those that its type has.
func apiGroups(kind api.GatewayType) []formGroup {
	const kept = "Leave empty to keep the stored value. If you change the region, URL or domain, enter it again."
	needs, has := gateways.APIFields(kind)
	var fields []formField
	for _, f := range []formField{
		{Name: "api.key", Label: "Key", Kind: "secret", Most: 512, Hint: kept},
		{Name: "api.secret", Label: "Secret", Kind: "secret", Most: 512, Hint: kept},
		{Name: "api.webhookSecret", Label: "Webhook secret", Kind: "secret", Most: 512, Hint: kept},
		{Name: "api.region", Label: "Region", Most: 32, Placeholder: "us"},
		{Name: "api.domain", Label: "Sending domain", Placeholder: "mg.example.com"},
		{Name: "api.url", Label: "URL", Most: 2048, Placeholder: "the provider’s default"},
		{Name: "api.stream", Label: "Message stream", Placeholder: "outbound"},
		{Name: "api.pool", Label: "IP pool"},
		{Name: "api.subaccount", Label: "Subaccount"},
		{Name: "api.batch", Label: "Messages in one request", Kind: "number", Placeholder: "the provider’s most"},
		{Name: "api.sandbox", Label: "Sandbox: the provider checks each message and delivers nothing",
			Kind: "check"},
	} {
		name := f.Name[len("api."):]
		if f.Required = slices.Contains(needs, name) && f.Kind != "secret"; !slices.Contains(needs, name) &&
			!slices.Contains(has, name) {
			continue
		}
		switch {
		case kind == api.GatewaySES && name == "pool":
			f.Label = "Configuration set"
		case kind == api.GatewaySES && name == "key":
			f.Label, f.Hint = "Access key", "Leave empty to use the machine's credentials."
		case kind == api.GatewaySES && name == "region":
			f.Placeholder = "eu-west-1"
		case name == "webhookSecret":
			f.Hint = hookHint(kind)
		case kind == api.GatewayPostmark && name == "secret":
			f.Label, f.Hint = "Account token", "Needed only to list domains. Leave empty to keep the stored token."
		case kind == api.GatewayHTTP && name == "secret":
			f.Hint = "Signs the requests (Standard Webhooks). Leave empty to keep the stored secret, or to generate one."
		case kind == api.GatewayHTTP && name == "url":
			f.Placeholder = "https://mail.example.com/send"
		}
		fields = append(fields, f)
	}
	limits := slices.DeleteFunc(limitFields(),
		func(f formField) bool { return f.Name == "limits.perConnection" })
	return []formGroup{
		{Legend: "API of " + string(kind), Fields: fields},
		{Legend: "Limits", Folded: true, Fields: limits},
		{Legend: "Way to the API", Folded: true, Fields: []formField{
			{Name: "proxy", Label: "Proxy", Most: 2048, Placeholder: "socks5://proxy.example.com:1080",
				Hint: "Its password is shown as ******, which keeps it."},
		}},
	}
}

// hookHint says where the secret of webhooks comes from.
func hookHint(kind api.GatewayType) string {
	switch kind {
	case api.GatewayMailgun:
		return "The HTTP webhook signing key in Mailgun’s console. Leave empty to keep the stored key."
	case api.GatewaySES:
		return "The ARN of the SNS topic. Leave empty to keep the stored ARN."
	case api.GatewayResend, api.GatewaySendGrid, api.GatewayMandrill:
		return "The provider shows it when you create the webhook. Leave empty to keep the stored secret."
	}
	return "Verifies the provider’s reports. Leave empty to keep the stored secret, or to generate one."
}

// valid says whether a DNS record is valid; nil: the provider doesn't tell.
func valid(v *bool) string {
	switch {
	case v == nil:
		return "–"
	case *v:
		return "yes"
	}
	return "no"
}
