// Command newsletter mails a newsletter as an application would: it fills a list, stores a campaign, checks,
// previews and tests it, sends it, and watches its numbers until it ends. It may be run again at any time,
// after a crash too: nobody gets the newsletter twice.
//
//	POSTROOM_URL=http://127.0.0.1:3000 POSTROOM_TOKEN=… go run ./examples/newsletter -test ann@example.com
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/mail"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// people are example data. Their domain takes no mail.
//
//go:embed subscribers.csv
var people string

// subject and html are templates. Who has no name or no town gets a fallback: default's, or the campaign's.
const (
	subject = `Spring has come to {{subscriber.attributes.town}}`
	html    = `<p>Hello {{default subscriber.name "reader"}},</p>
<p>our <a href="https://www.example.com/spring">spring sale</a> begins on Monday.</p>
<p><a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>`
	fallbacks = `{"town": "your town"}`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := parse(os.Args[1:], os.Stdout).run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newsletter is one campaign to one list.
type newsletter struct {
	client   *api.Client
	out      io.Writer
	list     string
	campaign string
	from     *api.Address // nil: the account's own
	test     string       // empty: no test
}

// parse reads the flags. It ends the program if they are wrong.
func parse(args []string, out io.Writer) newsletter {
	n := newsletter{out: out}
	flags := flag.NewFlagSet("newsletter", flag.ExitOnError)
	local := cmp.Or(os.Getenv("POSTROOM_URL"), "http://127.0.0.1:3000")
	url := flags.String("url", local, "`address` of Postroom")
	token := flags.String("token", "", "access `token`, for lists and campaigns (default $POSTROOM_TOKEN)")
	flags.StringVar(&n.list, "list", "example-news", "`id` of the list; everybody on it gets the newsletter")
	flags.StringVar(&n.test, "test", "", "`address` that gets a test first")
	flags.Func("from", "`sender`, such as 'Shop <shop@example.com>' (default the account's own)",
		func(text string) error {
			a, err := mail.ParseAddress(text)
			if err == nil {
				n.from = &api.Address{Name: a.Name, Address: a.Address}
			}
			return err
		})
	_ = flags.Parse(args) // ends the program at an error
	n.client = api.NewClient(*url, cmp.Or(*token, os.Getenv("POSTROOM_TOKEN")), nil)
	n.campaign = "spring-" + n.list
	return n
}

// run takes each step after the one before it has succeeded.
func (n newsletter) run(ctx context.Context) error {
	steps := []func(context.Context) error{n.subscribe, n.store, n.check, n.preview, n.send, n.watch}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// subscribe makes the list and imports the people. Who has left the list since an earlier import stays away.
func (n newsletter) subscribe(ctx context.Context) error {
	_, err := api.CreateList.Do(ctx, n.client, api.List{ListID: n.list, Name: "Example news"})
	if err != nil && !refused(err, "ListExists") {
		return err
	}
	done, err := api.ImportSubscribers.Do(ctx, n.client, strings.NewReader(people), api.SubscriberImportOptions{
		ListID: []string{n.list}, State: "subscribed", Consent: "Send me the example news"})
	if err != nil {
		return err
	}
	for _, bad := range done.Errors {
		fmt.Fprintf(n.out, "line %d of the file: %s\n", bad.Line, bad.Reason)
	}
	fmt.Fprintf(n.out, "list %s: %d added, %d known, %d bad\n",
		n.list, done.Added, done.Known+done.Changed, done.Bad)
	return nil
}

// store stores the draft, or changes that of an earlier run. A campaign that was begun stays as it is.
func (n newsletter) store(ctx context.Context) error {
	c := api.Campaign{Campaign: n.campaign, Name: "Spring news", Lists: []string{n.list},
		CampaignContent: api.CampaignContent{From: n.from, Subject: subject, HTML: html,
			Fallbacks: json.RawMessage(fallbacks)}}
	_, err := api.CreateCampaign.Do(ctx, n.client, c)
	if !refused(err, "CampaignExists") {
		return err
	}
	_, err = api.UpdateCampaign.Do(ctx, n.client, api.CampaignPatch{From: cmp.Or(n.from, &api.Address{}),
		Subject: &c.Subject, HTML: &c.HTML, Fallbacks: c.Fallbacks}, n.campaign)
	if refused(err, "CampaignState") {
		return nil
	}
	return err
}

// check prints what is wrong with the campaign. With a fault it can't be sent.
func (n newsletter) check(ctx context.Context) error {
	check, err := api.CheckCampaign.Do(ctx, n.client, n.campaign)
	if err != nil {
		return err
	}
	for _, fault := range check.Faults {
		fmt.Fprintf(n.out, "fault %s: %s\n", fault.Code, fault.Message)
	}
	for _, warning := range check.Warnings {
		fmt.Fprintf(n.out, "warning %s: %s\n", warning.Code, warning.Message)
	}
	if !check.OK {
		return fmt.Errorf("campaign %s can't be sent: it has %d errors", n.campaign, len(check.Faults))
	}
	fmt.Fprintf(n.out, "up to %d people get it\n", check.Audience)
	return nil
}

// preview prints the subject as one of the people gets it, and mails the test.
func (n newsletter) preview(ctx context.Context) error {
	preview, err := api.PreviewCampaign.Do(ctx, n.client, api.CampaignSample{}, n.campaign)
	if err != nil {
		return err
	}
	fmt.Fprintf(n.out, "subject: %s\n", preview.Subject)
	if n.test == "" {
		return nil
	}
	tested, err := api.TestCampaign.Do(ctx, n.client, api.CampaignTest{To: []string{n.test}}, n.campaign)
	for _, one := range tested.Sent {
		fmt.Fprintf(n.out, "test to %s: %s\n", one.To, cmp.Or(one.QueueID, "the address is suppressed"))
	}
	return err
}

// send begins the campaign. Of one that was begun it changes nothing, so it may be repeated.
func (n newsletter) send(ctx context.Context) error {
	run, err := api.SendCampaign.Do(ctx, n.client, api.CampaignStart{}, n.campaign)
	if err == nil {
		fmt.Fprintf(n.out, "campaign %s: %s\n", run.Campaign, run.State)
	}
	return err
}

// watch shows the progress until the campaign ends, or is held, which needs somebody to look at it. Ctrl-C
// ends the watching, not the campaign.
func (n newsletter) watch(ctx context.Context) error {
	defer fmt.Fprintln(n.out)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		now, err := api.GetCampaignStats.Do(ctx, n.client, api.CampaignStatsQuery{}, n.campaign)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the campaign continues, but its numbers are unknown: %w", err)
		}
		s := now.States
		line := fmt.Sprintf("%d of %d sent, %d open, %d bounced, %d failed, %d in doubt: %s",
			s.Sent, s.Total(), s.Open(), s.Bounced, s.Failed, s.InDoubt, now.State)
		fmt.Fprintf(n.out, "\r%-76s", line)
		switch {
		case now.State == api.CampaignSent:
			return nil
		case !api.CampaignUnderWay(now.State) || now.State == api.CampaignHeld:
			return fmt.Errorf("campaign %s is %s; its page says why", n.campaign, now.State)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// refused reports whether an error is Postroom's refusal with a code.
func refused(err error, code string) bool {
	f, ok := errors.AsType[*api.Failure](err)
	return ok && f.Problem.Code == code
}
