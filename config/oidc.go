package config

import "strings"

// OIDC is the server at which persons log in, with OpenID Connect.
type OIDC struct {
	Issuer       string    `key:"issuer" empty:"none" doc:"URL of the issuer, exactly as it calls itself, such as https://login.example.com/realms/staff. Its configuration is found under it. See People."`
	ClientID     string    `key:"clientId" empty:"none" doc:"Name of Postroom at the issuer. Allow it to send people back to serviceUrl and /login/oidc/callback."`
	ClientSecret Secret    `key:"clientSecret" secret:"value" empty:"none" doc:"Password of Postroom at the issuer. None: a public client, which PKCE protects."`
	Name         string    `key:"name" default:"single sign-on" doc:"What the button of the login page calls it: Log in with ..."`
	Scopes       string    `key:"scopes" default:"email, profile" doc:"What the issuer is asked for besides openid, separated by commas. Some issuers tell groups only with a scope such as groups."`
	NameClaim    string    `key:"nameClaim" default:"email" doc:"Claim that is the name of a person here. email counts only if the issuer says email_verified."`
	RoleClaim    string    `key:"roleClaim" default:"groups" doc:"Claim whose values give a person the role. Used if one of oidc.roles is set."`
	Roles        OIDCRoles `key:"roles"`
}

// OIDCRoles are the values of the role claim that give a role.
type OIDCRoles struct {
	Admin    string `key:"admin" empty:"none" doc:"Values that make an admin, separated by commas. If one of oidc.roles is set, people without any of the values can't log in, and those with one need not be created before. If none is set, only persons that were created for this issuer can log in."`
	Operator string `key:"operator" empty:"none" doc:"Values that make an operator. Of several roles the highest counts."`
	Viewer   string `key:"viewer" empty:"none" doc:"Values that make a viewer."`
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
