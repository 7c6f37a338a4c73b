package api

import "time"

// SMTPAuth are the credentials of a relay. Pass and AccessToken are masked in answers.
type SMTPAuth struct {
	User        string `json:"user,omitempty" maxLength:"256"`
	Pass        string `json:"pass,omitempty" maxLength:"4096"`
	AccessToken string `json:"accessToken,omitempty" maxLength:"16384" doc:"OAuth 2.0 access token, used instead of pass"`
}

// SMTPTLS are the TLS settings of a relay.
type SMTPTLS struct {
	RejectUnauthorized *bool  `json:"rejectUnauthorized,omitempty" doc:"Verify the certificate; true when absent"`
	MinVersion         string `json:"minVersion,omitempty" enum:"TLSv1.2,TLSv1.3" doc:"TLSv1.2 when absent"`
	StartTLS           string `json:"starttls,omitempty" enum:"required,opportunistic,off" doc:"When secure is false: required with credentials, opportunistic without, when absent"`
}

// SMTPServer is a relay: where an account's mail is handed to.
type SMTPServer struct {
	Host   string    `json:"host" minLength:"1" maxLength:"256"`
	Port   int       `json:"port" minimum:"1" maximum:"65535"`
	Secure bool      `json:"secure" required:"false" doc:"TLS from the first byte (usually port 465)"`
	Auth   *SMTPAuth `json:"auth,omitempty"`
	TLS    *SMTPTLS  `json:"tls,omitempty"`
}

// AccountLimits bound what an account does to its relay at once.
type AccountLimits struct {
	Connections   int `json:"connections,omitempty" minimum:"1" maximum:"1000" doc:"Connections at once, a process; 10 when absent"`
	PerConnection int `json:"perConnection,omitempty" minimum:"1" maximum:"100000" doc:"Messages on one connection; 100 when absent"`
}

// Account is a sender: a name, an address and the relay its mail goes through.
type Account struct {
	Account      string         `json:"account" minLength:"1" maxLength:"256" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"Id, chosen by you"`
	Name         string         `json:"name,omitempty" maxLength:"256" doc:"Display name of the sender"`
	Email        string         `json:"email" maxLength:"256" doc:"Address of the sender"`
	SMTP         *SMTPServer    `json:"smtp,omitempty"`
	Limits       *AccountLimits `json:"limits,omitempty"`
	Webhooks     string         `json:"webhooks,omitempty" maxLength:"2048" doc:"URL that receives this account's events, beside the instance's"`
	LocalAddress string         `json:"localAddress,omitempty" maxLength:"64" doc:"IP address to connect from"`
	SMTPEhloName string         `json:"smtpEhloName,omitempty" maxLength:"256" doc:"Name for EHLO; the host's own when absent"`
	Retry        []string       `json:"retry,omitempty" maxItems:"100" doc:"Delays between attempts, such as 1m, 5m, 30m; the last repeats; the setting when absent"`
}

// AccountPatch changes an account. Absent fields stay as they are; a masked password ("******") keeps the stored one.
type AccountPatch struct {
	Name         *string        `json:"name,omitempty" maxLength:"256"`
	Email        *string        `json:"email,omitempty" maxLength:"256"`
	SMTP         *SMTPServer    `json:"smtp,omitempty"`
	Limits       *AccountLimits `json:"limits,omitempty"`
	Webhooks     *string        `json:"webhooks,omitempty" maxLength:"2048"`
	LocalAddress *string        `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName *string        `json:"smtpEhloName,omitempty" maxLength:"256"`
	Retry        *[]string      `json:"retry,omitempty" maxItems:"100"`
}

// AccountInfo is an account as answers show it, with its state.
type AccountInfo struct {
	Account
	State       string     `json:"state" enum:"unset,connected,error" doc:"What the last attempt through this account met"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
}

// AccountCreated is the answer to a new account.
type AccountCreated struct {
	Account string `json:"account"`
	State   string `json:"state" enum:"new,existing"`
}

// AccountDeleted is the answer to the deletion of an account.
type AccountDeleted struct {
	Account   string `json:"account"`
	Deleted   bool   `json:"deleted"`
	Cancelled int    `json:"cancelled" doc:"Queued messages that were cancelled with it"`
}

// AccountPage is a page of accounts.
type AccountPage struct {
	Total    int           `json:"total"`
	Page     int           `json:"page"`
	Pages    int           `json:"pages"`
	Accounts []AccountInfo `json:"accounts"`
}

// VerifyRequest asks whether a relay takes these settings.
type VerifyRequest struct {
	Account      string      `json:"account,omitempty" maxLength:"256" doc:"A stored account to try, instead of the settings below"`
	SMTP         *SMTPServer `json:"smtp,omitempty"`
	LocalAddress string      `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName string      `json:"smtpEhloName,omitempty" maxLength:"256"`
}

// VerifyAnswer is the answer to a VerifyRequest.
type VerifyAnswer struct {
	SMTP VerifyResult `json:"smtp"`
}

// VerifyResult is what logging in to a relay met.
type VerifyResult struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"code,omitempty"`
}
