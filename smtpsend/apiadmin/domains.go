package apiadmin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/apisend"
)

var domainsOf = map[api.GatewayType]func(*Client, context.Context, apisend.Target) ([]api.GatewayDomain,
	error){
	api.GatewayPostmark: postmarkDomains, api.GatewayResend: resendDomains,
	api.GatewaySendGrid: sendGridDomains, api.GatewayMailgun: mailgunDomains,
	api.GatewayMailjet: mailjetDomains, api.GatewaySparkPost: sparkPostDomains,
	api.GatewayBrevo: brevoDomains, api.GatewayMandrill: mandrillDomains, api.GatewaySES: sesDomains,
}

// mostPages bounds the pages of a list of domains.
const mostPages = 20

// Domains lists the sender domains that the provider knows, with what it found in their DNS. The error is
// ErrLacking or an *smtpsend.Error.
func (c *Client) Domains(ctx context.Context, t apisend.Target) ([]api.GatewayDomain, error) {
	list := domainsOf[t.Type]
	if list == nil {
		return nil, fmt.Errorf("%w: your own endpoint has no list of domains", ErrLacking)
	}
	return list(c, ctx, t)
}

// postmarkDomains needs the account's token: a server's token lists no domains.
func postmarkDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	if t.Secret == "" {
		return nil, fmt.Errorf("%w: set api.secret to an account token; a server token lists no domains",
			ErrLacking)
	}
	var all struct {
		Domains []struct {
			Name                                                          string
			SPFVerified, DKIMVerified, WeakDKIM, ReturnPathDomainVerified bool
		}
	}
	err = c.call(ctx, t, apisend.Call{Path: "/domains?count=500&offset=0",
		Header: http.Header{"X-Postmark-Account-Token": {t.Secret}}}, &all)
	for _, d := range all.Domains {
		dkim := d.DKIMVerified || d.WeakDKIM
		list = append(list, api.GatewayDomain{Name: d.Name, Verified: dkim, SPF: new(d.SPFVerified),
			DKIM: new(dkim), ReturnPath: new(d.ReturnPathDomainVerified)})
	}
	return list, err
}

func resendDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	var all struct {
		Data []struct{ Name, Status string }
	}
	err = c.call(ctx, t, apisend.Call{Path: "/domains?limit=100"}, &all)
	for _, d := range all.Data {
		list = append(list, api.GatewayDomain{Name: d.Name, Verified: d.Status == "verified"})
	}
	return list, err
}

func sendGridDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain,
	err error) {
	type record struct{ Valid bool }
	var all []struct {
		Domain string
		Valid  bool
		DNS    struct {
			Return       *record `json:"mail_cname"`
			SPF          *record `json:"subdomain_spf"`
			DKIM1, DKIM2 *record
			DKIM         *record
			MailServer   *record `json:"mail_server"`
		}
	}
	err = c.call(ctx, t, apisend.Call{Path: "/v3/whitelabel/domains?limit=500"}, &all)
	told := func(all ...*record) (valid *bool) {
		for _, r := range all {
			if r != nil {
				valid = new(r.Valid && (valid == nil || *valid))
			}
		}
		return valid
	}
	for _, d := range all {
		list = append(list, api.GatewayDomain{Name: d.Domain, Verified: d.Valid, SPF: told(d.DNS.SPF),
			DKIM: told(d.DNS.DKIM, d.DNS.DKIM1, d.DNS.DKIM2), ReturnPath: told(d.DNS.Return, d.DNS.MailServer)})
	}
	return list, err
}

// mailgunDomains returns the domain of the gateway: Mailgun sends from no other with it.
func mailgunDomains(c *Client, ctx context.Context, t apisend.Target) ([]api.GatewayDomain, error) {
	var one struct {
		Domain  struct{ Name, State string }
		Records []struct{ Name, Value, Valid string } `json:"sending_dns_records"`
	}
	if err := c.call(ctx, t, apisend.Call{Path: "/v4/domains/" + url.PathEscape(t.Domain)}, &one); err != nil {
		return nil, err
	}
	d := api.GatewayDomain{Name: one.Domain.Name, Verified: one.Domain.State == "active"}
	for _, r := range one.Records {
		switch {
		case strings.HasPrefix(r.Value, "v=spf1"):
			d.SPF = new(r.Valid == "valid")
		case strings.Contains(r.Name, "_domainkey"):
			d.DKIM = new(r.Valid == "valid")
		}
	}
	return []api.GatewayDomain{d}, nil
}

func mailjetDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	var all struct {
		Data []struct{ Domain, DKIMStatus, SPFStatus string }
	}
	err = c.call(ctx, t, apisend.Call{Path: "/v3/REST/dns?Limit=1000"}, &all)
	for _, d := range all.Data {
		spf, dkim := d.SPFStatus == "OK", d.DKIMStatus == "OK"
		list = append(list, api.GatewayDomain{Name: d.Domain, Verified: spf && dkim, SPF: &spf, DKIM: &dkim})
	}
	return list, err
}

func sparkPostDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain,
	err error) {
	var all struct {
		Results []struct {
			Domain string
			Status struct {
				Owned      bool   `json:"ownership_verified"`
				Compliance string `json:"compliance_status"`
				SPF        string `json:"spf_status"`
				DKIM       string `json:"dkim_status"`
				CNAME      string `json:"cname_status"`
				MX         string `json:"mx_status"`
			}
		}
	}
	err = c.call(ctx, t, apisend.Call{Path: "/api/v1/sending-domains"}, &all)
	for _, d := range all.Results {
		s := d.Status
		list = append(list, api.GatewayDomain{Name: d.Domain, Verified: s.Owned && s.Compliance == "valid",
			SPF: new(s.SPF == "valid"), DKIM: new(s.DKIM == "valid"),
			ReturnPath: new(s.CNAME == "valid" || s.MX == "valid")})
	}
	return list, err
}

func brevoDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	var all struct {
		Domains []struct {
			Name          string `json:"domain_name"`
			Authenticated bool
		}
	}
	err = c.call(ctx, t, apisend.Call{Path: "/v3/senders/domains"}, &all)
	for _, d := range all.Domains {
		list = append(list, api.GatewayDomain{Name: d.Name, Verified: d.Authenticated})
	}
	return list, err
}

func mandrillDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	type record struct{ Valid bool }
	var all []struct {
		Domain    string
		SPF, DKIM record
		Signs     bool `json:"valid_signing"`
	}
	err = c.call(ctx, t, mandrillCall("senders/domains", mandrillHook{Key: t.Key}), &all)
	for _, d := range all {
		list = append(list, api.GatewayDomain{Name: d.Domain, Verified: d.Signs, SPF: new(d.SPF.Valid),
			DKIM: new(d.DKIM.Valid)})
	}
	return list, err
}

func sesDomains(c *Client, ctx context.Context, t apisend.Target) (list []api.GatewayDomain, err error) {
	next := ""
	for range mostPages {
		var page struct {
			EmailIdentities []struct {
				IdentityType, IdentityName string
				SendingEnabled             bool
			}
			NextToken string
		}
		query := url.Values{"PageSize": {"1000"}}
		if next != "" {
			query.Set("NextToken", next)
		}
		if err := c.call(ctx, t, apisend.Call{Path: "/v2/email/identities?" + query.Encode()}, &page); err != nil {
			return nil, err
		}
		for _, d := range page.EmailIdentities {
			if d.IdentityType != "EMAIL_ADDRESS" {
				list = append(list, api.GatewayDomain{Name: d.IdentityName, Verified: d.SendingEnabled})
			}
		}
		if next = page.NextToken; next == "" {
			break
		}
	}
	return list, nil
}
