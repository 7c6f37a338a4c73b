package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// Exit codes for mail servers (sysexits.h): a Postfix pipe transport returns the mail after the first, and
// keeps it after the second.
const (
	exitDataErr  = 65
	exitTempFail = 75
)

const bounceHelp = `Exit codes: 0 if Postroom read the message, whatever the result; 65 if it refused the message; 75 to try again later, for example
while Postroom or its Redis is unavailable.

Examples:
  postroom bounce < mail.eml
  postroom bounce --to 'bounces+caazg...@bounce.example.com' mail.eml

As a transport of Postfix, in master.cf:
  postroom-bounce unix - n n - 10 pipe
    flags=Rq user=postroom argv=/usr/bin/postroom bounce --quiet --to ${original_recipient}`

// bounceCmd submits a returned mail. It makes its client by itself: a missing token, too, must give the exit
// code that keeps the mail.
type bounceCmd struct {
	reachFlags
	File    string        `arg:"" optional:"" placeholder:"FILE" help:"The message. Defaults to standard input."`
	To      string        `placeholder:"ADDRESS" help:"Address that received it: $${original_recipient} in a Postfix pipe transport. Defaults to the header."`
	Quiet   bool          `short:"q" help:"Print only errors, for mail servers."`
	Timeout time.Duration `default:"30s" help:"Timeout."`
}

// mailerError is an error with its exit code for mail servers.
type mailerError struct {
	error
	code int
}

func (e *mailerError) Unwrap() error { return e.error }

func (b *bounceCmd) Run(ctx context.Context, con *console) error {
	answer, err := b.submit(ctx, con)
	if err != nil {
		return &mailerError{err, mailerCode(err)}
	}
	switch {
	case b.JSON:
		return con.printJSON(answer)
	case !b.Quiet:
		con.say("%s", describeReturned(answer))
	}
	return nil
}

func (b *bounceCmd) submit(ctx context.Context, con *console) (api.ReturnedMail, error) {
	mail, err := con.readMail(b.File)
	if err != nil {
		return api.ReturnedMail{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	client, err := b.client()
	if err != nil {
		return api.ReturnedMail{}, err
	}
	return api.ReturnMail.Do(ctx, client, bytes.NewReader(mail), api.ReturnOptions{EnvelopeTo: b.To})
}

// maxMail is the submitted part of a mail: one octet more than Postroom reads, so that it notices a longer
// one.
const maxMail = 1<<20 + 1

// readMail reads the beginning of a mail. It discards the rest, so that the writer of a pipe does not fail.
func (c *console) readMail(file string) ([]byte, error) {
	in, _, err := c.open(cmp.Or(file, "-"))
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // only read from
	mail, err := io.ReadAll(io.LimitReader(in, maxMail))
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, in)
	return mail, err
}

// mailerCode returns the exit code of an error: a refused mail is given up, any other is tried again. A
// refused token may be corrected by then.
func mailerCode(err error) int {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		switch f.Problem.StatusCode {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			return exitDataErr
		}
	}
	return exitTempFail
}

// describeReturned describes a returned mail and what was done with it.
func describeReturned(m api.ReturnedMail) string {
	what := m.Kind
	if m.FeedbackType != "" {
		what += " (" + m.FeedbackType + ")"
	}
	if m.Kind == "none" {
		what = "not a bounce, as far as Postroom can see"
	}
	for _, r := range m.Recipients {
		what += "\n  " + strings.TrimSpace(clean(r.Address)+" "+r.Status+" "+clip(clean(r.Diagnostic), 100))
	}
	switch m.Result {
	case "taken":
		return what + "\nabout message " + m.QueueID + ", proven by its " + strings.ReplaceAll(m.Proof,
			"message_id", "Message-ID") + "; taken"
	case "unproven":
		return what + "\nnothing proves that it is about mail of ours; nothing was done"
	case "forgotten":
		return what + "\nabout message " + m.QueueID + ", which the log has forgotten; nothing was done"
	}
	return what + "\nnothing to learn from it"
}
