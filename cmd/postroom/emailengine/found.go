package emailengine

import "github.com/postroom/postroom/api"

// account adds an account whose fields read fills in, or the reason that it can't be taken.
func (f *Found) account(id string, read func(*account) error, r relays) {
	a := account{Account: id}
	err := read(&a)
	a.Account = id
	var part Part[api.Account]
	if err == nil {
		part, err = r.account(a)
	}
	if err != nil {
		f.Unfit = append(f.Unfit, Unfit{"account", id, err.Error()})
		return
	}
	f.Accounts = append(f.Accounts, part)
}

// gateway is account for a gateway.
func (f *Found) gateway(id string, read func(*gateway) error, r relays) {
	g := gateway{}
	err := read(&g)
	g.Gateway = id
	var part Part[api.Gateway]
	if err == nil {
		part, err = r.gateway(g)
	}
	if err != nil {
		f.Unfit = append(f.Unfit, Unfit{"gateway", id, err.Error()})
		return
	}
	f.Gateways = append(f.Gateways, part)
}

// template is account for a template.
func (f *Found) template(id string, read func(*api.TemplateRequest) error) {
	var t api.TemplateRequest
	err := read(&t)
	t.ID = id
	switch {
	case err != nil:
		f.Unfit = append(f.Unfit, Unfit{"template", id, err.Error()})
	case !validID.MatchString(id) || len(id) > 128:
		f.Unfit = append(f.Unfit, Unfit{"template", id, "its id is too long for Postroom, or has other characters; make it anew"})
	default:
		f.Templates = append(f.Templates, t)
	}
}
