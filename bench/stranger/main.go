// Command stranger attacks a Postroom as strangers can: 2,000 bad clients of one kind at a time, while good
// clients submit 200 small messages and 5 of 1.5 MB a second. It prints how long the good ones wait alone and
// beside each kind, their failures, and the memory of the process beside the bound in docs/operations.md.
//
//	go run ./bench/stranger
//	go run ./bench/stranger -many     # each bad client has an address of its own
//
// The good clients are at 127.0.0.1, the bad ones at other addresses of the loopback network, as Linux
// allows. It starts its own redis-server, and Postroom and the bad clients as processes of their own. The bad
// clients yield the processors to the others (nice 10), as if they were on other machines.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
)

type settings struct {
	bad   int
	many  bool
	each  time.Duration
	kinds string
	docs  string
}

func main() {
	attackIfAsked()
	s := &settings{}
	flag.IntVar(&s.bad, "bad", 2000, "bad clients of each kind")
	flag.BoolVar(&s.many, "many", false, "each bad client has an address of its own; otherwise all have one")
	flag.DurationVar(&s.each, "each", 10*time.Second, "how long each kind is measured")
	flag.StringVar(&s.kinds, "kinds", "", "a regular expression for the names of the kinds; empty: all")
	flag.StringVar(&s.docs, "docs", "docs/operations.md", "the page with the bound of memory")
	rig.Main("stranger", func(ctx context.Context) error { return run(ctx, s) })
}

// house is everything that runs.
type house struct {
	rig.Rig
	*settings
	postroom *rig.Process
	client   *api.Client
	targets  targets
}

// targets are the addresses that bad clients connect to.
type targets struct{ HTTP, SMTP, SMTPS, Bounce string }

func run(ctx context.Context, s *settings) error {
	h := &house{settings: s}
	defer h.Close()
	wanted, err := regexp.Compile(s.kinds)
	if err != nil {
		return err
	}
	bound, err := boundOf(s.docs)
	if err != nil {
		return err
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	if _, err := h.good(ctx, 3*time.Second); err != nil { // connections are opened
		return err
	}
	from := "one address"
	if s.many {
		from = "an address each"
	}
	rig.Title(fmt.Sprintf("200 small submits/s, 5 of 1.5 MB/s, beside %d bad clients at %s: p50 / p99",
		s.bad, from))
	alone, err := h.good(ctx, s.each)
	if err != nil {
		return err
	}
	rig.Tell("alone, small ones", alone.small.String())
	rig.Tell("alone, large ones", alone.large.String())
	rig.Tell("memory", megabytes(alone.memory))
	for i, k := range kinds() {
		if !wanted.MatchString(k.name) {
			continue
		}
		if err := h.beside(ctx, i, alone, bound); err != nil {
			return err
		}
	}
	return nil
}

// start starts Redis, a relay and Postroom with all its listeners.
func (h *house) start(ctx context.Context) error {
	if err := h.StartRedis(ctx, "", "stranger-"); err != nil {
		return err
	}
	relay, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	h.OnClose(relay.Close)
	cert, key := filepath.Join(h.Dir, "cert.pem"), filepath.Join(h.Dir, "key.pem")
	certPEM, keyPEM, err := testkit.MakeCertificate("localhost")
	err = errors.Join(err, os.WriteFile(cert, certPEM, 0o600), os.WriteFile(key, keyPEM, 0o600))
	if err != nil {
		return err
	}
	for _, to := range []*string{&h.targets.SMTP, &h.targets.SMTPS, &h.targets.Bounce} {
		if *to, err = rig.FreeAddress(); err != nil {
			return err
		}
	}
	var address string
	h.postroom, address, err = h.StartPostroom("all", relay.URL(), map[string]string{
		"documents.store": "none", "smtpd.listen": h.targets.SMTP, "smtpd.listenTls": h.targets.SMTPS,
		"smtpd.tls.cert": cert, "smtpd.tls.key": key, "bounce.listen": h.targets.Bounce,
		"bounce.domain": "bounces.example.com", "feedback.providers.generic": rig.Secret,
	})
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	h.targets.HTTP, h.client = u.Host, rig.Client(address, 100, 20*time.Second)
	return nil
}

// beside measures the good clients beside bad ones of one kind.
func (h *house) beside(ctx context.Context, kind int, alone result, bound int64) error {
	bad, err := h.startAttack(kind)
	if err != nil {
		return err
	}
	_ = rig.Wait(ctx, 2*time.Second) // until most of them are connected
	got, err := h.good(ctx, h.each)
	bad.Stop()
	if err != nil {
		return err
	}
	rig.Tell(kinds()[kind].name, "")
	rig.Row("  small ones", got.small.String(), "p99 at most x2", atMostDouble(got.small, alone.small))
	rig.Row("  large ones", got.large.String(), "p99 at most x2", atMostDouble(got.large, alone.large))
	rig.Row("  submits that got 503, or no answer", fmt.Sprintf("%d, %d", got.unavailable, got.failed), "none",
		got.unavailable+got.failed == 0)
	if got.first != nil {
		rig.Tell("  the first of these: "+got.first.Error(), "")
	}
	grown := got.memory - alone.memory
	rig.Row("  memory more than alone", megabytes(max(0, grown)), "below "+megabytes(bound), grown < bound)
	return nil
}

// atMostDouble compares 99th percentiles. Below 20 ms the difference is that of a busy machine.
func atMostDouble(got, alone rig.Quantiles) bool {
	return got.P99 <= max(2*alone.P99, 20*time.Millisecond)
}

// result is what good clients saw.
type result struct {
	small, large        rig.Quantiles
	unavailable, failed int   // submits
	memory              int64 // of the process in bytes, at most
	first               error // of the failed
}

// tally collects a result.
type tally struct {
	mu           sync.Mutex
	small, large []time.Duration
	result
}

func (t *tally) note(large bool, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := &t.small
	if large {
		list = &t.large
	}
	*list = append(*list, took)
	failure, answered := errors.AsType[*api.Failure](err)
	switch {
	case err == nil:
	case answered && failure.Problem.StatusCode == http.StatusServiceUnavailable:
		t.unavailable++
	default:
		t.failed++
		t.first = cmp.Or(t.first, err)
	}
}

// good submits for a while, and returns when all answers came.
func (h *house) good(ctx context.Context, d time.Duration) (result, error) {
	var t tally
	var all sync.WaitGroup
	file := make([]byte, 1100<<10)
	submit := func(large bool) {
		req := api.SubmitRequest{To: api.Addresses{{Address: "ann@example.net"}}, Subject: "stranger",
			Text: "Hello."}
		if large {
			req.Attachments = []api.Attachment{{Filename: "a.bin", Content: file}}
		}
		began := time.Now()
		_, err := api.Submit.Do(ctx, h.client, req)
		t.note(large, time.Since(began), err)
	}
	const rate = 200
	began := time.Now()
	for i := range int(d.Seconds() * rate) {
		if err := rig.Wait(ctx, time.Until(began.Add(time.Duration(i)*time.Second/rate))); err != nil {
			break
		}
		all.Go(func() { submit(false) })
		if i%(rate/5) == 0 {
			all.Go(func() { submit(true) })
		}
		if i%20 == 0 {
			now, _ := h.postroom.Resident()
			t.memory = max(t.memory, now)
		}
	}
	all.Wait()
	t.result.small, t.result.large = rig.QuantilesOf(t.small), rig.QuantilesOf(t.large)
	return t.result, ctx.Err()
}

// boundOf reads the bound of memory from the docs.
func boundOf(page string) (int64, error) {
	text, err := os.ReadFile(page) //nolint:gosec // the flag of the one who runs this
	if err != nil {
		return 0, fmt.Errorf("run this in the repository, or name the page with -docs: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.TrimSpace(cells[1]) != "all of it" {
			continue
		}
		mb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(cells[len(cells)-2]), " MB"))
		return int64(mb) << 20, err
	}
	return 0, fmt.Errorf("%s: there is no row \"all of it\" with the bound of memory", page)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
