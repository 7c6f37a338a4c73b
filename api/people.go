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
	Subject string `json:"subject,omitempty" maxLength:"255" doc:"The claim sub. Absent: that of the first login under the person's name"`
}

// PersonRequest creates a person.
type PersonRequest struct {
	Person   string    `json:"person" minLength:"1" maxLength:"128" doc:"Login name: letters, digits and . _ - + @; capital letters become small. An address will do"`
	Role     Role      `json:"role" enum:"viewer,operator,admin"`
	Accounts []string  `json:"accounts,omitempty" maxItems:"1000" doc:"The only accounts that the person may see, of which a session acts for one at a time. Absent: all, and what belongs to no account. Not for admins"`
	Identity *Identity `json:"identity,omitempty" doc:"The person logs in at this issuer, and has no password here"`
}

// PersonPatch changes what is not nil of a person. Each change ends the sessions of the person.
type PersonPatch struct {
	Role     *Role     `json:"role,omitempty" enum:"viewer,operator,admin"`
	Accounts *[]string `json:"accounts,omitempty" maxItems:"1000" doc:"An empty list: all accounts, and what belongs to none"`
	Disabled *bool     `json:"disabled,omitempty" doc:"true: the person can't log in"`
}

// PersonInfo is a person without secrets.
type PersonInfo struct {
	Person        string     `json:"person" doc:"Login name"`
	Role          Role       `json:"role"`
	Accounts      []string   `json:"accounts" doc:"The only accounts that the person may see; empty: all"`
	Identity      *Identity  `json:"identity,omitempty"`
	Alias         string     `json:"alias,omitempty" doc:"The person's name at the issuer, if it has changed since the person was created here"`
	Disabled      bool       `json:"disabled"`
	Invited       bool       `json:"invited" doc:"The person has no password yet; a link sets one"`
	TOTP          bool       `json:"totp" doc:"A code of an app is needed to log in"`
	RecoveryCodes int        `json:"recoveryCodes" doc:"How many are left, to log in without the app"`
	Created       time.Time  `json:"created"`
	Updated       time.Time  `json:"updated"`
	LastLogin     *time.Time `json:"lastLogin,omitempty"`
	LastAddress   string     `json:"lastAddress,omitempty" doc:"Where that login came from"`
	Refused       string     `json:"refused,omitempty" doc:"Why the person can't log in: the record in Redis is not as Postroom wrote it. The other fields are empty then"`
}

// PersonPage is a page of persons.
type PersonPage struct {
	PageNumbers
	People []PersonInfo `json:"people"`
}

func (p PersonPage) rows() ([]PersonInfo, string, int) { return p.People, "", p.Pages }

// PersonLink is a one-time link that sets a password. No other answer has it.
type PersonLink struct {
	Person  string    `json:"person"`
	Link    string    `json:"link,omitempty" doc:"URL of the page where the person sets a password; a path if the setting serviceUrl is not set. Absent: the person logs in elsewhere"`
	Expires time.Time `json:"expires,omitzero"`
}

// Me is the person of the session.
type Me struct {
	PersonInfo
	Account string `json:"account,omitempty" doc:"The account that the session acts for; absent: all"`
	Session string `json:"session" doc:"Id of the session"`
}

// PasswordChange replaces the own password.
type PasswordChange struct {
	Password    string `json:"password" maxLength:"1024" doc:"The current one"`
	NewPassword string `json:"newPassword" maxLength:"1024" doc:"12 characters or more"`
}

// PasswordProof is the own password, for what needs it again.
type PasswordProof struct {
	Password string `json:"password" maxLength:"1024"`
}

// TOTPSecret is a second factor that waits for its first code.
type TOTPSecret struct {
	Secret string `json:"secret" doc:"To type into an app, in base32"`
	URL    string `json:"url" doc:"The same as otpauth: URL, which apps read as a QR code"`
}

// TOTPCode is a code of an app.
type TOTPCode struct {
	Code string `json:"code" minLength:"6" maxLength:"16"`
}

// RecoveryCodes are new recovery codes. No other answer has them.
type RecoveryCodes struct {
	RecoveryCodes []string `json:"recoveryCodes" doc:"Each replaces a code of the app, once"`
}

// AccountChoice selects the account that a session acts for.
type AccountChoice struct {
	Account string `json:"account" minLength:"1" maxLength:"256"`
}

// SessionInfo is a session of the pages.
type SessionInfo struct {
	ID       string    `json:"id" doc:"Beginning of the hash of its cookie, as in the audit log"`
	Person   string    `json:"person,omitempty" doc:"Who opened it; absent: it was opened with a token"`
	TokenID  string    `json:"tokenId,omitempty" doc:"The token that opened it"`
	Account  string    `json:"account,omitempty" doc:"The account that it acts for"`
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"lastUsed"`
	Expires  time.Time `json:"expires" doc:"When it ends if it is not used any more"`
	Address  string    `json:"address,omitempty" doc:"Where it was opened from"`
	Agent    string    `json:"agent,omitempty" doc:"Browser that opened it, as it calls itself"`
	Current  bool      `json:"current" doc:"It is the session of this request"`
}

// SessionQuery selects sessions.
type SessionQuery struct {
	Person string `query:"person" maxLength:"128" doc:"Only those of this person. A person who is no admin gets only the own ones"`
}

// Sessions are the sessions that have not ended.
type Sessions struct {
	Sessions []SessionInfo `json:"sessions" doc:"Newest first, 1,000 at most"`
}
