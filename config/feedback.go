package config

import "time"

// Feedback configures reports about messages after a relay accepted them.
type Feedback struct {
	Window    time.Duration `key:"window" default:"720h" min:"0" max:"8760h" doc:"How long a report can find its message by the provider's ID, or by a Message-ID that Postroom didn't generate. It takes about 150 bytes of Redis per message. Set to 0 to turn it off."`
	KeepRaw   bool          `key:"keepRaw" default:"true" doc:"Whether events include the provider's original webhook (details.raw), with long texts cut beyond 8 KB."`
	Providers Providers     `key:"providers"`
	Reconcile Reconcile     `key:"reconcile"`
}

// Providers has the secrets that authenticate providers' webhooks. Commas separate several secrets, so that
// you can replace one.
type Providers struct {
	SES       Secret `key:"ses" empty:"webhooks are refused" secret:"value" doc:"ARNs of the SNS topics that report on messages sent through Amazon SES."`
	SendGrid  Secret `key:"sendgrid" empty:"webhooks are refused" secret:"value" doc:"Verification key of SendGrid's signed event webhook."`
	Mailgun   Secret `key:"mailgun" empty:"webhooks are refused" secret:"value" doc:"Mailgun's HTTP webhook signing key."`
	Postmark  Secret `key:"postmark" empty:"webhooks are refused" secret:"value" doc:"Shared secret of at least 16 characters that Postmark's webhooks carry as a password or header."`
	Mailjet   Secret `key:"mailjet" empty:"webhooks are refused" secret:"value" doc:"Shared secret that Mailjet's webhooks carry."`
	SparkPost Secret `key:"sparkpost" empty:"webhooks are refused" secret:"value" doc:"Shared secret that SparkPost's webhooks carry."`
	Brevo     Secret `key:"brevo" empty:"webhooks are refused" secret:"value" doc:"Shared secret that Brevo's webhooks carry."`
	Resend    Secret `key:"resend" empty:"webhooks are refused" secret:"value" doc:"Signing secret of Resend's webhook, starting with whsec_."`
	Postal    Secret `key:"postal" empty:"webhooks are refused" secret:"value" doc:"Public key of your Postal: its DKIM record, or the base64 after p=."`
	Mandrill  Secret `key:"mandrill" empty:"webhooks are refused" secret:"value" doc:"Key of Mandrill's webhook (Mailchimp Transactional)."`
	Generic   Secret `key:"generic" empty:"webhooks are refused" secret:"value" doc:"Secret of another provider's webhooks: whsec_… or whpk_… (Standard Webhooks), or a shared secret."`
}

// Reconcile configures polling providers for events that their webhooks missed.
type Reconcile struct {
	Mailgun ReconcileMailgun `key:"mailgun"`
}

// ReconcileMailgun is the events API of Mailgun.
type ReconcileMailgun struct {
	APIKey  Secret        `key:"apiKey" empty:"off" secret:"value" doc:"Mailgun API key. With it and the domain, Postroom polls Mailgun's events API for events that webhooks missed."`
	Domain  string        `key:"domain" empty:"off" doc:"Sending domain at Mailgun, such as mg.example.com."`
	BaseURL string        `key:"baseUrl" default:"https://api.mailgun.net" check:"web address" doc:"URL of Mailgun's API. Use https://api.eu.mailgun.net for domains in the EU."`
	Every   time.Duration `key:"every" default:"1h" min:"1m" max:"24h" doc:"Interval between two polls."`
}
