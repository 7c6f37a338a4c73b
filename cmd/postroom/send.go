package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

const sendHelp = `Examples:
  postroom send --to ada@example.com --subject Hello --text 'Hello, Ada' --wait
  postroom send --to ada@example.com --subject Report --text @report.txt --attach report.pdf
  fortune | postroom send --to ada@example.com --subject 'For you' --idempotency-key fortune-2030-12-24
  postroom send --to ada@example.com --template order --params @order.json
  postroom send --raw message.eml`

// sendCmd submits one message.
type sendCmd struct {
	To             []string `sep:"none" placeholder:"ADDRESS" help:"Recipients: ada@example.com or 'Ada <ada@example.com>'; several by commas, or the flag again."`
	CC             []string `name:"cc" sep:"none" placeholder:"ADDRESS" help:"Further recipients, seen by all."`
	BCC            []string `name:"bcc" sep:"none" placeholder:"ADDRESS" help:"Further recipients, hidden from all."`
	From           string   `placeholder:"ADDRESS" help:"Sender. Default: the account's."`
	ReplyTo        []string `sep:"none" placeholder:"ADDRESS" help:"Where answers go."`
	Subject        string   `short:"s" help:"Subject."`
	Text           string   `help:"Text. @FILE reads it from a file, - from standard input, which is the default when that is not a terminal."`
	HTML           string   `name:"html" help:"HTML; @FILE and - as with --text. Without --text a text is made from it."`
	Attach         []string `short:"a" sep:"none" type:"existingfile" placeholder:"FILE" help:"A file to attach; may be repeated."`
	Raw            string   `placeholder:"FILE" help:"A whole message (RFC 5322) instead; - is standard input."`
	Template       string   `placeholder:"ID" help:"A stored template that says what the mail says; see postroom template."`
	Params         string   `placeholder:"JSON" help:"The data that fills the template, such as @params.json; - is standard input."`
	Locale         string   `placeholder:"LOCALE" help:"Chooses the variant of the template, and how numbers and dates are written."`
	Account        string   `placeholder:"ID" help:"Account that sends. Default: the account named default."`
	Gateway        string   `placeholder:"ID" help:"Gateway to send through, and no other. Default: as the account lists them."`
	RequireTLS     bool     `name:"require-tls" help:"Every server on the way must use verified TLS (REQUIRETLS); fails when the relay does not offer that."`
	IdempotencyKey string   `placeholder:"KEY" help:"The same key again sends nothing more, and answers the same."`
	SendAt         string   `placeholder:"WHEN" help:"When to send: in 10m, or 2030-12-24T08:00:00Z. Default: now."`
	Priority       string   `enum:",high,normal,low" default:"" placeholder:"PRIORITY" help:"high goes before, low after the messages of its account and lane that wait: high, normal (as without) or low."`
	Lane           string   `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"transactional (as without) or bulk, which never delays the former."`
	Tag            []string `placeholder:"TAG" help:"Tag to find it by later; may be repeated."`
	Attempts       int      `placeholder:"N" help:"Attempts in all. Default: the setting delivery.attempts."`
	DryRun         bool     `help:"Build the message and print it, send nothing."`
	Wait           bool     `short:"w" help:"Follow the message until it was sent (exit code 0), failed or was cancelled (1)."`
}

// sendAnswer is the result as JSON.
type sendAnswer struct {
	api.SubmitAnswer
	Result string `json:"result,omitempty"` // sent, failed or cancelled; with --wait
	Reply  string `json:"reply,omitempty"`  // the relay's last reply; with --wait
}

// Run submits the message and, with --wait, follows it.
func (c *sendCmd) Run(s *session) error {
	req, err := c.request(s.console)
	if err != nil {
		return err
	}
	answer, err := api.Submit.Do(s, s.client, req)
	if err != nil {
		return err
	}
	if c.DryRun && !s.json {
		_, err := s.out.Write(answer.Preview)
		return err
	}
	out := sendAnswer{SubmitAnswer: answer}
	if skipped := answer.Skipped; skipped != nil {
		skip := fmt.Errorf("%s must not be mailed (%s): see postroom suppressions check",
			clean(someOf(skipped.Recipients)), skipped.Reason)
		if answer.NoneQueued() {
			return cmp.Or(s.answer(out, nil, func() {}), fmt.Errorf("nothing was queued: %w", skip))
		}
		s.note("%v", skip)
	}
	if !s.json {
		s.say("%s", describeAnswer(answer))
	}
	var notSent error
	if c.Wait && !c.DryRun {
		e, err := s.follow(answer.QueueID)
		if e.State == "" {
			return err
		}
		out.Result, out.Reply, notSent = e.State, e.Response, err
	}
	return cmp.Or(s.answer(out, nil, func() {}), notSent)
}

func describeAnswer(a api.SubmitAnswer) string {
	switch {
	case a.Idempotency != nil && a.Idempotency.Status == "HIT":
		return "this key has queued a message before: " + a.QueueID
	case a.SendAt != nil && time.Until(*a.SendAt) > time.Second:
		return "queued as " + a.QueueID + ", to be sent " + moment(*a.SendAt, time.Now())
	}
	return "queued as " + a.QueueID
}
