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
	To             []string `sep:"none" placeholder:"ADDRESS" help:"Recipients: ada@example.com or 'Ada <ada@example.com>'. Separate several with commas, or repeat the flag."`
	CC             []string `name:"cc" sep:"none" placeholder:"ADDRESS" help:"More recipients, visible to all."`
	BCC            []string `name:"bcc" sep:"none" placeholder:"ADDRESS" help:"More recipients, hidden from all."`
	From           string   `placeholder:"ADDRESS" help:"Sender. Defaults to the account's sender."`
	ReplyTo        []string `sep:"none" placeholder:"ADDRESS" help:"Reply-To address."`
	Subject        string   `short:"s" help:"Subject."`
	Text           string   `help:"Text. @FILE reads a file, and - reads standard input, which is the default outside a terminal."`
	HTML           string   `name:"html" help:"HTML, with @FILE and - as for --text. Without --text, Postroom derives the text from it."`
	Attach         []string `short:"a" sep:"none" type:"existingfile" placeholder:"FILE" help:"File to attach. Repeat the flag for several."`
	Raw            string   `placeholder:"FILE" help:"Complete message (RFC 5322) instead, or - for standard input."`
	Template       string   `placeholder:"ID" help:"Stored template. See postroom template."`
	Params         string   `placeholder:"JSON" help:"Data for the template, for example @params.json, or - for standard input."`
	Locale         string   `placeholder:"LOCALE" help:"Language of the template variant, numbers and dates."`
	Account        string   `placeholder:"ID" help:"Account that sends. Defaults to the account named default."`
	Gateway        string   `placeholder:"ID" help:"Only gateway to send through. Defaults to the account's gateways."`
	RequireTLS     bool     `name:"require-tls" help:"Require verified TLS on every hop (REQUIRETLS). Fails if the relay doesn't support it."`
	IdempotencyKey string   `placeholder:"KEY" help:"Idempotency key. Repeating it sends no second message."`
	SendAt         string   `placeholder:"WHEN" help:"Send time: in 10m, or 2030-12-24T08:00:00Z. Defaults to now."`
	Priority       string   `enum:",high,normal,low" default:"" placeholder:"PRIORITY" help:"Order among waiting messages of its account and stream: high, normal (the default) or low."`
	Lane           string   `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"Stream: transactional (the default) or bulk, which never delays transactional email."`
	Tag            []string `placeholder:"TAG" help:"Tag. Repeat the flag for several."`
	Attempts       int      `placeholder:"N" help:"Maximum attempts. Defaults to the setting delivery.attempts."`
	DryRun         bool     `help:"Print the message. Don't send it."`
	Wait           bool     `short:"w" help:"Wait until the message is sent (exit code 0), or fails or is cancelled (1)."`
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
		skip := fmt.Errorf("%s is suppressed (%s): see postroom suppressions check",
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
