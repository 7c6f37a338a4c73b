package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// patience is how long a step waits for an expected event.
const patience = time.Minute

// tour drives messages through every state.
type tour struct {
	client  *api.Client
	url     string
	token   string
	relay   *catcher
	hooks   *receiver
	news    <-chan happening
	tell    teller
	pace    time.Duration         // pause after each step
	link    string                // logs in once
	browse  func(url string) bool // nil means no browser is opened
	opened  bool                  // a browser opened the link
	program string                // the command that calls Postroom

	began time.Time // when the step began
	step  int
}

// run runs the tour.
func (t *tour) run(ctx context.Context) error {
	if err := t.welcome(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{t.sent, t.repeated, t.delayed, t.failed, t.scheduled,
		t.cancelled} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return errEnded
			}
			return fmt.Errorf("step %d of the tour: %w", t.step, err)
		}
		if t.listen(ctx, time.After(t.pace)) != nil {
			return errEnded
		}
	}
	return t.farewell(ctx)
}

// welcome prints the addresses, and creates the endpoint for the receiver's webhooks.
func (t *tour) welcome(ctx context.Context) error {
	t.tell.line("\n   %s runs, with a mail catcher for a relay and a receiver for its webhooks.",
		bold.Render("Postroom"))
	t.tell.line("   To type along in another terminal, begin with:\n")
	t.tell.command(fmt.Sprintf("export URL=%s TOKEN=%s", t.url, t.token))
	if t.opened = t.browse != nil && t.browse(t.link); t.opened {
		t.tell.line("   The pages are open in your browser, logged in; they show the mail as it arrived: %s/inbox", t.url)
	} else {
		t.tell.line("   To see the pages and the mail as it arrived, open this link, which logs in once:\n   %s", t.link)
	}
	_, err := api.CreateEndpoint.Do(ctx, t.client, api.EndpointRequest{URL: t.hooks.url(),
		Secret: t.hooks.secret, Description: "the demo's receiver"})
	return err
}

func (t *tour) open(title, about string) {
	t.step++
	t.began = time.Now()
	t.tell.step(t.step, title, about)
}

// welcomeMail is sent in the first step and repeated in the second.
func welcomeMail() api.SubmitRequest {
	return api.SubmitRequest{To: to("Ada", "ada@example.net"), Subject: "Welcome", Text: "Hello, Ada.",
		IdempotencyKey: "welcome-ada"}
}

func (t *tour) sent(ctx context.Context) error {
	t.open("Sent", "A message is accepted once it is stored; then it goes to the relay, and a signed webhook says so.")
	answer, err := t.submit(ctx, welcomeMail())
	if err != nil {
		return err
	}
	return t.until(ctx, event.MessageSent, answer.QueueID)
}

func (t *tour) repeated(ctx context.Context) error {
	t.open("Sent once", "The same request again, as after a lost answer: the idempotency key makes it the same message.")
	answer, err := t.submit(ctx, welcomeMail())
	if err != nil {
		return err
	}
	if answer.Idempotency == nil || answer.Idempotency.Status != "HIT" {
		return errors.New("the key was not recognised")
	}
	if mails := t.relay.inbox("ada@example.net"); len(mails) != 1 {
		return fmt.Errorf("ada@example.net got %d emails instead of one", len(mails))
	}
	t.tell.answer("idempotency status %s, the same queue id; Ada still has one mail", good.Render("HIT"))
	return nil
}

func (t *tour) delayed(ctx context.Context) error {
	t.open("Delayed", "The relay is busy and answers 451: the message waits, each time longer, and is tried again.")
	answer, err := t.submit(ctx, api.SubmitRequest{To: to("", "busy@example.net"), Subject: "Your invoice",
		HTML: "<p>Please find it <b>here</b>.</p>"})
	if err != nil {
		return err
	}
	if err := t.until(ctx, event.MessageDeliveryError, answer.QueueID); err != nil {
		return err
	}
	return t.until(ctx, event.MessageSent, answer.QueueID)
}

func (t *tour) failed(ctx context.Context) error {
	t.open("Failed", "The relay doesn't know the address and replies 550. A retry would be pointless, so Postroom reports the failure immediately.")
	answer, err := t.submit(ctx, api.SubmitRequest{To: to("", "nobody@example.net"), Subject: "Hello?",
		Text: "Is anybody there?"})
	if err != nil {
		return err
	}
	return t.until(ctx, event.MessageFailed, answer.QueueID)
}

func (t *tour) scheduled(ctx context.Context) error {
	t.open("Scheduled", "sendAt holds a message until its time, here for three seconds.")
	at := time.Now().Add(3 * time.Second).UTC().Truncate(time.Millisecond)
	answer, err := t.submit(ctx, api.SubmitRequest{To: to("Grace", "grace@example.net"),
		Subject: "Your reminder", Text: "It is time.", SendAt: &at})
	if err != nil {
		return err
	}
	return t.until(ctx, event.MessageSent, answer.QueueID)
}

func (t *tour) cancelled(ctx context.Context) error {
	t.open("Cancelled", "You can cancel a message that wasn't sent yet.")
	answer, err := t.submit(ctx, inAnHour("You should not get this"))
	if err != nil {
		return err
	}
	if err := t.until(ctx, event.MessageQueued, answer.QueueID); err != nil {
		return err
	}
	t.tell.line("")
	t.tell.command(curl("DELETE", "/v1/outbox/"+answer.QueueID, nil))
	taken, err := api.CancelMessage.Do(ctx, t.client, answer.QueueID)
	if err != nil {
		return err
	}
	if !taken.Deleted {
		return errors.New("the message couldn't be cancelled")
	}
	t.tell.answer("deleted: %v", taken.Deleted)
	return t.until(ctx, event.MessageCancelled, answer.QueueID)
}

// farewell leaves a message in the outbox to look at, and prints where it is.
func (t *tour) farewell(ctx context.Context) error {
	t.began = time.Now()
	t.tell.line("")
	left, err := api.Submit.Do(ctx, t.client, inAnHour("Left in the outbox for you"))
	if err != nil {
		return err
	}
	if err := t.until(ctx, event.MessageQueued, left.QueueID); err != nil {
		return err
	}
	t.tell.line("\n   %s", bold.Render("Now look around"))
	pages := t.url + "/"
	if !t.opened {
		pages = t.link + "  (signs you in, once)"
	}
	t.tell.line("   Pages   %s", pages)
	t.tell.line("   Inbox   %s/inbox", t.url)
	t.tell.line("   API     %s/docs", t.url)
	t.tell.line("   Outbox  POSTROOM_URL=$URL POSTROOM_TOKEN=$TOKEN %s outbox", t.program)
	t.tell.line("   Mail for busy@ is delayed once, mail for nobody@ fails, and all other mail is caught. It shows here.")
	return nil
}

// goOn prints what happens until ctx ends, which is the intended end of the demo.
func (t *tour) goOn(ctx context.Context) error {
	t.tell.line("   Ctrl-C ends the demo; nothing stays behind.\n")
	t.began = time.Now()
	_ = t.listen(ctx, nil)
	return nil
}

// listen prints what happens until ctx ends or end fires.
func (t *tour) listen(ctx context.Context, end <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case h := <-t.news:
			t.tell.happened(h, time.Since(t.began))
		}
	}
}

// submit prints a request and makes it.
func (t *tour) submit(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	t.tell.command(curl("POST", "/v1/submit", req))
	answer, err := api.Submit.Do(ctx, t.client, req)
	if err == nil {
		t.tell.answer("%s: %s", answer.Response, answer.QueueID)
	}
	return answer, err
}

// until prints what happens until a message has an event.
func (t *tour) until(ctx context.Context, want event.Type, id string) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("no webhook %s for message %s within %s", want, id, patience)
		case h := <-t.news:
			t.tell.happened(h, time.Since(t.began))
			if h.hook != nil && h.hook.Event == want && h.hook.Data.QueueID == id {
				return nil
			}
		}
	}
}

// inAnHour returns a message that is due in an hour, long enough to be looked at.
func inAnHour(subject string) api.SubmitRequest {
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	return api.SubmitRequest{To: to("", "ada@example.net"), Subject: subject, Text: "Later.", SendAt: &at}
}

func to(name, address string) api.Addresses { return api.Addresses{{Name: name, Address: address}} }
