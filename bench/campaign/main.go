// Campaign measures a campaign to many people.
//
// It sends to everybody while single messages are submitted beside it: the rate, the processor time and the
// Redis commands for each mail, the memory of both processes, and what the messages beside it notice. A relay
// keeps the ledger: everybody got the mail once. What breaks campaigns is in bench/chaos.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

type plan struct {
	people         int
	profile, fsync string
}

func main() {
	var p plan
	flag.IntVar(&p.people, "people", 1_000_000, "subscribers")
	flag.StringVar(&p.profile, "profile", "",
		"file for the profile of the campaign; Postroom and the relay are one process then")
	flag.StringVar(&p.fsync, "fsync", "always",
		"appendfsync of Redis: always forgets nothing it acknowledged, and waits for the disk for each mail")
	rig.Main("campaign", func(ctx context.Context) error { return run(ctx, p) })
}

// house is a Postroom on a Redis, and a relay with a ledger.
type house struct {
	plan
	rig.Rig
	ledger   *ledger
	relay    *testsmtp.Server
	postroom *rig.Process
	client   *api.Client
	bad      int // promises that did not hold
}

func run(ctx context.Context, p plan) error {
	h := &house{plan: p, ledger: newLedger(p.people)}
	defer h.Close()
	var err error
	if h.relay, err = testsmtp.New(testsmtp.Options{Discard: true, Respond: h.ledger.respond}); err != nil {
		return err
	}
	h.OnClose(h.relay.Close)
	fmt.Printf("machine: %d processors, %s; %d people\n", runtime.NumCPU(), runtime.Version(), p.people)
	if err := h.StartRedis(ctx, "", "campaign-", "--appendfsync", p.fsync); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{h.open, h.enlist, h.draft, h.measure} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if h.bad > 0 {
		return fmt.Errorf("%d promises did not hold", h.bad)
	}
	return nil
}

// open starts Postroom.
func (h *house) open(context.Context) error {
	more := map[string]string{"serviceUrl": "https://news.example.com"}
	if h.profile != "" {
		return h.within(more)
	}
	p, url, err := h.StartPostroom("all", h.relay.URL(), more)
	if err != nil {
		return err
	}
	h.postroom, h.client = p, rig.Client(url, 40, time.Minute)
	return nil
}

// within runs Postroom in this process.
func (h *house) within(more map[string]string) error {
	maps.Copy(more, map[string]string{"redis.url": "unix://" + h.Socket, "token": rig.Token,
		"secret": rig.Secret,
		"smtp":   h.relay.URL(), "from": "Example Shop <shop@example.com>", "data": filepath.Join(h.Dir, "all"),
		"http.listen": "127.0.0.1:0", "log.level": "warn"})
	a, stop, err := rig.Within(context.Background(), more)
	if err != nil {
		return err
	}
	h.OnClose(func() { _ = stop() })
	h.postroom, h.client = rig.Self(), rig.Client(a.URL(), 40, time.Minute)
	return nil
}

// file is a CSV file of the people, which is made while it is read.
type file struct {
	n, of int
	rest  []byte
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if f.n == 0 && f.rest == nil {
		f.rest = []byte("email,name,attributes.city,attributes.plan\n")
	}
	for len(f.rest) < len(p) && f.n < f.of {
		f.rest = fmt.Appendf(f.rest, "%s,Ann Smith,Vienna,pro\n", address(f.n))
		f.n++
	}
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// enlist brings the people.
func (h *house) enlist(ctx context.Context) error {
	_, err := api.CreateList.Do(ctx, h.client, api.List{ListID: "weekly", Name: "Weekly", OptIn: "single"})
	if err != nil {
		return err
	}
	done, err := api.ImportSubscribers.Do(ctx, h.client, &file{of: h.people}, api.SubscriberImportOptions{
		ListID: []string{"weekly"}, State: "subscribed", Consent: "I want news"})
	if err != nil || done.Added != h.people {
		return fmt.Errorf("import: %+v, %w", done, err)
	}
	return nil
}

// draft makes a campaign to everybody.
func (h *house) draft(ctx context.Context) error {
	id := "calm"
	words := strings.Repeat("<p>Some words of a newsletter that is read in a minute, with what is new this week.</p>\n", 20)
	_, err := api.CreateCampaign.Do(ctx, h.client, api.Campaign{Campaign: id, Name: id,
		Lists: []string{"weekly"},
		CampaignContent: api.CampaignContent{Subject: "News " + id + " for {{subscriber.name}}",
			HTML: "<h1>Hello {{subscriber.name}} in {{subscriber.attributes.city}}</h1>" +
				words + `<p><a href="https://shop.test/sale">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">Leave</a></p>`}})
	return err
}

// check prints a figure that has a bound.
func (h *house) check(what, got, want string, ok bool) {
	rig.Row(what, got, want, ok)
	if !ok {
		h.bad++
	}
}

// stats returns the numbers of a campaign.
func (h *house) stats(ctx context.Context, id string) (api.CampaignStats, error) {
	return api.GetCampaignStats.Do(ctx, h.client, api.CampaignStatsQuery{}, id)
}

// finished waits until a campaign is sent, and prints its progress.
func (h *house) finished(ctx context.Context, id string) (api.CampaignStats, error) {
	var st api.CampaignStats
	told := time.Now()
	err := rig.Until(ctx, time.Hour, 200*time.Millisecond, func() (bool, error) {
		now, err := h.stats(ctx, id)
		if err != nil {
			return false, err
		}
		st = now
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Printf("  %s: %d of %d sent\n", id, st.States.Sent, st.Audience)
		}
		return st.State == api.CampaignSent, nil
	})
	return st, err
}
