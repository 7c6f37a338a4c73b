package api

import (
	"strconv"
	"strings"
	"time"
)

// SMTPAuth is the credentials of a relay. Pass and AccessToken are masked in responses.
type SMTPAuth struct {
	User        string `json:"user,omitempty" maxLength:"256"`
	Pass        string `json:"pass,omitempty" maxLength:"4096"`
	AccessToken string `json:"accessToken,omitempty" maxLength:"16384" doc:"OAuth 2.0 access token, used instead of pass"`
}

// SMTPTLS are the TLS settings of a relay.
type SMTPTLS struct {
	RejectUnauthorized *bool  `json:"rejectUnauthorized,omitempty" doc:"Verify the certificate; true when absent"`
	MinVersion         string `json:"minVersion,omitempty" enum:"TLSv1.2,TLSv1.3" doc:"TLSv1.2 when absent"`
	CA                 string `json:"ca,omitempty" maxLength:"65536" doc:"PEM certificates of the authorities to trust, instead of the system's"`
	PinSHA256          string `json:"pinSha256,omitempty" maxLength:"1024" doc:"Base64 SHA-256 of the relay's public key (SPKI), several separated by spaces: one of the chain's keys must match"`
	StartTLS           string `json:"starttls,omitempty" enum:"required,opportunistic,off" doc:"When secure is false. When absent: required with credentials for another machine, else opportunistic"`
}

// SMTPServer is a relay. A preset fills in missing values: host, port, TLS, and limits.
type SMTPServer struct {
	Preset string    `json:"preset,omitempty" enum:"gmail,office365,ses,sendgrid,mailgun,postmark,icloud,generic" doc:"A provider whose settings and limits stand in for those absent here"`
	Host   string    `json:"host,omitempty" minLength:"1" maxLength:"256" doc:"Required without a preset that names one"`
	Port   int       `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Required without a preset"`
	Secure bool      `json:"secure" required:"false" doc:"TLS from the first byte (usually port 465)"`
	Auth   *SMTPAuth `json:"auth,omitempty"`
	TLS    *SMTPTLS  `json:"tls,omitempty"`
}

// OAuth2 is the source of a relay's access tokens: a refresh token and a provider's token endpoint.
// ClientSecret and RefreshToken are masked in responses.
type OAuth2 struct {
	Provider     string `json:"provider,omitempty" enum:"gmail,office365" doc:"Names the token endpoint and the scope; or give tokenUrl"`
	TokenURL     string `json:"tokenUrl,omitempty" maxLength:"2048" doc:"Token endpoint (https) of another provider"`
	ClientID     string `json:"clientId" minLength:"1" maxLength:"1024"`
	ClientSecret string `json:"clientSecret,omitempty" maxLength:"4096"`
	RefreshToken string `json:"refreshToken" minLength:"1" maxLength:"16384"`
	Scope        string `json:"scope,omitempty" maxLength:"1024"`
	User         string `json:"user" minLength:"1" maxLength:"256" doc:"The mailbox to log in as"`
}

// Limits are the limits of an account or gateway towards its relay. All processes share them. Zero or absent
// means no limit, except the preset's.
type Limits struct {
	PerSecond     float64 `json:"perSecond,omitempty" minimum:"0" maximum:"100000" doc:"Recipients a second, on average"`
	PerMinute     float64 `json:"perMinute,omitempty" minimum:"0" maximum:"6000000" doc:"Recipients a minute, on average"`
	PerDay        float64 `json:"perDay,omitempty" minimum:"0" maximum:"1000000000" doc:"Recipients a day, on average"`
	Burst         int     `json:"burst,omitempty" minimum:"1" maximum:"100000" doc:"Recipients at once after a pause, of the limit by the second; as many as a second allows when absent"`
	Connections   int     `json:"connections,omitempty" minimum:"1" maximum:"1000" doc:"Connections at once, of all processes together; without it, 10 for each process"`
	PerConnection int     `json:"perConnection,omitempty" minimum:"1" maximum:"100000" doc:"Messages on one connection; 100 when absent"`
}

// Words returns the limits as text: "5 a second, 100 a day". It is empty without limits or if l is nil.
func (l *Limits) Words() string {
	if l == nil {
		return ""
	}
	var all []string
	say := func(n float64, what string) {
		if n > 0 {
			all = append(all, strconv.FormatFloat(n, 'f', -1, 64)+" "+what)
		}
	}
	say(l.PerSecond, "a second")
	say(float64(l.Burst), "at once")
	say(l.PerMinute, "a minute")
	say(l.PerDay, "a day")
	say(float64(l.Connections), "connections")
	say(float64(l.PerConnection), "messages a connection")
	return strings.Join(all, ", ")
}

// Route is one gateway of an account's list.
type Route struct {
	Gateway string `json:"gateway" minLength:"1" maxLength:"256"`
	Lane    Lane   `json:"lane,omitempty" enum:"transactional,bulk" doc:"Only for mail of this lane, which then takes no other way, so that the two never share a reputation; absent: for mail whose lane has no gateway of its own"`
	Weight  int    `json:"weight,omitempty" minimum:"0" maximum:"1000" doc:"Share of the load among the gateways that have one; 0 or absent: used only when those before it fail"`
}

// DKIM is the key that signs mail. PrivateKey is masked in responses.
type DKIM struct {
	Domain     string `json:"domain" minLength:"1" maxLength:"253"`
	Selector   string `json:"selector" minLength:"1" maxLength:"253"`
	PrivateKey string `json:"privateKey" minLength:"1" maxLength:"16384" doc:"PEM: RSA of 2048 bits and more, or Ed25519"`
}

// Account is a sender: a name, an address and the relay of its mail.
type Account struct {
	Account             string        `json:"account" minLength:"1" maxLength:"256" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"Id, chosen by you"`
	Name                string        `json:"name,omitempty" maxLength:"256" doc:"Display name of the sender"`
	Email               string        `json:"email" maxLength:"256" doc:"Address of the sender"`
	SMTP                *SMTPServer   `json:"smtp,omitempty" doc:"The account's own relay; tried first. Required without gateways"`
	OAuth2              *OAuth2       `json:"oauth2,omitempty" doc:"Log in to the account's own relay with OAuth 2.0 instead of smtp.auth"`
	Gateways            []Route       `json:"gateways,omitempty" maxItems:"20" doc:"Gateways to send through, in order: the next one serves when the ones before can't be reached or refuse the login"`
	DKIM                *DKIM         `json:"dkim,omitempty" doc:"Signs the account's mail, instead of a key stored for the domain of From"`
	Senders             []SenderRight `json:"senders,omitempty" maxItems:"100" doc:"Addresses and domains that this account may send as, beside its own: see senders.enforce. Those given here count at once"`
	Limits              *Limits       `json:"limits,omitempty"`
	AccountTrouble      string        `json:"accountTrouble,omitempty" enum:"fail,hold" doc:"What happens to mail while the account's login, token, certificate or sender is refused: it fails at once, or waits; the setting delivery.accountTrouble when absent"`
	Proxy               string        `json:"proxy,omitempty" maxLength:"2048" doc:"Connect through this proxy: http, https or socks5 URL; its password is masked in answers"`
	Webhooks            string        `json:"webhooks,omitempty" maxLength:"2048" doc:"URL that receives this account's events, beside the instance's"`
	LocalAddress        string        `json:"localAddress,omitempty" maxLength:"64" doc:"IP address to connect from"`
	SMTPEhloName        string        `json:"smtpEhloName,omitempty" maxLength:"256" doc:"Name for EHLO; the host's own when absent"`
	Locale              string        `json:"locale,omitempty" maxLength:"64" doc:"Language of its mail (BCP 47): chooses the variant of a template, and how numbers and dates are written; en when absent"`
	TZ                  string        `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates in templates, such as Europe/Zurich; UTC when absent"`
	TrackOpens          *bool         `json:"trackOpens,omitempty" doc:"Whether opens of its mail are counted; the setting when absent. A message may say otherwise"`
	TrackClicks         *bool         `json:"trackClicks,omitempty" doc:"Whether clicks on links of its mail are counted; the setting when absent. A message may say otherwise"`
	IdempotencyRequired bool          `json:"idempotencyRequired,omitempty" doc:"A submit without an idempotency key is refused"`
	Retry               []string      `json:"retry,omitempty" maxItems:"100" doc:"Delays between attempts, such as 1m, 5m, 30m; the last repeats; the setting when absent"`
	Quota               *Quota        `json:"quota,omitempty" doc:"How much the account may have; the settings quotas.* when absent"`
}

// AccountPatch changes an account. Absent fields stay as they are. A masked password ("******") keeps the
// stored one. Each field points to its new value. Smtp, oauth2, dkim and limits are replaced as a whole. A
// pointer to nil (null in JSON) removes them, trackOpens, trackClicks and quota.
type AccountPatch struct {
	Name                *string        `json:"name,omitempty" maxLength:"256"`
	Email               *string        `json:"email,omitempty" maxLength:"256"`
	SMTP                **SMTPServer   `json:"smtp,omitempty"`
	OAuth2              **OAuth2       `json:"oauth2,omitempty"`
	Gateways            *[]Route       `json:"gateways,omitempty" maxItems:"20"`
	DKIM                **DKIM         `json:"dkim,omitempty"`
	Senders             *[]SenderRight `json:"senders,omitempty" maxItems:"100"`
	Limits              **Limits       `json:"limits,omitempty"`
	AccountTrouble      *string        `json:"accountTrouble,omitempty" enum:"fail,hold"`
	Proxy               *string        `json:"proxy,omitempty" maxLength:"2048"`
	Webhooks            *string        `json:"webhooks,omitempty" maxLength:"2048"`
	LocalAddress        *string        `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName        *string        `json:"smtpEhloName,omitempty" maxLength:"256"`
	Locale              *string        `json:"locale,omitempty" maxLength:"64"`
	TZ                  *string        `json:"tz,omitempty" maxLength:"64"`
	TrackOpens          **bool         `json:"trackOpens,omitempty" nullable:"true" doc:"null: the setting"`
	TrackClicks         **bool         `json:"trackClicks,omitempty" nullable:"true" doc:"null: the setting"`
	IdempotencyRequired *bool          `json:"idempotencyRequired,omitempty"`
	Retry               *[]string      `json:"retry,omitempty" maxItems:"100"`
	Quota               **Quota        `json:"quota,omitempty" doc:"Replaced as a whole; null: the settings"`
}

// AccountInfo is an account with its state, as in responses.
type AccountInfo struct {
	Account
	State       string     `json:"state" enum:"unset,connected,error,held" doc:"Result of the last attempt through this account; held: its mail waits until the trouble is over"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`

	Type       string          `json:"type" enum:"sending" doc:"For EmailEngine's clients: every account sends only"`
	SendOnly   bool            `json:"sendOnly" doc:"true"`
	SMTPStatus *SMTPStatus     `json:"smtpStatus" doc:"The last attempt through a relay of this account that proved something, to the minute; null: none since the account was changed"`
	Counters   AccountCounters `json:"counters"`
}

// SMTPStatus is the result of an account's last attempt to send.
type SMTPStatus struct {
	Created      time.Time `json:"created"`
	Status       string    `json:"status" enum:"ok,error" doc:"ok: the relay was reached and accepted the login"`
	Description  string    `json:"description,omitempty" doc:"The error"`
	ResponseCode int       `json:"responseCode,omitempty" doc:"Of the relay's reply; absent: there was none"`
	Code         string    `json:"code,omitempty" doc:"EAUTH, ESOCKET, ETLS…"`
	Command      string    `json:"command,omitempty" doc:"SMTP command that failed"`
}

// AccountCounters count what happened to the mail of an account.
type AccountCounters struct {
	Events map[string]int `json:"events,omitempty" doc:"Events by type, messageQueued left out, since the account was created; absent: none for 13 months"`
}

// Warmup raises the daily limit of a new gateway day by day. limits.perDay is its final daily limit.
type Warmup struct {
	PerDay  float64    `json:"perDay" minimum:"1" maximum:"1000000000" doc:"Recipients on the first day"`
	Growth  float64    `json:"growth,omitempty" minimum:"1" maximum:"10" doc:"How many times as many each day as the day before; 1.5 when absent"`
	Started *time.Time `json:"started,omitempty" doc:"When the first day began; when it was set, when absent"`
}

// Gateway is a relay that accounts share. The field names are EmailEngine's.
type Gateway struct {
	Gateway      string         `json:"gateway" minLength:"1" maxLength:"256" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"Id, chosen by you"`
	Name         string         `json:"name" maxLength:"256"`
	Type         GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"How it is spoken to: smtp (the default), the API of a provider, or http, an endpoint of your own; it can't be changed later"`
	MX           *GatewayDirect `json:"mx,omitempty" doc:"Only with type mx"`
	API          *GatewayAPI    `json:"api,omitempty" doc:"Required with every type but smtp and mx. With every type but smtp, the fields of SMTP (preset, host, port, secure, user, pass, tls, oauth2, localAddress, smtpEhloName) must be absent"`
	Preset       string         `json:"preset,omitempty" enum:"gmail,office365,ses,sendgrid,mailgun,postmark,icloud,generic" doc:"A provider whose settings and limits stand in for those absent here"`
	Host         string         `json:"host,omitempty" minLength:"1" maxLength:"256" doc:"Required without a preset that names one"`
	Port         int            `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Required without a preset"`
	Secure       bool           `json:"secure" required:"false" doc:"TLS from the first byte (usually port 465)"`
	User         string         `json:"user,omitempty" maxLength:"256"`
	Pass         string         `json:"pass,omitempty" maxLength:"4096" doc:"Masked in answers"`
	TLS          *SMTPTLS       `json:"tls,omitempty"`
	OAuth2       *OAuth2        `json:"oauth2,omitempty" doc:"Log in with OAuth 2.0 instead of user and pass"`
	Limits       *Limits        `json:"limits,omitempty"`
	Warmup       *Warmup        `json:"warmup,omitempty" doc:"Send a little more every day, until limits.perDay"`
	Proxy        string         `json:"proxy,omitempty" maxLength:"2048" doc:"Connect through this proxy: http, https or socks5 URL"`
	LocalAddress string         `json:"localAddress,omitempty" maxLength:"64" doc:"IP address to connect from"`
	SMTPEhloName string         `json:"smtpEhloName,omitempty" maxLength:"256" doc:"Name for EHLO; the host's own when absent"`

	LimitsPerDomain map[string]DomainLimits `json:"limitsPerDomain,omitempty" maxProperties:"100" doc:"Limits for each group of recipients' domains: by a domain, such as gmail.com, or * for each group without an entry of its own"`
}

// GatewayPatch changes a gateway. Absent fields stay as they are. A masked secret ("******") keeps the stored
// one. Each field points to its new value. Api, tls, oauth2, limits, limitsPerDomain and warmup are replaced
// as a whole. A pointer to nil (null in JSON) removes them.
type GatewayPatch struct {
	Name         *string         `json:"name,omitempty" maxLength:"256"`
	Type         *GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"Only the type that the gateway has"`
	API          **GatewayAPI    `json:"api,omitempty"`
	MX           **GatewayDirect `json:"mx,omitempty"`
	Preset       *string         `json:"preset,omitempty" enum:"gmail,office365,ses,sendgrid,mailgun,postmark,icloud,generic"`
	Host         *string         `json:"host,omitempty" maxLength:"256"`
	Port         *int            `json:"port,omitempty" minimum:"1" maximum:"65535"`
	Secure       *bool           `json:"secure,omitempty"`
	User         *string         `json:"user,omitempty" maxLength:"256"`
	Pass         *string         `json:"pass,omitempty" maxLength:"4096"`
	TLS          **SMTPTLS       `json:"tls,omitempty"`
	OAuth2       **OAuth2        `json:"oauth2,omitempty"`
	Limits       **Limits        `json:"limits,omitempty"`
	Warmup       **Warmup        `json:"warmup,omitempty"`
	Proxy        *string         `json:"proxy,omitempty" maxLength:"2048"`
	LocalAddress *string         `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName *string         `json:"smtpEhloName,omitempty" maxLength:"256"`

	LimitsPerDomain *map[string]DomainLimits `json:"limitsPerDomain,omitempty" maxProperties:"100" doc:"All of them; {} removes them"`
}

// GatewayError is the last failure of a gateway.
type GatewayError struct {
	Response           string    `json:"response"`
	ServerResponseCode string    `json:"serverResponseCode" doc:"EAUTH, ESOCKET, ETLS…"`
	Time               time.Time `json:"time"`
}

// GatewayInfo is a gateway with its state, as in responses.
type GatewayInfo struct {
	Gateway
	State      string        `json:"state" enum:"unset,connected,error,open" doc:"Result of the last use; open: it failed so often that it is not used for a while"`
	Deliveries int64         `json:"deliveries" doc:"Messages it took"`
	LastUse    *time.Time    `json:"lastUse"`
	LastError  *GatewayError `json:"lastError"`
	Created    time.Time     `json:"created"`
	Updated    time.Time     `json:"updated"`

	Webhook *GatewayWebhook `json:"webhook,omitempty" doc:"Of the types with an API, as it was when it was last checked"`
}

// GatewayCreated is the response to a new gateway.
type GatewayCreated struct {
	Gateway string `json:"gateway"`
	State   string `json:"state" enum:"new,existing"`
	Secret  string `json:"secret,omitempty" doc:"Of a gateway of type http without one: it signs the requests, and is shown only now"`

	WebhookSecret string `json:"webhookSecret,omitempty" doc:"The api.webhookSecret that was made; it is shown only now"`
}

// GatewayUpdated is the response to a changed gateway.
type GatewayUpdated struct {
	Gateway string `json:"gateway"`
}

// GatewayDeleted is the response to the deletion of a gateway.
type GatewayDeleted struct {
	Gateway string `json:"gateway"`
	Deleted bool   `json:"deleted"`
}

// GatewayPage is a page of gateways.
type GatewayPage struct {
	PageNumbers
	Gateways []GatewayInfo `json:"gateways"`
}

func (p GatewayPage) rows() ([]GatewayInfo, string, int) { return p.Gateways, "", p.Pages }

// NewDomainKey stores the DKIM key of a domain.
type NewDomainKey struct {
	DKIM
	Account string `json:"account,omitempty" maxLength:"256" doc:"The only account whose mail it signs; absent: any that may send as the domain"`
}

// DomainKey is the DKIM key of a domain. It signs the mail of the accounts that may send as the domain.
type DomainKey struct {
	NewDomainKey
	Record  string    `json:"record" doc:"Value of the TXT record to publish at selector._domainkey.domain"`
	Created time.Time `json:"created"`
}

// DomainKeyPage lists the DKIM keys of all domains.
type DomainKeyPage struct {
	Total int         `json:"total"`
	Keys  []DomainKey `json:"keys"`
}

// AccountCreated is the response to a new account.
type AccountCreated struct {
	Account string `json:"account"`
	State   string `json:"state" enum:"new,existing"`
}

// AccountDeleted is the response to the deletion of an account.
type AccountDeleted struct {
	Account   string `json:"account"`
	Deleted   bool   `json:"deleted"`
	Cancelled int    `json:"cancelled" doc:"Queued messages that were cancelled with it"`
}

// AccountPage is a page of accounts.
type AccountPage struct {
	PageNumbers
	Accounts []AccountInfo `json:"accounts"`
}

func (p AccountPage) rows() ([]AccountInfo, string, int) { return p.Accounts, "", p.Pages }

// VerifyRequest asks whether a relay accepts these settings.
type VerifyRequest struct {
	Account      string         `json:"account,omitempty" maxLength:"256" doc:"A stored account to try, instead of the settings below"`
	Gateway      string         `json:"gateway,omitempty" maxLength:"256" doc:"A stored gateway to try, instead of the settings below"`
	Type         GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"How to speak to it: smtp when absent"`
	MX           *GatewayDirect `json:"mx,omitempty" doc:"Only with type mx"`
	API          *GatewayAPI    `json:"api,omitempty" doc:"Required with every type but smtp; the fields of SMTP must be absent then"`
	SMTP         *SMTPServer    `json:"smtp,omitempty"`
	OAuth2       *OAuth2        `json:"oauth2,omitempty"`
	Proxy        string         `json:"proxy,omitempty" maxLength:"2048"`
	LocalAddress string         `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName string         `json:"smtpEhloName,omitempty" maxLength:"256"`
}

// VerifyAnswer is the response to a VerifyRequest.
type VerifyAnswer struct {
	SMTP     VerifyResult          `json:"smtp" doc:"Of the relay described, or the first one of the account"`
	Gateways []GatewayVerifyResult `json:"gateways,omitempty" doc:"Of each gateway of the account"`
}

// GatewayVerifyResult is the result of a login to a gateway.
type GatewayVerifyResult struct {
	Gateway string `json:"gateway"`
	VerifyResult
}

// VerifyResult is the result of a login to a relay.
type VerifyResult struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
	Code    string `json:"code,omitempty"`
}
