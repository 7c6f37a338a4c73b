package main

import (
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// relayFlag is a relay given on the command line, or by standard input, which leaves no trace in the shell's history.
type relayFlag struct {
	SMTP string `name:"smtp" required:"" placeholder:"URL" help:"Relay, such as smtp://user:password@smtp.example.com:587, or smtps://. - reads it from standard input."`
}

func (r relayFlag) server(con *console) (*api.SMTPServer, error) {
	text, err := con.read(r.SMTP, r.SMTP == "-")
	if err != nil {
		return nil, err
	}
	relay, err := config.ParseRelay(string(text))
	if err != nil {
		return nil, usage("--smtp %v", err)
	}
	return app.SMTPServer(relay), nil
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
