package main

import (
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
)

// relayOf puts a relay, as its URL says, into the words of the API.
func relayOf(r config.Relay) *api.SMTPServer {
	verify := !r.Insecure
	s := &api.SMTPServer{Host: r.Host, Port: r.Port, Secure: r.Implicit, TLS: &api.SMTPTLS{RejectUnauthorized: &verify, StartTLS: r.StartTLS}}
	if r.User != "" {
		s.Auth = &api.SMTPAuth{User: r.User, Pass: r.Pass.Reveal()}
	}
	return s
}

// relayURL is a relay in one line, without its password.
func relayURL(s *api.SMTPServer) string {
	if s == nil {
		return "-"
	}
	scheme, user := "smtp://", ""
	if s.Secure {
		scheme = "smtps://"
	}
	if s.Auth != nil && s.Auth.User != "" {
		user = s.Auth.User + "@"
	}
	return scheme + user + hostPort(s.Host, s.Port)
}
