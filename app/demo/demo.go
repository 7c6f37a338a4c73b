package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/ui"
)

// Options configure the demo.
type Options struct {
	// address of the API and the pages; defaults to 127.0.0.1:3000. If it is taken, a free port
	Listen  string
	Exit    bool          // end after the tour; otherwise run until the context ends
	Pace    time.Duration // pause between two steps, for reading; 0 if none
	Version string        // of Postroom; empty: "dev"
	Program string        // how Postroom is called on the command line; empty: "postroom"
	Out     io.Writer     // the output; may be nil
	// opens a link in a browser and reports whether it did; if nil, the link is only printed
	Open func(url string) bool
}

// sender is the From of the demo's emails.
const sender = "Demo Shop <shop@example.com>"

// Run runs the tour. It returns nil when ctx ends; with Exit, an end before the end of the tour is an error.
func Run(ctx context.Context, o Options) error {
	o.Out = cmp.Or(o.Out, io.Discard)
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:3000")
	if _, err := redisdb.ServerProgram(); err != nil { // before anything listens
		return err
	}
	dir, err := os.MkdirTemp("", "postroom-demo-")
	if err != nil {
		return err
	}
	err = runIn(ctx, dir, o)
	return errors.Join(err, os.RemoveAll(dir))
}

// runIn runs everything with its data in dir. It closes in reverse order: the relay outlives the Postroom
// that sends to it.
func runIn(ctx context.Context, dir string, o Options) error {
	news := make(chan happening, 1000)
	relay, err := openCatcher(news)
	if err != nil {
		return err
	}
	defer relay.close()
	hooks, err := openReceiver(newSecret(), news)
	if err != nil {
		return err
	}
	defer hooks.close()
	token := rand.Text()
	settings, err := settingsFor(dir, freeAddress(o.Listen), relay.url(), token)
	if err != nil {
		return err
	}
	pages := &ui.Demo{Secret: rand.Text(), Token: token, Mails: relay.caught}
	a, err := app.New(ctx, &settings.Config, app.Options{Version: o.Version, Demo: pages})
	if err != nil {
		return err
	}
	t := &tour{
		client: api.NewClient(a.URL(), a.Token(), nil), url: a.URL(), token: a.Token(), relay: relay, hooks: hooks,
		news: news, tell: teller{o.Out}, pace: o.Pace, link: a.URL() + ui.DemoLink(pages.Secret), browse: o.Open,
		program: cmp.Or(o.Program, "postroom"),
	}
	return accompany(ctx, a, func(ctx context.Context) error {
		if err := t.run(ctx); err != nil || o.Exit {
			return err
		}
		return t.goOn(ctx)
	})
}

// accompany runs Postroom while fn runs. If Postroom ends first, fn is canceled.
func accompany(ctx context.Context, a *app.App, fn func(context.Context) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- a.Run(running)
		stop()
	}()
	err := fn(running)
	stop()
	return errors.Join(err, <-done)
}

// settingsFor returns the settings. An empty file replaces the one in the working directory.
func settingsFor(dir, listen, relay, token string) (*config.Loaded, error) {
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	return config.Load(config.Sources{File: file, Flags: map[string]string{
		"http.listen": listen, "data": filepath.Join(dir, "data"), "smtp": relay + "?starttls=off", "from": sender,
		"token":                 token,
		"webhooks.allowPrivate": "true", // the receiver is on this machine
		"delivery.retry.base":   "1s",   // a wait of minutes is too long for a demo
		"delivery.retry.jitter": "0",
	}})
}

// freeAddress returns the wanted address if nothing listens there, else one with a port picked at start.
func freeAddress(wanted string) string {
	l, err := net.Listen("tcp", wanted)
	if err == nil {
		_ = l.Close()
		return wanted
	}
	host, _, err := net.SplitHostPort(wanted)
	if err != nil {
		return wanted // config reports the error
	}
	return net.JoinHostPort(host, "0")
}

// newSecret returns a random secret that signs the webhooks.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// happening is an item of output: an email that arrived, or a webhook.
type happening struct {
	mail *mail
	hook *hook
}

// errEnded is the error of a demo that ended before its tour.
var errEnded = fmt.Errorf("the demo was ended before its tour: %w", context.Canceled)
