// Command digest collects notifications as an application would: it says when a reader wants mail, hands over
// what happened, shows what the mail would say, and has it sent now, in place of waiting for its time. It may
// be run again at any time, after a crash too: no reader gets a notification twice.
//
//	POSTROOM_URL=http://127.0.0.1:3000 POSTROOM_TOKEN=… go run ./examples/digest -ann ann@example.com
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/postroom/postroom/api"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := parse(os.Args[1:], os.Stdout).run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// readers are two users of the application, by the ids it gives them.
const (
	ann = "example-ann"
	ben = "example-ben"
)

// example is two readers and what happened to their posts.
type example struct {
	client *api.Client
	out    io.Writer
	email  map[string]string // by reader
}

// parse reads the flags. It ends the program if they are wrong.
func parse(args []string, out io.Writer) example {
	flags := flag.NewFlagSet("digest", flag.ExitOnError)
	local := cmp.Or(os.Getenv("POSTROOM_URL"), "http://127.0.0.1:3000")
	url := flags.String("url", local, "`address` of Postroom")
	token := flags.String("token", "", "access `token`, for digests (default $POSTROOM_TOKEN)")
	toAnn := flags.String("ann", "ann@example.net", "`address` of the first reader")
	toBen := flags.String("ben", "ben@example.net", "`address` of the second reader")
	_ = flags.Parse(args) // ends the program at an error
	return example{client: api.NewClient(*url, cmp.Or(*token, os.Getenv("POSTROOM_TOKEN")), nil), out: out,
		email: map[string]string{ann: *toAnn, ben: *toBen}}
}

// run takes each step after the one before it has succeeded.
func (e example) run(ctx context.Context) error {
	if err := e.prefer(ctx); err != nil {
		return err
	}
	if err := e.tell(ctx); err != nil {
		return err
	}
	for _, reader := range []string{ann, ben} {
		if err := e.preview(ctx, reader); err != nil {
			return err
		}
		if err := e.send(ctx, reader); err != nil {
			return err
		}
	}
	return nil
}

// prefer stores when Ann wants her mail: on weekdays at eight in the morning by her clock, and of likes once
// a week. Ben has said nothing, so he gets what the settings say.
func (e example) prefer(ctx context.Context) error {
	address, name, tz, eight := e.email[ann], "Ann", "Europe/Zurich", 8
	stored, err := api.PutDigestRecipient.Do(ctx, e.client, api.DigestRecipientRequest{Email: &address,
		Name: &name, TZ: &tz, Preferences: map[string]*api.DigestPreference{
			"*":    {Mode: "weekly", Weekdays: []string{"mon", "tue", "wed", "thu", "fri"}, Hour: &eight},
			"like": {Mode: "weekly", Weekdays: []string{"fri"}, Hour: &eight},
		}}, ann)
	if err != nil {
		return err
	}
	for _, next := range stored.Next[:min(1, len(stored.Next))] {
		fmt.Fprintf(e.out, "%s is mailed %s\n", ann, next.Words)
	}
	return nil
}

// events are what happened. The key of each names the cause: under it no event is added twice. An event may
// have the address of its reader: it is used if Postroom knows none.
func (e example) events() []api.DigestEvent {
	bo, cleo := &api.DigestActor{ID: "bo", Name: "Bo"}, &api.DigestActor{ID: "cleo", Name: "Cleo"}
	event := func(reader, category, post, title, key string, by *api.DigestActor) api.DigestEvent {
		return api.DigestEvent{Recipient: reader, Email: e.email[reader], Category: category, EntityType: "post",
			EntityID: post, Title: title, URL: "https://www.example.com/posts/" + post, Actor: by, IdempotencyKey: key}
	}
	return []api.DigestEvent{
		event(ann, "comment", "5", "Spring in Bern", "comment-91", bo),
		event(ann, "comment", "5", "Spring in Bern", "comment-92", cleo),
		event(ann, "like", "5", "Spring in Bern", "like-5-bo", bo),
		event(ben, "comment", "7", "A walk by the Aare", "comment-93", cleo),
	}
}

// tell hands the events over. Each has an answer of its own.
func (e example) tell(ctx context.Context) error {
	events := e.events()
	answer, err := api.TakeDigestEvents.Do(ctx, e.client, api.DigestEventsRequest{Events: events})
	if err != nil {
		return err // to repeat it is safe, since the events have keys
	}
	for i, one := range answer.Events {
		if !one.Success {
			return fmt.Errorf("the event %s was refused: %s", events[i].IdempotencyKey, one.Error)
		}
		fmt.Fprintf(e.out, "%s for %s: %s\n", events[i].IdempotencyKey, events[i].Recipient, one.State)
	}
	return nil
}

// preview prints the subject of what would be mailed.
func (e example) preview(ctx context.Context, reader string) error {
	mail, err := api.PreviewDigest.Do(ctx, e.client, api.DigestAccount{}, reader)
	if err == nil && mail.Subject != "" {
		fmt.Fprintf(e.out, "%s would get: %s\n", reader, mail.Subject)
	}
	return err
}

// send mails what waits for a reader, and waits for the end of it. Ctrl-C ends the waiting, not the mail.
func (e example) send(ctx context.Context, reader string) error {
	begun, err := api.SendDigest.Do(ctx, e.client, api.DigestAccount{}, reader)
	if err != nil {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		run, err := api.GetDigestRun.Do(ctx, e.client, begun.Run)
		switch {
		case err != nil:
			return fmt.Errorf("run %s continues, but its state is unknown: %w", begun.Run, err)
		case run.State == api.DigestSkipped:
			fmt.Fprintf(e.out, "%s gets no mail: %s\n", reader, run.Reason)
			return nil
		case run.State == api.DigestSent:
			fmt.Fprintf(e.out, "%s got %d events in %d lines\n", reader, run.Events, len(run.Groups))
			return nil
		case run.State == api.DigestFailed:
			return fmt.Errorf("run %s failed: %s", run.Run, run.Reason)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
