// Command rivals plays two accounts that distrust each other on one Postroom, by random steps. Each uses its
// own objects, and calls every operation of the OpenAPI document about the other's; sends as the other, over
// HTTP and SMTP; and returns forged bounces. Then it counts what one has seen, changed or sent of the other.
//
//	go run ./bench/rivals -steps 100000
//
// Each account has a secret word in all that it stores. An answer, an email or a webhook that brings the word
// to the other is a leak.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"time"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/bench/rig"
)

func main() {
	steps := flag.Int("steps", 100_000, "steps of both accounts together")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the dice; each account has its own sequence")
	rig.Main("rivals", func(ctx context.Context) error { return run(ctx, *steps, *seed, nil) })
}

// game is everything that runs.
type game struct {
	rig.Rig
	app        *app.App
	operations []operation
	ann, bob   *rival
}

// run plays a game and judges it. set are Postroom settings in addition to the game's.
func run(ctx context.Context, steps int, seed uint64, set map[string]string) error {
	var g game
	defer g.Close()
	if err := g.start(ctx, seed, set); err != nil {
		return err
	}
	fmt.Printf("%d operations, seed %d\n", len(g.operations), seed)
	rig.Title("Alone")
	if err := g.alone(ctx); err != nil {
		return err
	}
	rig.Title(fmt.Sprintf("%d steps of two rivals", steps))
	began := time.Now()
	done := make(chan error, 2)
	for _, r := range []*rival{g.ann, g.bob} {
		go func() { done <- r.play(ctx, &g, steps/2) }()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		return err
	}
	rig.Tell("time", time.Since(began).Round(time.Second).String())
	return g.judge(ctx)
}

// start starts Redis, Postroom and the accounts.
func (g *game) start(ctx context.Context, seed uint64, set map[string]string) error {
	if err := g.StartRedis(ctx, "", "rivals-"); err != nil {
		return err
	}
	all := map[string]string{
		"redis.url": "unix://" + g.Socket, "data": g.Dir, "documents.store": "embedded",
		"smtpd.listen": "127.0.0.1:0", "smtpd.insecureAuth": "true",
		"bounce.domain": "returns.test", "bounce.listen": "127.0.0.1:0",
		"serviceUrl": "https://mail.test", "tracking.opens": "true", "tracking.clicks": "true",
		"webhooks.allowPrivate": "true", "http.maxWrongProofs": "1000000",
	}
	maps.Copy(all, set)
	a, stop, err := rig.Within(ctx, all)
	if err != nil {
		return err
	}
	g.app = a
	g.OnClose(func() { _ = stop() })
	if g.operations, err = operations(ctx, a.URL()); err != nil {
		return err
	}
	g.operations = append(g.operations, ownOperations...)
	g.ann, g.bob = newRival("ann", seed, a), newRival("bob", seed+1, a)
	g.ann.other, g.bob.other = g.bob, g.ann
	return errors.Join(g.ann.settle(ctx, g), g.bob.settle(ctx, g))
}

// alone measures one account's mail while the other does nothing.
func (g *game) alone(ctx context.Context) error {
	for range 200 {
		if err := g.bob.send(ctx); err != nil {
			return err
		}
		if err := rig.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if err := g.bob.delivered(ctx); err != nil {
		return err
	}
	rig.Tell("from submit to relay, p50 / p99", g.bob.delays().String())
	return nil
}

// judge waits until all mail is delivered, and counts what crossed the wall.
func (g *game) judge(ctx context.Context) error {
	var wrong []error
	var longest [2]time.Duration
	for i, r := range []*rival{g.ann, g.bob} {
		if err := r.delivered(ctx); err != nil {
			return err
		}
		d := r.delays()
		longest[i] = d.P99
		rig.Title(r.name)
		rig.Tell("own steps / steps against the other", fmt.Sprintf("%d / %d", r.own, r.hostile))
		rig.Tell("answers to the latter by status; 250 is a forged bounce", fmt.Sprint(r.answers))
		rig.Tell("mails from submit to relay, p50 / p99", d.String())
		kept, err := r.keeps(ctx)
		if err != nil {
			return err
		}
		for _, c := range append(r.broken.list(), kept...) {
			rig.Row(c.what, fmt.Sprint(c.count), "0", c.count == 0)
			if c.count > 0 {
				wrong = append(wrong, fmt.Errorf("%s: %d %s", r.name, c.count, c.what))
				fmt.Println("    such as:", c.example)
			}
		}
	}
	rig.Title("Share")
	slow, fast := max(longest[0], longest[1]), max(min(longest[0], longest[1]), time.Millisecond)
	ratio := float64(slow) / float64(fast)
	rig.Row("p99 of the slower account, of the other's", fmt.Sprintf("%.1f times", ratio), "at most 2", ratio <= 2)
	if len(wrong) > 0 {
		return fmt.Errorf("the wall between the accounts was crossed: %w", errors.Join(wrong...))
	}
	return ctx.Err()
}
