package config

import "time"

// Feedback is what becomes known about mail after a relay took it.
type Feedback struct {
	Window    time.Duration `key:"window" default:"720h" min:"0" max:"8760h" doc:"How long after a message was accepted a provider's report can find it by the provider's own id, or by a Message-ID that Postroom did not generate. About 150 bytes of Redis a message. 0: not at all."`
	KeepRaw   bool          `key:"keepRaw" default:"true" doc:"Whether events keep what a provider wrote in its webhook (details.raw): in Redis, as long as the message is in the email log, and in webhooks. Of more than 8 KB, the texts are cut. IP addresses are kept as tracking.storeAddress says."`
	Providers Providers     `key:"providers"`
	Reconcile Reconcile     `key:"reconcile"`
}

// Providers are the secrets by which webhooks of mail providers are recognised. Several are divided by
// commas, so that one can be changed.
type Providers struct {
	SES       Secret `key:"ses" empty:"not taken" secret:"value" doc:"ARNs of the SNS topics that report on mail sent through Amazon SES. See What providers tell."`
	SendGrid  Secret `key:"sendgrid" empty:"not taken" secret:"value" doc:"Verification key of SendGrid's signed event webhook."`
	Mailgun   Secret `key:"mailgun" empty:"not taken" secret:"value" doc:"HTTP webhook signing key of Mailgun."`
	Postmark  Secret `key:"postmark" empty:"not taken" secret:"value" doc:"Shared secret, 16 characters or more, that Postmark's webhooks carry, as password or header."`
	Mailjet   Secret `key:"mailjet" empty:"not taken" secret:"value" doc:"Shared secret that Mailjet's webhooks carry."`
	SparkPost Secret `key:"sparkpost" empty:"not taken" secret:"value" doc:"Shared secret that SparkPost's webhooks carry."`
	Brevo     Secret `key:"brevo" empty:"not taken" secret:"value" doc:"Shared secret that Brevo's webhooks carry."`
	Resend    Secret `key:"resend" empty:"not taken" secret:"value" doc:"Signing secret of Resend's webhook, whsec_ and more."`
	Postal    Secret `key:"postal" empty:"not taken" secret:"value" doc:"Public key of the Postal installation: its DKIM record, or the base64 after p=."`
	Mandrill  Secret `key:"mandrill" empty:"not taken" secret:"value" doc:"Key of the webhook at Mandrill (Mailchimp Transactional)."`
	Generic   Secret `key:"generic" empty:"not taken" secret:"value" doc:"Secret of any other provider's webhooks: whsec_… or whpk_… of Standard Webhooks, or a shared secret."`
}

// Reconcile asks providers for what their webhooks missed.
type Reconcile struct {
	Mailgun ReconcileMailgun `key:"mailgun"`
}

// ReconcileMailgun is the events API of Mailgun.
type ReconcileMailgun struct {
	APIKey  Secret        `key:"apiKey" empty:"off" secret:"value" doc:"API key of Mailgun. With it and the domain, Mailgun's events API is polled for events that webhooks missed."`
	Domain  string        `key:"domain" empty:"off" doc:"Sending domain at Mailgun, such as mg.example.com."`
	BaseURL string        `key:"baseUrl" default:"https://api.mailgun.net" check:"web address" doc:"Address of Mailgun's API; https://api.eu.mailgun.net for domains in the EU."`
	Every   time.Duration `key:"every" default:"1h" min:"1m" max:"24h" doc:"Interval between two polls."`
}
