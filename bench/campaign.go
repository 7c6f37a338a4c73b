package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// The two mails that are measured: 4 KiB of text, and 2.2 KB of HTML with two values and a link.
var mails = map[string]api.CampaignContent{
	"text": {Subject: "News for {{subscriber.name}}", Text: "Hello {{subscriber.name}},\n\n" +
		strings.Repeat("some words of a newsletter that is read in a minute, with what is new\n", 56) +
		"\n{{rcpt.unsubscribeUrl}}\n"},
	"html": {Subject: "News for {{subscriber.name}}", HTML: "<h1>Hello {{subscriber.name}} in " +
		"{{subscriber.attributes.city}}</h1>\n" + strings.Repeat(
		"<p>Some words of a newsletter that is read in a minute, with what is new this week.</p>\n", 22) +
		`<p><a href="https://shop.example/sale">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">Leave</a></p>`},
}

// connections is how many connections the account has to the relay.
const connections = 50

// campaign is a campaign to many people through a Postroom of its own.
type campaign struct {
	rig.Rig
	people   int
	profile  string // file for a profile; then Postroom runs in this process
	relay    *testsmtp.Server
	postroom *rig.Process
	client   *api.Client
	got      atomic.Int64 // mails that the relay has
	first    atomic.Int64 // when it got the first, in Unix nanoseconds
}

// measureCampaign sends the mail of a name to people, and prints what each mail costs.
func measureCampaign(ctx context.Context, name string, people int, profile string) error {
	c := &campaign{people: people, profile: profile}
	defer c.Close()
	var err error
	if c.relay, err = testsmtp.New(testsmtp.Options{Discard: true, Respond: c.receive}); err != nil {
		return err
	}
	c.OnClose(c.relay.Close)
	if err := c.StartRedis(ctx, "", "bench-campaign-", "--appendfsync", "everysec"); err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	if err := c.enlist(ctx); err != nil {
		return err
	}
	_, err = api.CreateCampaign.Do(ctx, c.client, api.Campaign{Campaign: name, Name: name,
		Account: "news", Lists: []string{"weekly"}, CampaignContent: mails[name]})
	if err != nil {
		return err
	}
	return c.send(ctx, name)
}

// receive counts the mail that the relay gets.
func (c *campaign) receive(cmd testsmtp.Command) testsmtp.Action {
	if cmd.Verb == "DOT" && c.got.Add(1) == 1 {
		c.first.Store(time.Now().UnixNano())
	}
	return testsmtp.Action{}
}

// open starts Postroom.
func (c *campaign) open(ctx context.Context) error {
	set := map[string]string{"redis.url": "unix://" + c.Socket, "token": rig.Token, "secret": rig.Secret,
		"smtp": c.relay.URL(), "from": "Example Shop <shop@example.com>", "data": filepath.Join(c.Dir, "data"),
		"http.listen": "127.0.0.1:0", "log.level": "warn", "serviceUrl": "https://news.example.com"}
	url := ""
	if c.profile != "" {
		a, stop, err := rig.Within(ctx, set)
		if err != nil {
			return err
		}
		c.OnClose(func() { _ = stop() })
		c.postroom, url = rig.Self(), a.URL()
	} else {
		p, out, err := rig.Start(rig.Command(set), filepath.Join(c.Dir, "postroom.log"))
		if err != nil {
			return err
		}
		c.OnClose(p.Stop)
		c.postroom = p
		if url, err = rig.Address(out); err != nil {
			return err
		}
	}
	c.client = rig.ClientWith(url, rig.Token, 10, time.Minute)
	return nil
}

// enlist brings the people.
func (c *campaign) enlist(ctx context.Context) error {
	_, err := api.CreateAccount.Do(ctx, c.client, api.Account{Account: "news", Email: "shop@example.com",
		SMTP:   &api.SMTPServer{Host: c.relay.Host(), Port: c.relay.Port()},
		Limits: &api.Limits{Connections: connections}})
	if err != nil {
		return err
	}
	_, err = api.CreateList.Do(ctx, c.client, api.List{ListID: "weekly", Name: "Weekly", OptIn: "single",
		Account: "news"})
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() {
		text := "email,name,attributes.city\n"
		for n := range c.people {
			if text += fmt.Sprintf("ann.%d@mail%d.example,Ann Smith,Vienna\n", n, n%300); n%1000 == 999 {
				_, _ = io.WriteString(out, text)
				text = ""
			}
		}
		_, _ = io.WriteString(out, text)
		_ = out.Close()
	}()
	done, err := api.ImportSubscribers.Do(ctx, c.client, in, api.SubscriberImportOptions{
		Account: "news", ListID: []string{"weekly"}, State: "subscribed", Consent: "I want news"})
	if err != nil || done.Added != c.people {
		return fmt.Errorf("import: %+v, %w", done, err)
	}
	return nil
}

// send sends the campaign.
func (c *campaign) send(ctx context.Context, name string) error {
	if c.profile != "" {
		out, err := os.Create(c.profile)
		if err == nil {
			err = pprof.StartCPUProfile(out)
		}
		if err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	commands, err := c.stat(ctx, "total_commands_processed")
	if err != nil {
		return err
	}
	mine, redis, began := c.postroom.CPU(), c.Redis.CPU(), time.Now()
	if _, err := api.SendCampaign.Do(ctx, c.client, api.CampaignStart{}, name); err != nil {
		return err
	}
	answered, last := time.Now(), began
	err = rig.Until(ctx, time.Hour, 10*time.Millisecond, func() (bool, error) {
		last = time.Now()
		return c.got.Load() >= int64(c.people), nil
	})
	if err != nil {
		return err
	}
	each := func(d time.Duration) string {
		return fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(c.people))
	}
	mine, redis = c.postroom.CPU()-mine, c.Redis.CPU()-redis
	after, err := c.stat(ctx, "total_commands_processed")
	if err != nil {
		return err
	}
	rig.Title("A campaign of " + name + " to " + strconv.Itoa(c.people) + " people")
	rig.Tell("mails a second", fmt.Sprintf("%.0f", float64(c.people)/last.Sub(began).Seconds()))
	rig.Tell("processor time of a mail, Postroom + Redis", each(mine)+" + "+each(redis)+" µs")
	rig.Tell("Redis commands of a mail", fmt.Sprintf("%.1f", float64(after-commands)/float64(c.people)))
	rig.Tell("first mail after the answer", rig.Round(time.Unix(0, c.first.Load()).Sub(answered)).String())
	return c.check(ctx, name)
}

// check waits until the campaign has ended, and compares its numbers with the relay's.
func (c *campaign) check(ctx context.Context, name string) error {
	return rig.Until(ctx, time.Minute, 200*time.Millisecond, func() (bool, error) {
		st, err := api.GetCampaignStats.Do(ctx, c.client, api.CampaignStatsQuery{}, name)
		if err != nil || st.State != api.CampaignSent {
			return false, err
		}
		if n := c.got.Load(); st.States.Sent != c.people || n != int64(c.people) {
			return false, fmt.Errorf("the numbers differ from the relay's %d: %+v", n, st.States)
		}
		return true, nil
	})
}

// stat reads a number of Redis' statistics.
func (c *campaign) stat(ctx context.Context, field string) (int, error) {
	stats, err := c.DB.InfoMap(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(stats["Stats"][field])
}
