package gateways

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

func TestRouteOfAnAccount(t *testing.T) {
	no := false
	const idle, life = 10 * time.Second, 5 * time.Minute
	tests := []struct {
		name    string
		account api.Account
		want    Relay
	}{
		{"plain", api.Account{SMTP: &api.SMTPServer{Host: "h", Port: 25}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 25}}},
		{"TLS from the start", api.Account{SMTP: &api.SMTPServer{Host: "h", Port: 465, Secure: true}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 465, TLS: smtpsend.TLSImplicit}}},
		{"STARTTLS required", api.Account{
			SMTP: &api.SMTPServer{Host: "h", Port: 587, TLS: &api.SMTPTLS{StartTLS: "required",
				MinVersion: "TLSv1.3"}}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 587, TLS: smtpsend.TLSRequired,
				MinVersion: tls.VersionTLS13}}},
		{"STARTTLS if offered", api.Account{
			SMTP: &api.SMTPServer{Host: "h", Port: 25, TLS: &api.SMTPTLS{StartTLS: "opportunistic",
				RejectUnauthorized: &no}}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 25, TLS: smtpsend.TLSOpportunistic,
				InsecureSkipVerify: true}}},
		{"in clear", api.Account{SMTP: &api.SMTPServer{Host: "h", Port: 25, TLS: &api.SMTPTLS{StartTLS: "off"}}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 25, TLS: smtpsend.TLSNone}}},
		{"CA and pins", api.Account{
			SMTP: &api.SMTPServer{Host: "h", Port: 25, TLS: &api.SMTPTLS{CA: "ca", PinSHA256: " a  b "}}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 25, CA: "ca", Pin: "a b"}}},
		{"login", api.Account{SMTP: &api.SMTPServer{Host: "h", Port: 587, Auth: &api.SMTPAuth{User: "u", Pass: "p",
			AccessToken: "t"}}},
			Relay{SMTP: smtpsend.Relay{Host: "h", Port: 587, Username: "u", Password: "p", AccessToken: "t"}}},
		{"login on this machine", api.Account{SMTP: &api.SMTPServer{Host: "127.0.0.1", Port: 25,
			Auth: &api.SMTPAuth{User: "u", Pass: "p"}}},
			Relay{SMTP: smtpsend.Relay{Host: "127.0.0.1", Port: 25, TLS: smtpsend.TLSOpportunistic, Username: "u",
				Password: "p"}}},
		{"this machine of a proxy", api.Account{Proxy: "http://p", SMTP: &api.SMTPServer{Host: "localhost",
			Port: 25, Auth: &api.SMTPAuth{User: "u", Pass: "p"}}},
			Relay{SMTP: smtpsend.Relay{Host: "localhost", Port: 25, Proxy: "http://p", Username: "u",
				Password: "p"}}},
		{"pin on this machine", api.Account{SMTP: &api.SMTPServer{Host: "::1", Port: 25,
			TLS: &api.SMTPTLS{PinSHA256: "a"}}},
			Relay{SMTP: smtpsend.Relay{Host: "::1", Port: 25, Pin: "a"}}},
		{"what stands beside smtp", api.Account{
			SMTP: &api.SMTPServer{Host: "h", Port: 25}, Proxy: "http://p", LocalAddress: "192.0.2.1",
			SMTPEhloName: "me.example",
			Limits:       &api.Limits{PerSecond: 3, Connections: 4, PerConnection: 5},
		}, Relay{Connections: 4, SMTP: smtpsend.Relay{
			Host: "h", Port: 25, Proxy: "http://p", LocalAddress: "192.0.2.1", EHLOName: "me.example", Connections: 4,
			MessagesPerConnection: 5, Shared: "account:a",
		}}},
		{"OAuth", api.Account{
			SMTP: &api.SMTPServer{Host: "h", Port: 587},
			OAuth2: &api.OAuth2{TokenURL: "https://t", ClientID: "c", ClientSecret: "s", RefreshToken: "r", Scope: "x",
				User: "u"},
		}, Relay{
			SMTP: smtpsend.Relay{Host: "h", Port: 587, Username: "u"}, OAuthUser: "u",
			OAuth: &oauth.Client{TokenURL: "https://t", ClientID: "c", ClientSecret: "s", RefreshToken: "r",
				Scope: "x"},
		}},
		{"a preset with OAuth", api.Account{SMTP: &api.SMTPServer{Preset: "office365"}, OAuth2: &api.OAuth2{
			ClientID: "c", RefreshToken: "r", User: "u"}}, Relay{
			SMTP: smtpsend.Relay{
				Host: "smtp.office365.com", Port: 587, TLS: smtpsend.TLSRequired, Username: "u", Connections: 3,
				MessagesPerConnection:    100,
				RecipientsPerTransaction: 100, IdleTimeout: idle, Lifetime: life, Shared: "account:a",
			},
			OAuthUser: "u", OAuth: &oauth.Client{Provider: "office365", ClientID: "c", RefreshToken: "r"},
			Connections: 3,
		}},
		{"explicit fields win over the preset", api.Account{
			SMTP: &api.SMTPServer{Preset: "gmail", Host: "smtp-relay.gmail.com", Port: 2525, TLS: &api.SMTPTLS{
				StartTLS: "opportunistic"}},
			Limits: &api.Limits{Connections: 1, PerConnection: 2},
		}, Relay{Connections: 1, SMTP: smtpsend.Relay{
			Host: "smtp-relay.gmail.com", Port: 2525, TLS: smtpsend.TLSOpportunistic, Connections: 1,
			MessagesPerConnection: 2, RecipientsPerTransaction: 100,
			IdleTimeout: idle, Lifetime: life, Shared: "account:a",
		}}},
		{"a preset with TLS from the start", api.Account{SMTP: &api.SMTPServer{Preset: "sendgrid", Secure: true}},
			Relay{Connections: 10, SMTP: smtpsend.Relay{
				Host: "smtp.sendgrid.net", Port: 465, TLS: smtpsend.TLSImplicit, Connections: 10,
				MessagesPerConnection: 100, RecipientsPerTransaction: 100,
				IdleTimeout: idle, Lifetime: life, Shared: "account:a",
			}}},
		{"a preset with the port for that", api.Account{SMTP: &api.SMTPServer{Preset: "gmail", Port: 465}},
			Relay{Connections: 5, SMTP: smtpsend.Relay{
				Host: "smtp.gmail.com", Port: 465, Connections: 5, MessagesPerConnection: 100,
				RecipientsPerTransaction: 100, IdleTimeout: idle, Lifetime: life,
				Shared: "account:a",
			}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.SMTP.ID = "a"
			got := OfAccount(tt.account).Relay("account:a")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLimitsOfPresets(t *testing.T) {
	tests := []struct {
		name     string
		preset   string
		explicit *api.Limits
		want     limits.Rate
	}{
		{"none", "", nil, limits.Rate{}},
		{"none, explicit", "", &api.Limits{PerSecond: 1, PerMinute: 2, PerDay: 3, Burst: 4},
			limits.Rate{PerSecond: 1, PerMinute: 2, PerDay: 3, Burst: 4}},
		{"office365", "office365", nil, limits.Rate{PerMinute: 30, PerDay: 10_000}},
		{"office365, one of them explicit", "office365", &api.Limits{PerDay: 500, PerSecond: 1},
			limits.Rate{PerSecond: 1, PerMinute: 30, PerDay: 500}},
		{"gmail", "gmail", &api.Limits{}, limits.Rate{PerDay: 2000}},
		{"icloud", "icloud", nil, limits.Rate{PerDay: 1000}},
		{"ses", "ses", &api.Limits{PerSecond: 14}, limits.Rate{PerSecond: 14}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Rate(ofGateway(api.Gateway{Preset: tt.preset, Limits: tt.explicit}).Limits())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPathOfAMessage(t *testing.T) {
	unchecked := smtpsend.Relay{Host: "a", Proxy: "http://own", LocalAddress: "10.0.0.1", Username: "u",
		TLS: smtpsend.TLSNone, InsecureSkipVerify: true, AllowInsecureAuth: true}
	for name, c := range map[string]struct {
		path Path
		want func(*smtpsend.Relay)
	}{
		"none":       {Path{}, func(*smtpsend.Relay) {}},
		"an address": {Path{LocalAddress: "10.0.0.2"}, func(r *smtpsend.Relay) { r.LocalAddress = "10.0.0.2" }},
		// a proxy of whoever sends must not see the relay's password
		"a proxy": {Path{Proxy: "http://other"}, func(r *smtpsend.Relay) {
			r.Proxy, r.TLS = "http://other", smtpsend.TLSRequired
			r.InsecureSkipVerify, r.AllowInsecureAuth = false, false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := Relay{SMTP: unchecked}, unchecked
			c.path.Apply(&got)
			c.want(&want)
			if got.SMTP != want {
				t.Errorf("%#v", got.SMTP)
			}
		})
	}
}
