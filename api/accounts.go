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
	RejectUnauthorized *bool  `json:"rejectUnauthorized,omitempty" doc:"Whether to verify the certificate. Defaults to true"`
	MinVersion         string `json:"minVersion,omitempty" enum:"TLSv1.2,TLSv1.3" doc:"Minimum TLS version. Defaults to TLSv1.2"`
	CA                 string `json:"ca,omitempty" maxLength:"65536" doc:"PEM certificates of the authorities to trust instead of the system's"`
	PinSHA256          string `json:"pinSha256,omitempty" maxLength:"1024" doc:"Base64 SHA-256 hash of the relay's public key (SPKI). Separate several with spaces. One of them must match a key in the chain"`
	StartTLS           string `json:"starttls,omitempty" enum:"required,opportunistic,off" doc:"Whether to use STARTTLS if secure is false. Defaults to required if credentials would go to another machine, otherwise to opportunistic"`
}

// SMTPServer is a relay. A preset fills in missing values: host, port, TLS, and limits.
type SMTPServer struct {
	Preset string    `json:"preset,omitempty" enum:"gmail,office365,ses,sendgrid,mailgun,postmark,icloud,generic" doc:"Provider whose settings and limits apply to fields that you leave out"`
	Host   string    `json:"host,omitempty" minLength:"1" maxLength:"256" doc:"Host name. Required unless a preset has one"`
	Port   int       `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Port. Required without a preset"`
	Secure bool      `json:"secure" required:"false" doc:"Whether to use TLS from the first byte, usually on port 465"`
	Auth   *SMTPAuth `json:"auth,omitempty"`
	TLS    *SMTPTLS  `json:"tls,omitempty"`
}

// OAuth2 is the source of a relay's access tokens: a refresh token and a provider's token endpoint.
// ClientSecret and RefreshToken are masked in responses.
type OAuth2 struct {
	Provider     string `json:"provider,omitempty" enum:"gmail,office365" doc:"Provider whose token endpoint and scope to use. Set tokenUrl for other providers"`
	TokenURL     string `json:"tokenUrl,omitempty" maxLength:"2048" doc:"Token endpoint (HTTPS) of another provider"`
	ClientID     string `json:"clientId" minLength:"1" maxLength:"1024"`
	ClientSecret string `json:"clientSecret,omitempty" maxLength:"4096"`
	RefreshToken string `json:"refreshToken" minLength:"1" maxLength:"16384"`
	Scope        string `json:"scope,omitempty" maxLength:"1024"`
	User         string `json:"user" minLength:"1" maxLength:"256" doc:"Mailbox to sign in to"`
}

// Limits are the limits of an account or gateway towards its relay. All processes share them. Zero or absent
// means no limit, except the preset's.
type Limits struct {
	PerSecond     float64 `json:"perSecond,omitempty" minimum:"0" maximum:"100000" doc:"Maximum recipients per second, on average"`
	PerMinute     float64 `json:"perMinute,omitempty" minimum:"0" maximum:"6000000" doc:"Maximum recipients per minute, on average"`
	PerDay        float64 `json:"perDay,omitempty" minimum:"0" maximum:"1000000000" doc:"Maximum recipients per day, on average"`
	Burst         int     `json:"burst,omitempty" minimum:"1" maximum:"100000" doc:"Number of recipients that may follow each other without delay after a pause, within perSecond. Defaults to one second's worth"`
	Connections   int     `json:"connections,omitempty" minimum:"1" maximum:"1000" doc:"Maximum simultaneous connections of all processes together. Defaults to 10 for each process"`
	PerConnection int     `json:"perConnection,omitempty" minimum:"1" maximum:"100000" doc:"Maximum messages per connection. Defaults to 100"`
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
	Lane    Lane   `json:"lane,omitempty" enum:"transactional,bulk" doc:"Stream that may use this gateway. That stream then uses no other gateways, so the streams don't share a reputation. A gateway without a stream serves the streams that have no gateway"`
	Weight  int    `json:"weight,omitempty" minimum:"0" maximum:"1000" doc:"Share of the load among the gateways with a weight. With 0, the default, the gateway is used only if the gateways before it fail"`
}

// DKIM is the key that signs mail. PrivateKey is masked in responses.
type DKIM struct {
	Domain     string `json:"domain" minLength:"1" maxLength:"253"`
	Selector   string `json:"selector" minLength:"1" maxLength:"253"`
	PrivateKey string `json:"privateKey" minLength:"1" maxLength:"16384" doc:"PEM private key: RSA with at least 2048 bits, or Ed25519"`
}

// Account is a sender: a name, an address and the relay of its mail.
type Account struct {
	Account             string        `json:"account" minLength:"1" maxLength:"256" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"ID that you choose"`
	Name                string        `json:"name,omitempty" maxLength:"256" doc:"Sender's display name"`
	Email               string        `json:"email" maxLength:"256" doc:"Sender's address"`
	SMTP                *SMTPServer   `json:"smtp,omitempty" doc:"The account's own relay, tried before its gateways. Required without gateways"`
	OAuth2              *OAuth2       `json:"oauth2,omitempty" doc:"OAuth 2.0 credentials for the account's own relay, used instead of smtp.auth"`
	Gateways            []Route       `json:"gateways,omitempty" maxItems:"20" doc:"Gateways to send through, in order. The next gateway is used if those before it can't be reached or refuse the login"`
	DKIM                *DKIM         `json:"dkim,omitempty" doc:"Key that signs the account's messages instead of a key stored for the From domain"`
	Senders             []SenderRight `json:"senders,omitempty" maxItems:"100" doc:"Addresses and domains that this account may send as, in addition to its own address. See senders.enforce. They're valid immediately"`
	Limits              *Limits       `json:"limits,omitempty"`
	AccountTrouble      string        `json:"accountTrouble,omitempty" enum:"fail,hold" doc:"What happens to messages while the account's login, token, certificate or sender is refused: they fail immediately, or wait. Defaults to the setting delivery.accountTrouble"`
	Proxy               string        `json:"proxy,omitempty" maxLength:"2048" doc:"URL of an HTTP, HTTPS or SOCKS5 proxy to connect through. Responses mask its password"`
	Webhooks            string        `json:"webhooks,omitempty" maxLength:"2048" doc:"URL that receives this account's events, in addition to the instance's URL"`
	LocalAddress        string        `json:"localAddress,omitempty" maxLength:"64" doc:"Local IP address to connect from"`
	SMTPEhloName        string        `json:"smtpEhloName,omitempty" maxLength:"256" doc:"Host name to send with EHLO. Defaults to the machine's name"`
	Locale              string        `json:"locale,omitempty" maxLength:"64" doc:"Default language of messages (BCP 47). It selects the template variant and the format of numbers and dates. Defaults to en"`
	TZ                  string        `json:"tz,omitempty" maxLength:"64" doc:"Time zone for dates in templates, such as Europe/Zurich. Defaults to UTC"`
	TrackOpens          *bool         `json:"trackOpens,omitempty" doc:"Whether to count opens. Defaults to the setting. A message can override it"`
	TrackClicks         *bool         `json:"trackClicks,omitempty" doc:"Whether to count clicks on links. Defaults to the setting. A message can override it"`
	IdempotencyRequired bool          `json:"idempotencyRequired,omitempty" doc:"Whether to refuse a submit without an idempotency key"`
	Retry               []string      `json:"retry,omitempty" maxItems:"100" doc:"Delays between attempts, such as 1m, 5m, 30m. The last delay repeats. Defaults to the setting"`
	Quota               *Quota        `json:"quota,omitempty" doc:"The account's quotas. Each quota defaults to the setting in quotas.*"`
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
	TrackOpens          **bool         `json:"trackOpens,omitempty" nullable:"true" doc:"null restores the setting"`
	TrackClicks         **bool         `json:"trackClicks,omitempty" nullable:"true" doc:"null restores the setting"`
	IdempotencyRequired *bool          `json:"idempotencyRequired,omitempty"`
	Retry               *[]string      `json:"retry,omitempty" maxItems:"100"`
	Quota               **Quota        `json:"quota,omitempty" doc:"Replaces all quotas. null restores the settings"`
}

// AccountInfo is an account with its state, as in responses.
type AccountInfo struct {
	Account
	State       string     `json:"state" enum:"unset,connected,error,held" doc:"Result of the last attempt through this account. With held, messages wait until the account works again"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`

	Type       string          `json:"type" enum:"sending" doc:"Always sending. For EmailEngine's clients"`
	SendOnly   bool            `json:"sendOnly" doc:"Always true. For EmailEngine's clients"`
	SMTPStatus *SMTPStatus     `json:"smtpStatus" doc:"Last conclusive attempt through a relay of this account, accurate to the minute. null if there was none since the account changed"`
	Counters   AccountCounters `json:"counters"`
}

// SMTPStatus is the result of an account's last attempt to send.
type SMTPStatus struct {
	Created      time.Time `json:"created"`
	Status       string    `json:"status" enum:"ok,error" doc:"ok if the relay was reached and accepted the login"`
	Description  string    `json:"description,omitempty" doc:"The error"`
	ResponseCode int       `json:"responseCode,omitempty" doc:"SMTP code of the relay's reply. Absent if the relay didn't reply"`
	Code         string    `json:"code,omitempty" doc:"Error code, such as EAUTH, ESOCKET or ETLS"`
	Command      string    `json:"command,omitempty" doc:"SMTP command that failed"`
}

// AccountCounters count what happened to the mail of an account.
type AccountCounters struct {
	Events map[string]int `json:"events,omitempty" doc:"Number of events by type since the account was created, without messageQueued. Absent after 13 months without events"`
}

// Warmup raises the daily limit of a new gateway day by day. limits.perDay is its final daily limit.
type Warmup struct {
	PerDay  float64    `json:"perDay" minimum:"1" maximum:"1000000000" doc:"Maximum recipients on the first day"`
	Growth  float64    `json:"growth,omitempty" minimum:"1" maximum:"10" doc:"Factor by which the limit grows each day. Defaults to 1.5"`
	Started *time.Time `json:"started,omitempty" doc:"Start of the first day. Defaults to the time of this request"`
}

// Gateway is a relay that accounts share. The field names are EmailEngine's.
type Gateway struct {
	Gateway      string         `json:"gateway" minLength:"1" maxLength:"256" pattern:"^[A-Za-z0-9][A-Za-z0-9._@+-]*$" doc:"ID that you choose"`
	Name         string         `json:"name" maxLength:"256"`
	Type         GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"How to send: smtp (the default), mx for direct delivery, a provider's API, or http for your own endpoint. You can't change it later"`
	MX           *GatewayDirect `json:"mx,omitempty" doc:"Options for direct delivery. Only for type mx"`
	API          *GatewayAPI    `json:"api,omitempty" doc:"Options for a provider's API. Required for every type except smtp and mx. Only type smtp allows the fields of SMTP: preset, host, port, secure, user, pass, tls, oauth2, localAddress and smtpEhloName"`
	Preset       string         `json:"preset,omitempty" enum:"gmail,office365,ses,sendgrid,mailgun,postmark,icloud,generic" doc:"Provider whose settings and limits apply to fields that you leave out"`
	Host         string         `json:"host,omitempty" minLength:"1" maxLength:"256" doc:"Host name. Required unless a preset has one"`
	Port         int            `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Port. Required without a preset"`
	Secure       bool           `json:"secure" required:"false" doc:"Whether to use TLS from the first byte, usually on port 465"`
	User         string         `json:"user,omitempty" maxLength:"256"`
	Pass         string         `json:"pass,omitempty" maxLength:"4096" doc:"Password. Responses mask it"`
	TLS          *SMTPTLS       `json:"tls,omitempty"`
	OAuth2       *OAuth2        `json:"oauth2,omitempty" doc:"OAuth 2.0 credentials, used instead of user and pass"`
	Limits       *Limits        `json:"limits,omitempty"`
	Warmup       *Warmup        `json:"warmup,omitempty" doc:"Daily limit that grows every day up to limits.perDay"`
	Proxy        string         `json:"proxy,omitempty" maxLength:"2048" doc:"URL of an HTTP, HTTPS or SOCKS5 proxy to connect through"`
	LocalAddress string         `json:"localAddress,omitempty" maxLength:"64" doc:"Local IP address to connect from"`
	SMTPEhloName string         `json:"smtpEhloName,omitempty" maxLength:"256" doc:"Host name to send with EHLO. Defaults to the machine's name"`

	LimitsPerDomain map[string]DomainLimits `json:"limitsPerDomain,omitempty" maxProperties:"100" doc:"Limits by recipient domain, such as gmail.com. The entry * applies to each domain without an entry"`
}

// GatewayPatch changes a gateway. Absent fields stay as they are. A masked secret ("******") keeps the stored
// one. Each field points to its new value. Api, tls, oauth2, limits, limitsPerDomain and warmup are replaced
// as a whole. A pointer to nil (null in JSON) removes them.
type GatewayPatch struct {
	Name         *string         `json:"name,omitempty" maxLength:"256"`
	Type         *GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"The gateway's type. You can't change it"`
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

	LimitsPerDomain *map[string]DomainLimits `json:"limitsPerDomain,omitempty" maxProperties:"100" doc:"Replaces all limits. {} removes them"`
}

// GatewayError is the last failure of a gateway.
type GatewayError struct {
	Response           string    `json:"response"`
	ServerResponseCode string    `json:"serverResponseCode" doc:"Error code, such as EAUTH, ESOCKET or ETLS"`
	Time               time.Time `json:"time"`
}

// GatewayInfo is a gateway with its state, as in responses.
type GatewayInfo struct {
	Gateway
	State      string        `json:"state" enum:"unset,connected,error,open" doc:"Result of the last use. With open, Postroom has paused the gateway after repeated failures"`
	Deliveries int64         `json:"deliveries" doc:"Number of messages that the gateway accepted"`
	LastUse    *time.Time    `json:"lastUse"`
	LastError  *GatewayError `json:"lastError"`
	Created    time.Time     `json:"created"`
	Updated    time.Time     `json:"updated"`

	Webhook *GatewayWebhook `json:"webhook,omitempty" doc:"The webhook of a provider's API, as of the last check"`
}

// GatewayCreated is the response to a new gateway.
type GatewayCreated struct {
	Gateway string `json:"gateway"`
	State   string `json:"state" enum:"new,existing"`
	Secret  string `json:"secret,omitempty" doc:"Secret that signs requests to a gateway of type http, if Postroom generated it. Shown only in this response"`

	WebhookSecret string `json:"webhookSecret,omitempty" doc:"The generated api.webhookSecret. Shown only in this response"`
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
	Account string `json:"account,omitempty" maxLength:"256" doc:"Account whose messages this key signs. Defaults to every account that may send as the domain"`
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
	Cancelled int    `json:"cancelled" doc:"Number of queued messages that were cancelled"`
}

// AccountPage is a page of accounts.
type AccountPage struct {
	PageNumbers
	Accounts []AccountInfo `json:"accounts"`
}

func (p AccountPage) rows() ([]AccountInfo, string, int) { return p.Accounts, "", p.Pages }

// VerifyRequest asks whether a relay accepts these settings.
type VerifyRequest struct {
	Account      string         `json:"account,omitempty" maxLength:"256" doc:"ID of a stored account to test instead of the settings below"`
	Gateway      string         `json:"gateway,omitempty" maxLength:"256" doc:"ID of a stored gateway to test instead of the settings below"`
	Type         GatewayType    `json:"type,omitempty" enum:"smtp,http,ses,sendgrid,mailgun,postmark,mailjet,sparkpost,brevo,resend,mandrill,mx" doc:"How to send. Defaults to smtp"`
	MX           *GatewayDirect `json:"mx,omitempty" doc:"Options for direct delivery. Only for type mx"`
	API          *GatewayAPI    `json:"api,omitempty" doc:"Options for a provider's API. Required for every type except smtp and mx, which excludes the fields of SMTP"`
	SMTP         *SMTPServer    `json:"smtp,omitempty"`
	OAuth2       *OAuth2        `json:"oauth2,omitempty"`
	Proxy        string         `json:"proxy,omitempty" maxLength:"2048"`
	LocalAddress string         `json:"localAddress,omitempty" maxLength:"64"`
	SMTPEhloName string         `json:"smtpEhloName,omitempty" maxLength:"256"`
}

// VerifyAnswer is the response to a VerifyRequest.
type VerifyAnswer struct {
	SMTP     VerifyResult          `json:"smtp" doc:"Result for the relay in the request, or for the account's first relay"`
	Gateways []GatewayVerifyResult `json:"gateways,omitempty" doc:"Result for each of the account's gateways"`
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
