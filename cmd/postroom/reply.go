package main

import (
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/replies"
)

const explainHelp = `Example:
  postroom explain "550 5.7.26 This mail has been blocked because the sender is unauthenticated"`

// explainCmd says what a reply means. It asks no server.
type explainCmd struct {
	Reply []string `arg:"" help:"The reply, such as '550 5.1.1 User unknown'; 'HTTP 404' for the answer of a webhook endpoint."`
	JSON  bool     `name:"json" help:"Print it as JSON, for programs."`
}

func (c *explainCmd) Run(con *console) error {
	e := replies.Explain(strings.Join(c.Reply, " "))
	if c.JSON {
		return con.printJSON(e)
	}
	con.line("Reason", e.Reason)
	con.explained(&e)
	con.line("Source", e.Source)
	return nil
}

// explained prints what a refusal means and what to do, if that is known.
func (c *console) explained(e *api.Explanation) {
	if e != nil {
		c.line("Means", e.Title+". "+e.Cause)
		c.line("To do", e.Remedy)
	}
}
