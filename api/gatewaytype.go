package api

// GatewayType is how a gateway is spoken to.
type GatewayType string

// The types of gateways.
const (
	GatewaySMTP      GatewayType = "smtp"
	GatewayHTTP      GatewayType = "http" // an endpoint of the user's own
	GatewaySES       GatewayType = "ses"
	GatewaySendGrid  GatewayType = "sendgrid"
	GatewayMailgun   GatewayType = "mailgun"
	GatewayPostmark  GatewayType = "postmark"
	GatewayMailjet   GatewayType = "mailjet"
	GatewaySparkPost GatewayType = "sparkpost"
	GatewayBrevo     GatewayType = "brevo"
	GatewayResend    GatewayType = "resend"
	GatewayMandrill  GatewayType = "mandrill"
	GatewayMX        GatewayType = "mx" // straight to the recipients' mail servers
)

// GatewayDirect is how mail goes straight to the mail servers of its recipients.
type GatewayDirect struct {
	Addresses []GatewaySource `json:"addresses,omitempty" maxItems:"64" doc:"IP addresses to send from; the system's choice when absent"`
	TLS       string          `json:"tls,omitempty" enum:"opportunistic,required" doc:"required: a server without STARTTLS gets nothing; opportunistic when absent. DANE and MTA-STS apply anyway"`
}

// DomainLimits bound the mail of a gateway to a group of recipients' domains. Zero: not bounded.
type DomainLimits struct {
	PerSecond   float64 `json:"perSecond,omitempty" minimum:"0" maximum:"100000" doc:"Recipients a second"`
	PerMinute   float64 `json:"perMinute,omitempty" minimum:"0" maximum:"6000000" doc:"Recipients a minute"`
	Connections int     `json:"connections,omitempty" minimum:"0" maximum:"1000" doc:"Messages under way at the same time, of all processes together"`
}

// AllDomains is the key of the limits for each group of domains that has none of its own.
const AllDomains = "*"

// GatewaySource is an IP address to send from.
type GatewaySource struct {
	Address string `json:"address" maxLength:"64"`
	Name    string `json:"name" maxLength:"253" doc:"Greets the servers. The PTR record of the address must have it, and its A or AAAA record the address"`
	Weight  int    `json:"weight,omitempty" minimum:"1" maximum:"1000" doc:"Share of the recipients' domains; 1 when absent"`
}

// GatewayAPI is the access to the API of a provider, or to an endpoint of your own. Which fields a type has,
// and which of them it needs, is in docs/gateways.md.
type GatewayAPI struct {
	Key        string `json:"key,omitempty" maxLength:"512" doc:"Key or token; with ses the id of the access key, absent for the credentials of the machine; masked in answers"`
	Secret     string `json:"secret,omitempty" maxLength:"512" doc:"Secret key of ses and mailjet; with postmark an account token, needed only to list domains; with http the whsec_ secret that signs requests, made when absent; masked in answers"`
	Region     string `json:"region,omitempty" maxLength:"32" doc:"With ses a region such as eu-west-1, required; with mailgun, sendgrid and sparkpost us (the default) or eu"`
	URL        string `json:"url,omitempty" maxLength:"2048" doc:"Base URL; required with http, otherwise the provider's own; https unless the host is this machine"`
	Domain     string `json:"domain,omitempty" maxLength:"253" doc:"Sending domain; required with mailgun"`
	Stream     string `json:"stream,omitempty" maxLength:"64" doc:"Message stream of postmark; outbound when absent"`
	Pool       string `json:"pool,omitempty" maxLength:"256" doc:"IP pool of sendgrid, sparkpost and mandrill, configuration set of ses"`
	Subaccount string `json:"subaccount,omitempty" maxLength:"256" doc:"Of sparkpost and mandrill"`
	Sandbox    bool   `json:"sandbox,omitempty" doc:"The provider checks each message and delivers nothing; not with every type"`
	Batch      int    `json:"batch,omitempty" minimum:"1" maximum:"500" doc:"Messages in one request, where the API takes several; the provider's most when absent"`

	WebhookSecret string `json:"webhookSecret,omitempty" maxLength:"512" doc:"Proves that webhooks are this gateway's. With mailgun the webhook signing key, with ses the ARN of the SNS topic. With http (whsec_), postmark, mailjet, sparkpost and brevo a secret that is made when absent. With resend, mandrill and sendgrid the provider makes it. Masked in answers"`
}
