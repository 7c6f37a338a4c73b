package main

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
)

// direct checks what direct delivery needs in the DNS: SPF and a name for each source address. Whether port
// 25 is open is part of the check of accounts.
func (x *exam) direct(ctx context.Context) []finding {
	const name = "direct"
	if x.away {
		return nil
	}
	s := &session{Context: ctx, client: x.client}
	shared, err := all(s, api.ListGateways, api.PageQuery{PageSize: maxPage})
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	isDirect := map[string]bool{}
	for _, g := range shared {
		isDirect[g.Gateway.Gateway] = g.Type == api.GatewayMX
	}
	list, err := all(s, api.ListAccounts, api.PageQuery{PageSize: maxPage})
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	list = slices.DeleteFunc(list, func(a api.AccountInfo) bool {
		return !slices.ContainsFunc(a.Gateways, func(r api.Route) bool { return isDirect[r.Gateway] })
	})
	var found []finding
	for _, a := range list[:min(len(list), maxDomains)] {
		got, err := api.GetAccountDNS.Do(ctx, x.client, api.AccountDNSQuery{}, a.Account.Account)
		switch {
		case err != nil:
			found = append(found, finding{name, fail, explain(err), ""})
		case got.Trouble != "":
			return append(found, finding{name, warn, got.Trouble, "run this where the DNS can be asked"})
		}
		found = append(found, directFindings(a.Account.Account, got.Records)...)
	}
	return found
}

// directFindings judges the SPF record and the source addresses of an account.
func directFindings(account string, records []api.DNSRecord) (found []finding) {
	for _, r := range records {
		f := finding{"direct", ok, account + ": " + r.Message, r.Advice}
		if r.Purpose != "spf" && r.Purpose != "source" {
			continue
		}
		switch r.Status {
		case "missing", "differs":
			f.Status = fail
		case "unchecked":
			f.Status = warn
		}
		found = append(found, f)
	}
	return found
}
