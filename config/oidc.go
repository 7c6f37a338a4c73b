package config

import "strings"

// OIDC configures signing in with OpenID Connect.
type OIDC struct {
	Issuer       string    `key:"issuer" empty:"none" doc:"URL of the OpenID Connect issuer, exactly as it identifies itself, such as https://login.example.com/realms/staff."`
	ClientID     string    `key:"clientId" empty:"none" doc:"Postroom's client ID at the issuer. Allow redirects to serviceUrl with /login/oidc/callback there."`
	ClientSecret Secret    `key:"clientSecret" secret:"value" empty:"none" doc:"Postroom's client secret at the issuer. Leave empty for a public client, which PKCE protects."`
	Name         string    `key:"name" default:"single sign-on" doc:"Name of the issuer on the sign-in button: Log in with ..."`
	Scopes       string    `key:"scopes" default:"email, profile" doc:"Scopes to request in addition to openid, separated by commas. Some issuers return groups only with a scope such as groups."`
	NameClaim    string    `key:"nameClaim" default:"email" doc:"Claim with the user's name. email counts only if the issuer returns email_verified."`
	RoleClaim    string    `key:"roleClaim" default:"groups" doc:"Claim with the values for oidc.roles."`
	Roles        OIDCRoles `key:"roles"`
}

// OIDCRoles are the values of the role claim that give a role.
type OIDCRoles struct {
	Admin    string `key:"admin" empty:"none" doc:"Values for admins, separated by commas. Without any oidc.roles, only users that you created for this issuer can sign in; with them, users need a matching value and no account."`
	Operator string `key:"operator" empty:"none" doc:"Values for operators, separated by commas. The highest of several roles applies."`
	Viewer   string `key:"viewer" empty:"none" doc:"Values for viewers, separated by commas."`
}

// List returns the texts of a setting that are separated by commas.
func List(text string) []string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// crossCheckOIDC finds logins that could not work.
func (l *loading) crossCheckOIDC(c *Config) {
	o := c.OIDC
	web := strings.HasPrefix(o.Issuer, "https://") || strings.HasPrefix(o.Issuer, "http://")
	l.refuse(o.Issuer != "" && !web, "oidc.issuer", "oidc.issuer", "is not a web address; write one such as https://login.example.com")
	l.refuse(o.Issuer != "" && o.ClientID == "", "oidc.clientId", "oidc.issuer",
		"is missing, but oidc.issuer is set; register Postroom there", "oidc.issuer")
	l.refuse(o.Issuer != "" && c.ServiceURL == "", "serviceUrl", "oidc.issuer",
		"is missing, but oidc.issuer is set; the issuer sends people back to it", "oidc.issuer", "serviceUrl")
	l.warn(o.Issuer == "" && o.ClientID != "", "oidc.clientId", "has no effect: oidc.issuer is not set")
}
