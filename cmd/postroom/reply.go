package main

import (
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/replies"
)

const explainHelp = `Examples:
  postroom explain "550 5.7.26 This mail has been blocked because the sender is unauthenticated"
  postroom explain --list`

// explainCmd says what a reply means. It asks no server.
type explainCmd struct {
	Reply []string `arg:"" optional:"" help:"The reply, such as '550 5.1.1 User unknown'; 'HTTP 404' for the response of a webhook endpoint."`
	List  bool     `help:"List everything that replies can mean."`
	JSON  bool     `name:"json" help:"Print it as JSON, for programs."`
}

func (c *explainCmd) Run(con *console) error {
	if c.List == (len(c.Reply) > 0) {
		return usage("give a reply, or --list")
	}
	if c.List {
		return c.list(con)
	}
	e := replies.Explain(strings.Join(c.Reply, " "))
	if c.JSON {
		return con.printJSON(e)
	}
	con.line("Reason", e.Reason)
	con.explained(&e)
	con.line("Source", e.Source)
	return nil
}

// list prints every explanation.
func (c *explainCmd) list(con *console) error {
	all := replies.All()
	if c.JSON {
		return con.printJSON(all)
	}
	g := newGrid("reason", "means", "to do")
	for _, e := range all {
		g.add(e.Reason, e.Title, e.Remedy)
	}
	con.show(g)
	return nil
}

// explained prints what a refusal means and what to do, if that is known.
func (c *console) explained(e *api.Explanation) {
	if e != nil {
		c.line("Means", e.Title+". "+e.Cause)
		c.line("To do", e.Remedy)
	}
}
