// Command embed is an application with a Postroom inside: one process, one binary, an outbox that survives
// restarts. It suits tools and small services; several processes that share an outbox are better off with a
// Postroom of their own.
//
//	POSTROOM_SMTP=smtp://… POSTROOM_FROM=shop@example.com go run ./examples/embed ann@example.net
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embed ADDRESS")
		os.Exit(2)
	}
	settings, err := config.Load(config.Sources{Env: os.Environ(), Flags: map[string]string{
		"http.listen": "127.0.0.1:0"}})
	if err == nil {
		err = run(ctx, settings, func(ctx context.Context, mail *api.Client) error {
			return greet(ctx, mail, os.Args[1])
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs Postroom and, beside it, the application. When the application is done or ctx ends, Postroom stops
// in order: what is being sent is finished, what is queued waits for the next start.
func run(ctx context.Context, settings *config.Loaded, application func(context.Context,
	*api.Client) error) error {
	outbox, err := app.New(ctx, &settings.Config,
		app.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- outbox.Run(ctx); cancel() }()

	err = application(ctx, api.NewClient(outbox.URL(), outbox.Token(), nil))
	cancel()
	if failed := <-stopped; err == nil {
		err = failed
	}
	return err
}

// greet is the application.
func greet(ctx context.Context, mail *api.Client, to string) error {
	answer, err := api.Submit.Do(ctx, mail, api.SubmitRequest{To: api.Addresses{{Address: to}},
		Subject: "Welcome", Text: "Glad to have you."})
	if err != nil {
		return err
	}
	fmt.Println("queued as", answer.QueueID)
	return nil
}
