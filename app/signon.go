package app

import (
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/server/people/oidc"
	"github.com/postroom/postroom/ui"
)

// signOn returns the server at which people log in, or nil if none is configured.
func (a *App) signOn() (*ui.SignOn, error) {
	c := a.cfg.OIDC
	if c.Issuer == "" {
		return nil, nil
	}
	roles := map[api.Role][]string{}
	for role, values := range map[api.Role]string{api.RoleAdmin: c.Roles.Admin,
		api.RoleOperator: c.Roles.Operator, api.RoleViewer: c.Roles.Viewer} {
		if all := config.List(values); all != nil {
			roles[role] = all
		}
	}
	issuer, err := oidc.New(oidc.Options{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(),
		Redirect: a.cfg.ServiceURL + "/login/oidc/callback", Scopes: config.List(c.Scopes),
		NameClaim: c.NameClaim, RoleClaim: c.RoleClaim, Roles: roles,
		Client: a.guard.WithPrivate().Client(dialing.HTTP{Timeout: 10 * time.Second}), // the operator names it
	})
	if err != nil {
		return nil, err
	}
	return &ui.SignOn{Issuer: issuer, URL: c.Issuer, Name: c.Name}, nil
}
