package gateways

import (
	"time"

	"github.com/postroom/postroom/api"
)

// preset has a provider's values for absent fields of a relay's settings. Zero means that the provider
// publishes none, so the general default holds.
type preset struct {
	Host string // the provider's one host; empty if it must be given
	Port int    // STARTTLS is required on it
	// port with TLS from the first byte, taken if secure is set; 0 if the provider has none
	Implicit    int
	Conns       int           // connections at once, of all processes together
	PerConn     int           // messages on one connection
	PerTrans    int           // recipients in one transaction
	Minute      float64       // recipients a minute
	Day         float64       // recipients a day
	Idle        time.Duration // how long a connection may wait for its next message
	MaxLifetime time.Duration // how long a connection may be used
}

// Careful times for any relay: two connections do most of the work, and none lives long enough to be closed
// by the relay. Postfix closes a connection after 300 s of silence, under stress after 10 s.
const (
	carefulIdle     = 10 * time.Second
	carefulLifetime = 5 * time.Minute
)

// presets is the table of providers. An explicit field always wins; to lift a limit, set a higher one.
//
// Where the numbers are from:
//   - gmail: Google's help names 100 recipients in one message over SMTP and 2,000 messages a day for
//     Workspace (500 for a private account: set limits.perDay). It publishes no number of connections; five
//     stay below what makes it answer 454 to many logins.
//   - office365: Microsoft's documentation of client submission: 3 connections, 30 messages a minute, 10,000
//     recipients a day. Beyond the first it answers 432 4.3.2. There is no port with TLS from the first byte.
//   - ses: AWS documents 50 recipients in one message. The rate is each customer's own: set limits.perSecond
//     to it. Sessions were ended after 350 messages (421 Maximum message count per session), and silent ones
//     with 451 Timeout; hence 100 and a short wait.
//   - sendgrid: Twilio documents 5,000 messages on a connection and 10,000 connections; 100 and 10 are enough
//     and spread better over its hosts. The rate is the plan's.
//   - mailgun: 1,000 recipients in one message; smtp.mailgun.org serves its domains in the USA. Those in the
//     EU need the host smtp.eu.mailgun.org.
//   - postmark: 50 recipients in one message; ports 25, 2525 and 587 with STARTTLS only. The host is for
//     transactional streams; broadcasts have smtp-broadcasts.postmarkapp.com.
//   - icloud: Apple's support names 1,000 messages and 1,000 recipients a day and 500 recipients in one
//     message (article 102198); more than one connection draws refusals. It wants a password made for the
//     app, on port 587.
//   - generic: an unknown relay: two connections.
var presets = map[string]preset{
	"gmail": {Host: "smtp.gmail.com", Port: 587, Implicit: 465, Conns: 5, PerConn: 100, PerTrans: 100,
		Day: 2000, Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"office365": {Host: "smtp.office365.com", Port: 587, Conns: 3, PerConn: 100, PerTrans: 100, Minute: 30,
		Day: 10_000, Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"ses": {Port: 587, Implicit: 465, Conns: 10, PerConn: 100, PerTrans: 50, Idle: 5 * time.Second,
		MaxLifetime: carefulLifetime},
	"sendgrid": {Host: "smtp.sendgrid.net", Port: 587, Implicit: 465, Conns: 10, PerConn: 100, PerTrans: 100,
		Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"mailgun": {Host: "smtp.mailgun.org", Port: 587, Implicit: 465, Conns: 10, PerConn: 100, PerTrans: 100,
		Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"postmark": {Host: "smtp.postmarkapp.com", Port: 587, Conns: 10, PerConn: 100, PerTrans: 50,
		Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"icloud": {Host: "smtp.mail.me.com", Port: 587, Conns: 1, PerConn: 100, PerTrans: 100, Day: 1000,
		Idle: carefulIdle, MaxLifetime: carefulLifetime},
	"generic": {Port: 587, Implicit: 465, Conns: 2, PerConn: 100, PerTrans: 100, Idle: carefulIdle,
		MaxLifetime: carefulLifetime},
}

// limits lays explicit limits over a preset's.
func (p preset) limits(explicit *api.Limits) api.Limits {
	l := api.Limits{PerMinute: p.Minute, PerDay: p.Day, Connections: p.Conns, PerConnection: p.PerConn}
	if explicit == nil {
		return l
	}
	lay(&l.PerSecond, explicit.PerSecond)
	lay(&l.PerMinute, explicit.PerMinute)
	lay(&l.PerDay, explicit.PerDay)
	lay(&l.Burst, explicit.Burst)
	lay(&l.Connections, explicit.Connections)
	lay(&l.PerConnection, explicit.PerConnection)
	return l
}

// lay sets a field to a value, unless that is zero.
func lay[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
