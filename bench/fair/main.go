// Command fair shows that no account waits for another's relay. Twelve accounts send through a relay of their
// own: nine with a mail now and then, one whose relay takes three seconds for a mail, one with a large
// backlog, and one whose relay is silent, in each phase of SMTP in turn. It compares the time from submit to
// the relay of the nine with the time they have alone, and measures the shares of equal accounts at a common
// gateway.
//
//	go run ./bench/fair
//
// It starts its own redis-server, and Postroom as processes of their own.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// phases are those in which the silent relay does not answer.
var phases = []string{"CONNECT", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "DOT"}

// settings are the flags.
type settings struct {
	processes, backlog, rate int
	each                     time.Duration
	phases                   string
}

func main() {
	s := &settings{}
	flag.IntVar(&s.processes, "processes", 1, "Postrooms that share the Redis")
	flag.IntVar(&s.backlog, "backlog", 100_000, "messages of the account with a backlog")
	flag.IntVar(&s.rate, "rate", 5, "messages a second of each of the nine accounts")
	flag.DurationVar(&s.each, "each", 10*time.Second, "how long each state is measured")
	flag.StringVar(&s.phases, "phases", strings.Join(phases, ","), "phases in which the silent relay is silent")
	rig.Main("fair", func(ctx context.Context) error { return run(ctx, s) })
}

// house is everything that runs.
type house struct {
	rig.Rig
	*settings
	clients []*api.Client // of each process
	delays  delays
	silent  phase
}

// phase is the phase in which the silent relay is silent.
type phase struct {
	mu   sync.Mutex
	verb string
}

func (p *phase) set(verb string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verb = verb
}

func (p *phase) get() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verb
}

// delays are the times from submit to relay.
type delays struct {
	mu   sync.Mutex
	list []time.Duration
}

// note is called by a relay at the dot. The recipient says when it was submitted.
func (d *delays) note(to []string) {
	local, _, _ := strings.Cut(to[0], "@")
	began, err := strconv.ParseInt(local, 10, 64)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, time.Since(time.Unix(0, began)))
}

// take returns the delays since the last call.
func (d *delays) take() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}

const good = 9 // accounts with a mail now and then

func run(ctx context.Context, s *settings) (err error) {
	h := &house{settings: s}
	defer h.Close()
	if err := h.StartRedis(ctx, "", "fair-"); err != nil {
		return err
	}
	for i := range s.processes {
		dir := "postroom" + strconv.Itoa(i)
		_, url, err := h.StartPostroom("all", "smtp://127.0.0.1:9", map[string]string{
			"documents.store": "none", "data": dir, "log.level": "error", "delivery.timeout": "30s"})
		if err != nil {
			return err
		}
		h.clients = append(h.clients, rig.Client(url, 50, time.Minute))
	}
	if err := h.createAccounts(ctx); err != nil {
		return err
	}
	if err := h.measureDelays(ctx); err != nil {
		return err
	}
	return h.measureShares(ctx)
}

// createAccounts creates the twelve accounts and their relays.
func (h *house) createAccounts(ctx context.Context) error {
	for i := range good {
		if err := h.account(ctx, "good"+strconv.Itoa(i), func(c testsmtp.Command) testsmtp.Action {
			return h.answer(c, 5*time.Millisecond)
		}); err != nil {
			return err
		}
	}
	err := h.account(ctx, "slow", func(c testsmtp.Command) testsmtp.Action { return h.answer(c, 3*time.Second) })
	// Each process has connections of its own. The delay keeps the backlog at one rate, however many there are.
	took := time.Duration(h.processes) * 20 * time.Millisecond
	return errors.Join(err, h.account(ctx, "flood", func(c testsmtp.Command) testsmtp.Action {
		return h.answer(c, took)
	}), h.account(ctx, "silent", func(c testsmtp.Command) testsmtp.Action {
		return testsmtp.Action{Hang: c.Verb == h.silent.get()}
	}))
}

// answer takes the mail, after a delay at the dot.
func (h *house) answer(c testsmtp.Command, delay time.Duration) testsmtp.Action {
	if c.Verb != "DOT" {
		return testsmtp.Action{}
	}
	if strings.HasPrefix(c.From, "good") {
		h.delays.note(c.To)
	}
	return testsmtp.Action{Delay: delay}
}

// account creates an account with a relay of its own.
func (h *house) account(ctx context.Context, name string, does func(testsmtp.Command) testsmtp.Action) error {
	relay, err := h.relay(does)
	if err != nil {
		return err
	}
	_, err = api.CreateAccount.Do(ctx, h.clients[0], api.Account{Account: name, Name: name,
		Email: name + "@example.com", SMTP: relay})
	return err
}

func (h *house) relay(does func(testsmtp.Command) testsmtp.Action) (*api.SMTPServer, error) {
	server, err := testsmtp.New(testsmtp.Options{Discard: true, Username: "u", Password: "p", Respond: does})
	if err != nil {
		return nil, err
	}
	h.OnClose(server.Close)
	host, port, _ := net.SplitHostPort(server.Addr())
	n, _ := strconv.Atoi(port)
	return &api.SMTPServer{Host: host, Port: n, Auth: &api.SMTPAuth{User: "u", Pass: "p"},
		TLS: &api.SMTPTLS{StartTLS: "off"}}, nil
}

// submit submits a message of an account.
func (h *house) submit(ctx context.Context, account string, n int) error {
	_, err := api.Submit.Do(ctx, h.clients[n%len(h.clients)], api.SubmitRequest{
		Account: account, Subject: "fair",
		To: api.Addresses{{Address: fmt.Sprintf("%d@example.net", time.Now().UnixNano())}}, Text: "Hello."})
	return err
}

// backlogOf submits many messages of an account, by mail merge.
func (h *house) backlogOf(ctx context.Context, account string, n int) error {
	const most = 10_000
	for ; n > 0; n -= most {
		req := api.SubmitRequest{Account: account, Subject: "fair", Text: "Hello."}
		for i := range min(n, most) {
			req.MailMerge = append(req.MailMerge, api.MailMergeEntry{
				To: api.Address{Address: fmt.Sprintf("p%d@example.net", i)}})
		}
		if _, err := api.Submit.Do(ctx, h.clients[0], req); err != nil {
			return err
		}
	}
	return nil
}

// measureDelays measures the nine accounts alone, and beside the three others.
func (h *house) measureDelays(ctx context.Context) error {
	rig.Title(fmt.Sprintf("Nine accounts, %d messages a second each, %d processes: submit to relay, p50 / p95",
		h.rate, h.processes))
	if _, err := h.state(ctx, 2*time.Second); err != nil { // connections are opened
		return err
	}
	alone, err := h.state(ctx, h.each)
	if err != nil {
		return err
	}
	rig.Tell("alone", alone.String())
	if err := h.besideOthers(ctx, alone); err != nil {
		return err
	}
	if err := h.backlogOf(ctx, "flood", h.backlog); err != nil {
		return err
	}
	if err := h.many(ctx, "slow", 100); err != nil {
		return err
	}
	for _, verb := range strings.Split(h.phases, ",") {
		h.silent.set(verb)
		if err := h.many(ctx, "silent", 200); err != nil {
			return err
		}
		got, err := h.state(ctx, h.each)
		if err != nil {
			return err
		}
		ratio := float64(got.p95) / float64(alone.p95)
		rig.Row("beside one slow, one with a backlog, one silent at "+verb, got.String(), "", true)
		rig.Row("  p95 ÷ that alone", fmt.Sprintf("%.1f", ratio), "at most 1.5", ratio <= 1.5)
	}
	return nil
}

// besideOthers measures the nine accounts while other programs keep every processor busy. No queue can be
// fairer than the system is to processes.
func (h *house) besideOthers(ctx context.Context, alone quantiles) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range runtime.NumCPU() {
		busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		busy.SysProcAttr = testredis.DieWithUs()
		if err := busy.Start(); err != nil {
			return fmt.Errorf("keep a processor busy: %w", err)
		}
		defer busy.Wait() //nolint:errcheck // it is killed
	}
	defer stop()
	got, err := h.state(ctx, h.each)
	if err != nil {
		return err
	}
	rig.Tell("alone, while other programs keep the processors busy", got.String())
	rig.Tell("  p95 ÷ that alone", fmt.Sprintf("%.1f", float64(got.p95)/float64(alone.p95)))
	return nil
}

// many submits messages of an account, at the processes in turn.
func (h *house) many(ctx context.Context, account string, n int) error {
	return rig.InParallel(ctx, n, 20, func(ctx context.Context, i int) error {
		return h.submit(ctx, account, i)
	})
}

// quantiles are the median and the 95th percentile.
type quantiles struct{ p50, p95 time.Duration }

func (q quantiles) String() string {
	return q.p50.Round(10*time.Microsecond).String() + " / " + q.p95.Round(10*time.Microsecond).String()
}

// state has the nine accounts submit for a while, and waits for their messages.
func (h *house) state(ctx context.Context, d time.Duration) (quantiles, error) {
	h.delays.take()
	n := int(d.Seconds() * float64(good*h.rate))
	if _, err := rig.Steadily(ctx, n, good*h.rate, func(ctx context.Context, i int) error {
		return h.submit(ctx, "good"+strconv.Itoa(i%good), i)
	}); err != nil {
		return quantiles{}, err
	}
	var list []time.Duration
	err := rig.Until(ctx, time.Minute, 10*time.Millisecond, func() (bool, error) {
		list = append(list, h.delays.take()...)
		return len(list) >= n, nil
	})
	if err != nil {
		return quantiles{}, fmt.Errorf("%d of %d messages arrived: %w", len(list), n, err)
	}
	slices.SortFunc(list, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return quantiles{list[len(list)/2], list[len(list)*95/100]}, nil
}

// measureShares has four accounts with equal backlogs share a gateway, and compares what they have sent when
// half of all is.
func (h *house) measureShares(ctx context.Context) error {
	const accounts, each = 4, 2000
	var mu sync.Mutex
	sent, all := map[string]int{}, 0
	var half map[string]int
	relay, err := h.relay(func(c testsmtp.Command) testsmtp.Action {
		if c.Verb != "DOT" {
			return testsmtp.Action{}
		}
		mu.Lock()
		defer mu.Unlock()
		sent[c.From]++
		if all++; all == accounts*each/2 {
			half = map[string]int{}
			for from, n := range sent {
				half[from] = n
			}
		}
		return testsmtp.Action{Delay: 10 * time.Millisecond}
	})
	if err != nil {
		return err
	}
	if _, err := api.CreateGateway.Do(ctx, h.clients[0], api.Gateway{Gateway: "shared", Name: "shared",
		Host: relay.Host, Port: relay.Port, User: "u", Pass: "p", TLS: relay.TLS}); err != nil {
		return err
	}
	if err := h.equals(ctx, accounts, each); err != nil {
		return err
	}
	if err := rig.Until(ctx, 2*time.Minute, 50*time.Millisecond, func() (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return half != nil, nil
	}); err != nil {
		return err
	}
	fewest, most := each, 0
	for i := range accounts {
		n := half["equal"+strconv.Itoa(i)+"@example.com"]
		fewest, most = min(fewest, n), max(most, n)
	}
	rig.Title("Four accounts with equal backlogs at one gateway, when half of all is sent")
	spread := float64(most-fewest) / (accounts * each / 2 / accounts)
	rig.Row("fewest and most of an account, of 1000", fmt.Sprintf("%d, %d", fewest, most), "", true)
	rig.Row("  their difference", fmt.Sprintf("%.0f %%", spread*100), "at most 10 %", spread <= 0.1)
	return nil
}

// equals creates accounts with equal backlogs, which begin to be sent together.
func (h *house) equals(ctx context.Context, accounts, each int) error {
	if err := h.pause(ctx, true); err != nil {
		return err
	}
	for i := range accounts {
		name := "equal" + strconv.Itoa(i)
		if _, err := api.CreateAccount.Do(ctx, h.clients[0], api.Account{Account: name, Name: name,
			Email: name + "@example.com", Gateways: []api.Route{{Gateway: "shared"}}}); err != nil {
			return err
		}
		if err := h.backlogOf(ctx, name, each); err != nil {
			return err
		}
	}
	return h.pause(ctx, false)
}

// pause pauses or resumes the queue of messages.
func (h *house) pause(ctx context.Context, paused bool) error {
	_, err := api.PutQueue.Do(ctx, h.clients[0], api.QueuePatch{Paused: &paused}, "submit")
	return err
}
