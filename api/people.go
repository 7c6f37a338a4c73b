package api

import "time"

// Role is what a person may do.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"   // read
	RoleOperator Role = "operator" // everything but people, tokens, settings and the audit log
	RoleAdmin    Role = "admin"    // everything
)

// Identity is who somebody is at another issuer of logins (OpenID Connect).
type Identity struct {
	Issuer  string `json:"issuer" minLength:"1" maxLength:"512" doc:"URL of the issuer"`
	Subject string `json:"subject,omitempty" maxLength:"255" doc:"The claim sub. Defaults to the sub of the first sign-in with the user's name"`
}

// PersonRequest creates a person.
type PersonRequest struct {
	Person   string    `json:"person" minLength:"1" maxLength:"128" doc:"User name: letters, digits and . _ - + @, such as an email address. Converted to lower case"`
	Role     Role      `json:"role" enum:"viewer,operator,admin"`
	Accounts []string  `json:"accounts,omitempty" maxItems:"1000" doc:"Accounts that the user may see. A session acts for one of them at a time. Without it, the user sees all accounts and everything that belongs to none. Not allowed for admins"`
	Identity *Identity `json:"identity,omitempty" doc:"External identity. The user signs in at this issuer and has no password here"`
}

// PersonPatch changes what is not nil of a person. Each change ends the sessions of the person.
type PersonPatch struct {
	Role     *Role     `json:"role,omitempty" enum:"viewer,operator,admin"`
	Accounts *[]string `json:"accounts,omitempty" maxItems:"1000" doc:"Accounts that the user may see. An empty list means all accounts and everything that belongs to none"`
	Disabled *bool     `json:"disabled,omitempty" doc:"Whether the user can't sign in"`
}

// PersonInfo is a person without secrets.
type PersonInfo struct {
	Person        string     `json:"person" doc:"User name"`
	Role          Role       `json:"role"`
	Accounts      []string   `json:"accounts" doc:"Accounts that the user may see. Empty means all"`
	Identity      *Identity  `json:"identity,omitempty"`
	Alias         string     `json:"alias,omitempty" doc:"The user's name at the issuer, if it has changed since the user was created here"`
	Disabled      bool       `json:"disabled"`
	Invited       bool       `json:"invited" doc:"Whether the user still has to set a password with a link"`
	TOTP          bool       `json:"totp" doc:"Whether signing in requires a code from an app"`
	RecoveryCodes int        `json:"recoveryCodes" doc:"Number of unused recovery codes, which replace the app"`
	Created       time.Time  `json:"created"`
	Updated       time.Time  `json:"updated"`
	LastLogin     *time.Time `json:"lastLogin,omitempty"`
	LastAddress   string     `json:"lastAddress,omitempty" doc:"Address of the last sign-in"`
	Refused       string     `json:"refused,omitempty" doc:"Why the user can't sign in: the record in Redis was modified outside Postroom. The other fields are then empty"`
}

// PersonPage is a page of users.
type PersonPage struct {
	PageNumbers
	People []PersonInfo `json:"people"`
}

func (p PersonPage) rows() ([]PersonInfo, string, int) { return p.People, "", p.Pages }

// PersonLink is a one-time link that sets a password. No other answer has it.
type PersonLink struct {
	Person  string    `json:"person"`
	Link    string    `json:"link,omitempty" doc:"URL of the page where the user sets a password, or its path without the setting serviceUrl. Absent if the user signs in elsewhere"`
	Expires time.Time `json:"expires,omitzero"`
}

// Me is the person of the session.
type Me struct {
	PersonInfo
	Account string `json:"account,omitempty" doc:"Account that the session acts for. Absent for all accounts"`
	Session string `json:"session" doc:"ID of the session"`
}

// PasswordChange replaces the own password.
type PasswordChange struct {
	Password    string `json:"password" maxLength:"1024" doc:"Current password"`
	NewPassword string `json:"newPassword" maxLength:"1024" doc:"New password, at least 12 characters"`
}

// PasswordProof is the own password, for what needs it again.
type PasswordProof struct {
	Password string `json:"password" maxLength:"1024"`
}

// TOTPSecret is a second factor that waits for its first code.
type TOTPSecret struct {
	Secret string `json:"secret" doc:"Secret to type into an authenticator app, in base32"`
	URL    string `json:"url" doc:"The secret as an otpauth: URL, which apps read from a QR code"`
}

// TOTPCode is a code of an app.
type TOTPCode struct {
	Code string `json:"code" minLength:"6" maxLength:"16"`
}

// RecoveryCodes are new recovery codes. No other answer has them.
type RecoveryCodes struct {
	RecoveryCodes []string `json:"recoveryCodes" doc:"Recovery codes. Each replaces a code from the app once"`
}

// AccountChoice selects the account that a session acts for.
type AccountChoice struct {
	Account string `json:"account" minLength:"1" maxLength:"256"`
}

// SessionInfo is a session of the pages.
type SessionInfo struct {
	ID       string    `json:"id" doc:"Start of the hash of its cookie, as in the audit log"`
	Person   string    `json:"person,omitempty" doc:"User who opened it. Absent if it was opened with a token"`
	TokenID  string    `json:"tokenId,omitempty" doc:"Token that opened it"`
	Account  string    `json:"account,omitempty" doc:"Account that it acts for"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
	Expires  time.Time `json:"expires" doc:"When it ends unless it is used"`
	Address  string    `json:"address,omitempty" doc:"Address from which it was opened"`
	Agent    string    `json:"agent,omitempty" doc:"User agent of the browser that opened it"`
	Current  bool      `json:"current" doc:"Whether it is the session of this request"`
}

// SessionQuery selects sessions.
type SessionQuery struct {
	Person string `query:"person" maxLength:"128" doc:"Filter by user. Users who aren't admins see only their own sessions"`
}

// Sessions are the sessions that have not ended.
type Sessions struct {
	Sessions []SessionInfo `json:"sessions" doc:"Sessions, newest first, at most 1,000"`
}
